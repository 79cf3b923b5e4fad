#pragma once

#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "core/run/launcher.h"

namespace forge::tests {

/// A steady clock that stands still but where a fake worker is silent.
struct FakeClock {
  double seconds = 1000;
};

/// What a fake worker does, one step after the other.
struct Says {
  std::string line;
};
struct IsSilent {
  double seconds = 0;
};
struct Exits {
  run::ExitStatus status;
};
/// Calls back between two lines, e.g. to write the stop file.
struct Does {
  std::function<void()> action;
};
using Step = std::variant<Says, IsSilent, Exits, Does>;
using Script = std::vector<Step>;

struct WorkerScript {
  Script steps;               ///< silent for ever after the last one, if that is no Exits
  Script when_asked_to_stop;  ///< replaces what is left of `steps`; empty: it does not listen
};

/// Replays one script a start, in order, and keeps what it was asked for.
class FakeLauncher : public run::Launcher {
 public:
  FakeLauncher(FakeClock& clock, std::vector<WorkerScript> scripts)
      : clock_(clock), scripts_(scripts.begin(), scripts.end()) {}

  /// One more start, after those that are scripted.
  void add(WorkerScript script) { scripts_.push_back(std::move(script)); }
  std::unique_ptr<run::RunningWorker> start(const run::Launch& launch) override;

  std::vector<run::Launch> launches;
  std::vector<std::string> signals;  ///< "stop", "save" or "kill", as sent
  /// "1: LINE" for a line sent to the worker that was started first, "1: end" for the end of input.
  std::vector<std::string> sent;

 private:
  FakeClock& clock_;
  std::deque<WorkerScript> scripts_;
};

}  // namespace forge::tests
