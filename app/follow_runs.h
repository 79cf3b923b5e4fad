#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/context.h"
#include "app/terminal.h"
#include "core/run/plan.h"
#include "core/run/queue/queue.h"

namespace forge::app {

/// A run that is to be started, resumed or followed.
struct PendingRun {
  std::string label;  ///< its name in messages
  std::string what;   ///< "starting, profile quick: …"
  run::PlannedRun planned;
  queue::ResourceRequest demand;
  bool made = false;  ///< whether this command made its folder
};

struct QueueOptions {
  int priority = 0;
  int jobs = 0;            ///< maximum concurrent runs; 0: as many as the devices take
  bool fail_fast = false;  ///< start no more runs after the first failure
  bool detach = false;     ///< queue the runs and return
};

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

/// Puts the runs that are to be started or resumed into the queue. Their folders exist already.
/// Returns the ids of those that are now this command's: it alone stops them. A run that another
/// command has put there before stays that command's. After a Ctrl-C it puts no more there.
std::set<std::string> enqueue(const Context& context,
                              const std::vector<PendingRun>& runs,
                              const QueueOptions& options,
                              const Interrupts& interrupts);

/// Follows queued and active runs until all have ended, with a live line on stderr, and starts runs
/// from the queue when a device has room. The first Ctrl-C leaves the runs of other commands as
/// they are, takes those of this command, `own`, out of the queue, and lets active ones save and
/// stop; the second stops these at once. A request to detach leaves all as they are. Calls `at_end`
/// with the index of each run that ends or is left. The outcomes are in the order of `runs`.
std::vector<Outcome> follow_runs(const Context& context,
                                 const std::vector<PendingRun>& runs,
                                 const std::set<std::string>& own,
                                 const Interrupts& interrupts,
                                 const std::function<void(size_t)>& at_end);

}  // namespace forge::app
