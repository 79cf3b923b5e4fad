#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/context.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/run/plan.h"
#include "core/run/queue/queue.h"

/// From the runs of a command to entries of the queue.
namespace forge::app {

/// A run that is to be started, resumed or followed.
struct PendingRun {
  std::string label;  ///< its name in messages
  std::string what;   ///< "starting, profile quick: …"
  run::PlannedRun planned;
  queue::ResourceRequest demand;
  /// queue::request_stamp of the folder that this command made for it; "": it did not make one.
  std::string made = {};
  int64_t stop_after = 0;  ///< run::SupervisorOptions::stop_after
  int64_t place = 0;       ///< CheckedRun::place
};

/// Why the run cannot be queued: this user may not read or write a file of it, which the error
/// names with its owner. None of a run that is only followed.
std::optional<Error> refusal(const PendingRun& run);

/// What the queue knows the runs of one command by.
struct QueueGroup {
  std::string name;
  std::string submitted;  ///< UTC
};

struct QueueOptions {
  std::optional<int> priority;  ///< none: 0, or what a run that waits already has
  int jobs = 0;                 ///< maximum concurrent runs; 0: as many as the devices take
  bool fail_fast = false;       ///< start no more runs after the first failure
  bool detach = false;          ///< queue the runs and return
  QueueGroup group = {};        ///< of the command
};

/// A group of its own for the runs of this moment.
QueueGroup new_group();

/// Seconds that a command which was interrupted waits for a queue that another process has locked.
constexpr double lock_patience = 1;

/// Puts the runs that are to be started or resumed into the queue. Their folders exist already.
/// Returns the ids of those that it asks for there, active ones, too: where no other command does,
/// it stops them. After a Ctrl-C it puts no more there.
std::set<std::string> enqueue(const Context& context,
                              const std::vector<PendingRun>& runs,
                              const QueueOptions& options,
                              const Interrupts& interrupts);

}  // namespace forge::app
