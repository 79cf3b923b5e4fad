#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/context.h"
#include "app/enqueue.h"
#include "app/terminal.h"
#include "core/run/run_folder.h"

namespace forge::app {

enum class Ending {
  ended,
  not_started,  ///< it left the queue before anybody started it
  left,         ///< it still runs or waits, and is followed no longer
};

/// What became of a run while it was followed.
struct Outcome {
  run::RunStatus status;
  Ending ending = Ending::ended;
};

/// A run that was followed.
struct EndedRun {
  PendingRun run;
  Outcome outcome;
};

/// How many runs are followed.
struct Following {
  size_t running = 0;
  size_t waiting = 0;  ///< for a device, or for their end to be seen
};

/// Decides which runs come next while others are followed.
class RunSource {
 public:
  virtual ~RunSource() = default;
  /// How many there may be in all, for the progress line.
  virtual size_t size() const = 0;
  /// A run has ended, or is followed no longer. Runs have their numbers in the order in which they
  /// were given to follow_runs.
  virtual void on_end(size_t number, const Outcome& outcome) = 0;
  /// Runs to be queued and followed from now on. Asked again and again while runs are followed, and
  /// once more when all have ended; not after Ctrl-C or a request to detach.
  virtual std::vector<PendingRun> next(const Following& now) = 0;
};

/// Follows queued and active runs until all have ended, with a live line on stderr, and starts runs
/// from the queue when a device has room. The first Ctrl-C leaves the runs that other commands ask
/// for as they are, takes those of this command alone out of the queue, and lets active ones save
/// and stop; the second stops these at once. Where another process keeps the queue locked, what
/// waits stays there and is left. A request to detach leaves all as they are. Calls `at_end` after
/// each run that ends or is left. Runs of `source`, which may be null, are queued with the options
/// of `queue` and followed, too; `own` gets their ids. The result is in the order of `runs` and
/// then in that of the source.
std::vector<EndedRun> follow_runs(const Context& context,
                                  const std::vector<PendingRun>& runs,
                                  std::set<std::string>& own,
                                  const Interrupts& interrupts,
                                  const std::function<void()>& at_end,
                                  const QueueOptions& queue,
                                  RunSource* source = nullptr);

}  // namespace forge::app
