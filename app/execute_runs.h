#pragma once

#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/context.h"
#include "app/follow_runs.h"
#include "app/terminal.h"

namespace forge::app {

/// --jobs, --priority and --detach
void add_queue_options(const Command& command, QueueOptions& queue);

/// What became of runs that a command executed.
struct ExecutedRuns {
  int exit_code = 0;  ///< 1 a run failed, 3 one was stopped, not started or left, 4 the disk failed
  bool detached = false;           ///< they were only queued
  std::vector<std::string> ended;  ///< their ids
  bool diverged = false;           ///< some did, and all others completed
  bool interrupted = false;        ///< by Ctrl-C, also where it came too late to stop one
};

/// Queues the runs and follows them to their ends, and reports failures; detached it only queues
/// them and prints their ids. Interrupted before one was started it withdraws them. Runs of
/// `source`, which may be null, are executed, too (follow_runs.h). A run that halving stopped is no
/// stopped one.
ExecutedRuns execute_runs(const Context& context,
                          const std::vector<PendingRun>& runs,
                          const QueueOptions& queue,
                          Interrupts& interrupts,
                          bool json,
                          RunSource* source = nullptr);

/// For a command that ends before it has queued these runs: removes the folders that it made for
/// them.
void withdraw_unqueued(const Context& context, const std::vector<PendingRun>& runs);
/// The same after a Ctrl-C; a line says so.
ExecutedRuns withdraw_interrupted(const Context& context, const std::vector<PendingRun>& runs);

}  // namespace forge::app
