#pragma once

#include <string>
#include <vector>

#include "app/context.h"
#include "app/enqueue.h"
#include "app/launch.h"
#include "app/terminal.h"

/// From the runs that a command asks for to folders that can be queued, and what is said of each.
namespace forge::app {

/// What the run needs of this machine, whoever starts it.
queue::ResourceRequest demand_of(const CheckedRun& checked,
                                 const LaunchOptions& launch,
                                 const QueueOptions& queue);

/// Runs that are written and can be queued.
struct PreparedRuns {
  std::vector<PendingRun> runs;
  std::vector<const CheckedRun*> checked;  ///< of each
  bool some_are_damaged = false;           ///< they were reported and are not among these
};

/// Writes the folders of the runs, unless nothing is left to do, until the user interrupts it.
/// Damaged runs are reported. Throws the Error of any other; what was made is withdrawn then.
/// `made`: ids of runs that the command has made in rounds before, which --force does not repeat.
PreparedRuns prepare_all(const Context& context,
                         const std::vector<CheckedRun>& selected,
                         const LaunchOptions& launch,
                         const QueueOptions& queue,
                         const std::vector<std::string>& made,
                         const Interrupts& interrupts);

}  // namespace forge::app
