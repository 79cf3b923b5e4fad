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

/// Takes a run out of the queue that has ended. To be called while its lock is held. One that
/// stopped at a rung stays where a command has asked for more of it meanwhile. Where it failed and
/// its group is to fail fast, what is left of the group is not begun, and what runs of it saves and
/// stops, but for what other commands ask for.
void finish_queued_run(const fs::path& runs_dir, const std::string& run, bool failed);

/// Takes those of these runs out of the queue that do not run, and returns them. One whose files
/// this user may not read and write (owners.h) stays, unless they have queued it. Of `made` also
/// the folder is removed, unless the run has begun before or somebody has added a note or a tag.
/// With `group` that command asks for them no longer; those that another one asks for stay.
std::vector<std::string> cancel_queued(Queue& queue,
                                       const std::vector<std::string>& runs,
                                       const std::set<std::string>& made = {},
                                       const std::string& group = "");

/// Removes the folders of these runs that are neither queued nor have begun. One with a note or a
/// tag stays.
void remove_unqueued(const Queue& queue, const std::set<std::string>& runs);

}  // namespace forge::queue
