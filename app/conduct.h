#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/context.h"
#include "core/queue/demand.h"
#include "core/run/plan.h"

namespace forge::app {

/// A run that is to come to its end, from wherever it stands.
struct ToDo {
  std::string label;  ///< what to call it
  std::string what;   ///< "starting, profile quick: …"
  run::PlannedRun planned;
  queue::Demand demand;
};

struct ConductOptions {
  int priority = 0;
  int jobs = 0;            ///< so many of these runs at once; 0: as many as find room
  bool fail_fast = false;  ///< after a run that failed no other is begun
};

/// How a run came out.
struct Outcome {
  run::RunStatus status;
  bool begun = true;  ///< nobody has worked on it, if not
};

/// Puts those of the runs into the queue that have something left to do. Their folders have been
/// written.
void enqueue(const Context& context, const std::vector<ToDo>& runs, const ConductOptions& options);

/// Follows runs that are queued or run until nobody has anything left to do for them, with a live
/// line on stderr; starts what finds room meanwhile. The first Ctrl-C lets those that run save and
/// stop, and nothing more begin; the second stops them now. `at_end` is called as each ends, with
/// its index. The outcomes are in the order of `runs`.
std::vector<Outcome> conduct(const Context& context,
                             const std::vector<ToDo>& runs,
                             const std::function<void(size_t)>& at_end);

}  // namespace forge::app
