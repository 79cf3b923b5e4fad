#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/protocol/messages.h"
#include "core/run/event_log.h"
#include "core/run/run_folder.h"

namespace forge::run {

/// What happened in a run since the last look.
struct Update {
  std::vector<StoredEvent> events;             ///< new ones, in order
  std::optional<protocol::Progress> progress;  ///< the latest, where it is a new one
  bool over =
      false;  ///< nobody supervises the run: nothing more will come. RunFolder::status() tells
};

/// Reads a run folder that somebody else writes. Starts with the first event.
class Follower {
 public:
  explicit Follower(RunFolder folder) : folder_(std::move(folder)) {}
  /// Skips what is there already.
  void skip_to_end();
  /// Does not wait. Throws Error when the events file is damaged.
  Update poll();

 private:
  std::vector<StoredEvent> new_events();
  std::optional<protocol::Progress> new_progress();

  RunFolder folder_;
  int64_t offset_ = 0;  ///< of the first byte not yet read, at the start of a line
  std::string progress_line_;
};

}  // namespace forge::run
