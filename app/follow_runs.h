#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/context.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/run/plan.h"
#include "core/run/queue/queue.h"

namespace forge::app {

/// A run that is to be started, resumed or followed.
struct PendingRun {
  std::string label;  ///< its name in messages
  std::string what;   ///< "starting, profile quick: …"
  run::PlannedRun planned;
  queue::ResourceRequest demand;
  bool made = false;       ///< whether this command made its folder
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

/// A group of its own for the runs of this moment.
QueueGroup new_group();

/// Seconds that a command which was interrupted waits for a queue that another process has locked.
constexpr double lock_patience = 1;

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

/// Puts the runs that are to be started or resumed into the queue. Their folders exist already.
/// Returns the ids of those that it asks for there, active ones, too: where no other command does,
/// it stops them. After a Ctrl-C it puts no more there.
std::set<std::string> enqueue(const Context& context,
                              const std::vector<PendingRun>& runs,
                              const QueueOptions& options,
                              const Interrupts& interrupts);

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

/// Says on stderr what a command waits for at a run, once it has waited for three seconds and when
/// that changes.
class RunWait {
 public:
  /// `what`: "the worker to start".
  RunWait(const run::RunFolder& folder, std::string what);

  /// To be called all along.
  void tell();

 private:
  const run::RunFolder& folder_;
  const std::string what_;
  const double began_;
  std::string said_;
};

/// Waits for the end of a run that is saving to stop, or for a Ctrl-C of `interrupts`, which may be
/// null. Returns whether it waited.
bool wait_until_stopped(const run::RunFolder& folder, const Interrupts* interrupts = nullptr);

}  // namespace forge::app
