#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/run/host.h"
#include "core/worker/launcher.h"

/// The processes that train one run together, behind the interface of a single worker.
namespace forge::run {

struct GroupOptions {
  std::function<double()> clock = steady_seconds;
  /// After the first failure, where it only says that another process is lost: so long the others
  /// may still say why. Then they get SIGTERM; otherwise at once.
  double words_seconds = 2;
  double grace_seconds = 5;  ///< after the first failure, until what still runs is killed
};

/// Starts a process for each launch; its place in the list is its rank. A single launch starts what
/// the launcher starts. Throws Error when one cannot be started; the others are gone then, too.
///
/// Of several, process 0 speaks for all: its lines come as it says them, but for a `failed`. It
/// alone is asked to stop or to save. Another one may say `hello`, `environment` and `failed`;
/// anything else is its failure. The first process that fails ends all of them. When they are gone,
/// the `failed` of the one to blame is yielded with its rank, if it said any, and then its exit: of
/// those with a reason of their own the first, else the first that a signal killed, else the first
/// that ended without a word, else the first that lost another one. Once process 0 has finished,
/// failures of others change nothing.
std::unique_ptr<worker::RunningWorker> start_group(worker::Launcher& launcher,
                                                   const std::vector<worker::Launch>& launches,
                                                   const GroupOptions& options = {});

/// The launches of so many processes for what one would do alone: each knows its rank.
std::vector<worker::Launch> launches_of_group(const worker::Launch& alone, int processes);

/// Starts a group of so many processes wherever one is asked for. All append to its stderr file.
class GroupLauncher : public worker::Launcher {
 public:
  /// `each` outlives it.
  GroupLauncher(worker::Launcher& each, int processes) : each_(each), processes_(processes) {}
  std::unique_ptr<worker::RunningWorker> start(const worker::Launch& launch) override {
    return start_group(each_, launches_of_group(launch, processes_));
  }

 private:
  worker::Launcher& each_;
  const int processes_;
};

/// Which of the processes keeps the others waiting, as far as that can be seen from outside.
struct Suspicion {
  std::string text;         ///< "process 1 is stopped (SIGSTOP)"
  bool is_outside = false;  ///< something outside of the run holds one up: it may be gone later
};

Suspicion suspicion_of(const std::vector<worker::Member>& members,
                       const std::function<char(int)>& state_of = process_state);

}  // namespace forge::run
