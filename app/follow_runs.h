#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/context.h"
#include "core/run/plan.h"
#include "core/run/queue/queue.h"

namespace forge::app {

/// A run that is to be started, resumed or followed.
struct PendingRun {
  std::string label;  ///< its name in messages
  std::string what;   ///< "starting, profile quick: …"
  run::PlannedRun planned;
  queue::ResourceRequest demand;
};

struct QueueOptions {
  int priority = 0;
  int jobs = 0;            ///< maximum concurrent runs; 0: as many as the devices take
  bool fail_fast = false;  ///< start no more runs after the first failure
  bool detach = false;     ///< queue the runs and return
};

/// How a run ended.
struct Outcome {
  run::RunStatus status;
  bool started = true;
};

/// Puts the runs that are to be started or resumed into the queue. Their folders exist already.
void enqueue(const Context& context,
             const std::vector<PendingRun>& runs,
             const QueueOptions& options);

/// Follows queued and active runs until all have ended, with a live line on stderr, and starts runs
/// from the queue when a device has room. The first Ctrl-C lets active runs save and stop and
/// starts no more; the second stops them at once. Calls `at_end` with the index of each run that
/// ends. The outcomes are in the order of `runs`.
std::vector<Outcome> follow_runs(const Context& context,
                                 const std::vector<PendingRun>& runs,
                                 const std::function<void(size_t)>& at_end);

}  // namespace forge::app
