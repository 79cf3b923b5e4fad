#include "tests/support/fake_launcher.h"

#include <csignal>
#include <stdexcept>

#include "core/base/error.h"

namespace forge::tests {
namespace {

class FakeWorker : public run::RunningWorker {
 public:
  FakeWorker(WorkerScript script, FakeClock& clock, FakeLauncher& launcher)
      : script_(std::move(script)),
        clock_(clock),
        launcher_(launcher),
        number_(std::to_string(launcher.launches.size())) {}

  int pid() const override { return 4711; }

  run::Output next(double timeout_seconds) override {
    if (exited_) throw std::logic_error("a worker that has ended was asked for more");
    while (at_ < script_.steps.size()) {
      Step& step = script_.steps[at_];
      if (auto* silence = std::get_if<IsSilent>(&step); silence && silence->seconds > 0) {
        silence->seconds -= timeout_seconds;
        clock_.seconds += timeout_seconds;
        return run::Quiet{};
      }
      ++at_;
      if (const auto* does = std::get_if<Does>(&step)) does->action();
      if (const auto* says = std::get_if<Says>(&step)) return run::OutputLine{says->line};
      if (const auto* exits = std::get_if<Exits>(&step)) {
        exited_ = true;
        return exits->status;
      }
    }
    clock_.seconds += timeout_seconds;
    return run::Quiet{};
  }

  void send(const std::string& line) override { launcher_.sent.push_back(number_ + ": " + line); }
  void end_input() override { launcher_.sent.push_back(number_ + ": end"); }

  void ask_to_stop() override {
    launcher_.signals.push_back("stop");
    if (!script_.when_asked_to_stop.empty()) go_on_with(script_.when_asked_to_stop);
  }

  void ask_to_save() override { launcher_.signals.push_back("save"); }

  void kill() override {
    launcher_.signals.push_back("kill");
    go_on_with({Exits{{0, SIGKILL}}});
  }

 private:
  void go_on_with(Script steps) {
    script_.steps = std::move(steps);
    at_ = 0;
  }

  WorkerScript script_;
  FakeClock& clock_;
  FakeLauncher& launcher_;
  std::string number_;  ///< of the start, from 1 on
  size_t at_ = 0;
  bool exited_ = false;
};

}  // namespace

std::unique_ptr<run::RunningWorker> FakeLauncher::start(const run::Launch& launch) {
  launches.push_back(launch);
  if (scripts_.empty()) throw Error("no such program", {}, "", ExitCode::failed);
  auto worker = std::make_unique<FakeWorker>(scripts_.front(), clock_, *this);
  scripts_.pop_front();
  return worker;
}

}  // namespace forge::tests
