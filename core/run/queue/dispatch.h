#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/run/queue/queue.h"

namespace forge::queue {

struct StartedRun {
  std::string run;
  int supervisor = 0;  ///< process id, a child of this one
  std::string device;
};

struct NotStarted {
  std::string run;
  Error problem;
};

/// What a dispatch did.
struct DispatchResult {
  std::vector<StartedRun> started;
  std::vector<NotStarted> failed;  ///< taken out of the queue
  /// What each run that could not be started waits for: "cpu: held by train_a-3f21 (pid 4711)".
  std::map<std::string, std::string> waiting;
  std::optional<Error> no_room;  ///< on the disk, for the first run that waits for that
  /// Why the machine starts no supervisor: no run is to blame, and all that would begin wait.
  std::optional<Error> no_process;
  int keeper = 0;  ///< process id of the keeper that was started, a child; 0: none
  /// Runs wait that this user would start, and no supervisor of this user's looks after them here.
  bool needs_keeper = false;
  bool queue_was_locked = false;  ///< by another process, and nothing was done
};

enum class IfLocked { wait, skip };

/// Starts the supervisors of the runs that are next and find room, each with its lease. A run whose
/// supervisor was killed is started again, `max_starts` times in all. A run of a host that is gone
/// is taken over (hosts.h). Any number of processes may do this at any time: forge while it follows
/// runs, and every supervisor, so that the queue goes on as long as one of them lives. `program` is
/// forge's own.
/// A run leaves the queue only where it is known to need nothing more, or cannot be started through
/// a fault of its own. It stays where its files cannot be looked at or are another user's
/// (owners.h), while the machine starts no process, and while its disk has no room for what it
/// writes first; but for those `impatient`,
/// whose command is there to be told: they have failed then.
/// Who does it again and again skips a turn while another process has locked the queue: that one
/// may be stopped, or have much to do. Who does it once waits, and leaves a process behind that
/// keeps the queue where runs wait for room and nobody else here looks after them (keeper.h).
DispatchResult dispatch(const fs::path& runs_dir,
                        const fs::path& program,
                        IfLocked if_locked,
                        const std::set<std::string>& impatient = {});

constexpr int max_starts = 5;

}  // namespace forge::queue
