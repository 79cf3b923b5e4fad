#pragma once

#include <map>
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

/// A command that makes runs in several rounds, as its table asks for more.
struct CommandSoFar {
  std::vector<std::string> ended = {};  ///< ids of the runs, each once
  /// Of the texts and programs that configs name, by what they say of them.
  std::map<std::string, std::string> hashes = {};

  bool has_made(const std::string& run) const;
};

/// Runs that are written and can be queued.
struct PreparedRuns {
  std::vector<PendingRun> runs;
  std::vector<const CheckedRun*> checked;  ///< of each
  bool some_are_damaged = false;           ///< they were reported and are not among these
};

/// Writes the folders of the runs, unless nothing is left to do, until the user interrupts it.
/// Damaged runs are reported. Throws the Error of any other; what was made is withdrawn then.
/// `command`: what it has made in rounds before, which --force does not repeat. Throws Error, too,
/// where a text is another one than in these.
PreparedRuns prepare_all(const Context& context,
                         const std::vector<CheckedRun>& selected,
                         const LaunchOptions& launch,
                         const QueueOptions& queue,
                         CommandSoFar& command,
                         const Interrupts& interrupts);

}  // namespace forge::app
