#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/run/identity.h"
#include "core/run/run_folder.h"
#include "core/worker/messages.h"

/// A run that goes on from where another one stands, with what that one measured.
namespace forge::run {

/// A checkpoint of another run that a new run continues.
struct ContinueFrom {
  std::filesystem::path checkpoint;       ///< a folder of the other run, "": nothing is continued
  std::filesystem::path events;           ///< the other run's
  int64_t step = 0;                       ///< of the checkpoint
  int attempt = 0;                        ///< that saved it
  int64_t log_every = 1;                  ///< the other run's train.log_every
  std::string repeats = {};               ///< repeated_run of the steps up to the checkpoint, ""
  std::vector<std::string> damaged = {};  ///< what is wrong with newer checkpoints
};

/// The newest whole checkpoint of `other` that a run of that identity and complete config can
/// continue as if it had made it itself. Only the budget may differ and what changes no number, and
/// the schedule must give every finished step the rate that it had (config::check_resumable) and
/// the rows; `train_tokens` are empty where no data was prepared. Throws Error with the reason if
/// there is none. `runs_dir` is that of the new run.
ContinueFrom find_continue_checkpoint(const RunFolder& other,
                                      const Identity& identity,
                                      const nlohmann::json& experiment,
                                      const std::vector<worker::TokenSource>& train_tokens,
                                      const std::filesystem::path& runs_dir);

/// What the other run's events say of the steps up to the checkpoint, as lines of events.jsonl:
/// attempt 0 of the run that continues. Beside the metrics it is all that marks them, as a run that
/// is resumed keeps what its earlier attempts say. A window that the other run's end cut short is
/// left out.
std::string copied_events(const ContinueFrom& from);

}  // namespace forge::run
