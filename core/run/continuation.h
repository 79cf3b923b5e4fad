#pragma once

#include <filesystem>

#include "core/run/identity.h"
#include "core/run/run_folder.h"

namespace forge::run {

/// Where a run goes on that another one began.
struct Continuation {
  std::filesystem::path checkpoint;  ///< a folder of the other run's, "": it begins by itself
  std::filesystem::path events;      ///< the other run's
  int64_t step = 0;                  ///< of the checkpoint
  int64_t log_every = 1;             ///< the other run's train.log_every
};

/// The newest whole checkpoint of `other` from which a run of that identity, with that complete
/// config, goes on exactly as if it had begun there itself: the longer or shorter budget is the
/// only thing that may differ, and the schedule has to give every step done the rate that it had
/// (config::check_resumable). Throws Error saying what stands against it.
Continuation find_continuation(const RunFolder& other,
                               const Identity& identity,
                               const nlohmann::json& experiment);

/// Those of the other run's events that are numbers of the steps before the checkpoint, as lines of
/// events.jsonl: attempt 0 of the run that goes on. Without those of a window that its end cut
/// short.
std::string earlier_events(const Continuation& continuation);

}  // namespace forge::run
