// Wishes to a run that goes on: to save, to stop, and to stop at a rung.

#include "core/run/supervisor.h"

#include <csignal>

#include "core/base/files.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

/// Supervises a worker with that greeting while a checkpoint is asked for; what it was sent.
std::vector<std::string> signals_to(const std::string& hello) {
  SupervisedScene scene({});
  scene.launcher.add({{Does{[&] { scene.folder.request_save(); }},
                       IsSilent{2},
                       Says{hello},
                       Says{lines::environment},
                       IsSilent{3},
                       Saves{1},
                       Says{lines::finished(true)},
                       Exits{{0, 0}}},
                      {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE_FALSE(fs::exists(scene.folder.save_file()));
  return scene.launcher.signals;
}

TEST_CASE("a wish for a checkpoint is passed on once and only to a worker that can",
          "[run][supervisor][save]") {
  const std::string can =
      lines::hello.substr(0, lines::hello.size() - 1) + R"(,"saves_on_request":true})";
  REQUIRE(signals_to(can) == std::vector<std::string>{"save"});
  REQUIRE(signals_to(lines::hello).empty());
}

TEST_CASE("a stop to save is passed on and the run can go on later", "[run][supervisor][stop]") {
  SupervisedScene scene({});
  const WorkerScript polite{
      then(greeting(),
           {Does{[&] { scene.folder.request_stop(StopRequest::after_checkpoint); }},
            IsSilent{60},
            Says{lines::train(99)}}),
      {Saves{2}, Says{lines::finished(false)}, Exits{{3, 0}}}};
  scene.launcher.add(polite);
  scene.launcher.add({good_run(), {}});
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"stop"});
  REQUIRE(scene.story() == "attempt hello environment checkpoint finished ended");
  REQUIRE(scene.folder.state() == RunState::stopped);
  REQUIRE(scene.folder.status().reason == "stopped on request after step 3");
  // It says that the run is stopping until the lock is free; whoever starts the run next removes
  // it.
  REQUIRE(fs::exists(scene.folder.stop_file()));
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE_FALSE(fs::exists(scene.folder.stop_file()));
}

std::string rung_evaluation(int step) {
  return R"({"event":"evaluation","step":)" + std::to_string(step) +
         R"(,"loss":2.5,"tokens":1,"seconds":1})";
}

std::string stopped_at(int step) {
  std::string line = lines::finished(false);
  return line.replace(line.find("\"step\":3"), 8, "\"step\":" + std::to_string(step));
}

TEST_CASE("a run that was sent to a rung saves and stops after its evaluation there",
          "[run][supervisor][stop][halving]") {
  SupervisedScene scene({});
  scene.options.stop_after = 1;
  scene.launcher.add(
      {then(greeting(), {Says{rung_evaluation(1)}, IsSilent{60}, Says{rung_evaluation(2)}}),
       {Saves{2}, Says{stopped_at(2)}, Exits{{3, 0}}}});
  scene.launcher.add(
      {then(greeting(), {Says{rung_evaluation(3)}, Says{lines::finished(true)}}), {}});
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"stop"});
  REQUIRE(read_events(scene.folder.events_file()).front().started->stop_after == 1);
  REQUIRE(scene.last_event().at("stop_after") == 1);
  const RunStatus status = scene.folder.status();
  REQUIRE(status.state == RunState::stopped);
  REQUIRE(status.halved);
  REQUIRE(status.reason == "stopped at 2 of 3 steps by halving");
  REQUIRE_FALSE(fs::exists(scene.folder.done_file()));
  // A rung that is the last step stops nothing.
  scene.options.stop_after = 3;
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE_FALSE(scene.folder.status().halved);
}

TEST_CASE("a run that a person stops on its way to a rung was not halved",
          "[run][supervisor][stop][halving]") {
  SupervisedScene scene({});
  scene.options.stop_after = 2;
  scene.launcher.add({then(greeting(),
                           {Says{rung_evaluation(1)},
                            Does{[&] { scene.folder.request_stop(StopRequest::after_checkpoint); }},
                            IsSilent{60}}),
                      {Saves{1}, Says{stopped_at(1)}, Exits{{3, 0}}}});
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE_FALSE(scene.folder.status().halved);
  REQUIRE(scene.folder.status().reason == "stopped on request after step 1");
}

TEST_CASE("a second wish stops the worker now", "[run][supervisor][stop]") {
  SupervisedScene scene({});
  const WorkerScript deaf{
      then(greeting(),
           {Does{[&] { scene.folder.request_stop(StopRequest::after_checkpoint); }},
            IsSilent{5},
            Does{[&] { scene.folder.request_stop(StopRequest::immediately); }},
            IsSilent{60}}),
      {}};
  scene.launcher.add(deaf);
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"stop", "kill"});
  REQUIRE(scene.folder.status().reason == "stopped on request before it could save");
  REQUIRE(scene.launcher.launches.size() == 1);
}

TEST_CASE("signals to the supervisor stop the worker as the stop file does",
          "[run][supervisor][stop]") {
  ::signal(SIGHUP, SIG_DFL);  // whoever started the tests may ignore it
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) {
    const WorkerScript deaf{then(greeting(),
                                 {Does{[=] { ::raise(signal); }},
                                  IsSilent{5},
                                  Does{[=] { ::raise(SIGINT); }},
                                  IsSilent{60}}),
                            {}};
    SupervisedScene scene({deaf});
    REQUIRE(scene.supervise() == supervised_stopped);
    REQUIRE(scene.launcher.signals == std::vector<std::string>{"stop", "kill"});
    CHECK(fs::exists(scene.folder.stop_file()));  // who asks for the run waits for its end
  }
}

TEST_CASE("a closed terminal does not stop a supervisor that was started with nohup",
          "[run][supervisor][stop]") {
  SupervisedScene scene({});
  scene.launcher.add(
      {then({Says{lines::hello}, Does{[] { ::raise(SIGHUP); }}, Says{lines::environment}},
            {Says{lines::train(1)}, Says{lines::finished(true)}, Exits{{0, 0}}}),
       {}});
  ::signal(SIGHUP, SIG_IGN);
  const int exit_code = scene.supervise();
  REQUIRE(::signal(SIGHUP, SIG_DFL) == SIG_IGN);
  REQUIRE(exit_code == supervised_completed);
  REQUIRE(scene.launcher.signals.empty());
}

TEST_CASE("a scheduler's signals may come in a row and all mean to save",
          "[run][supervisor][stop]") {
  SupervisedScene scene({});
  scene.launcher.add({then(greeting(),
                           {Does{[] { ::raise(SIGUSR2); }},
                            IsSilent{5},
                            Does{[] { ::raise(SIGTERM); }},
                            IsSilent{5},
                            Does{[] { ::raise(SIGTERM); }},
                            IsSilent{5}}),
                      {Says{lines::finished(false)}, Exits{{3, 0}}}});
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"stop"});
}

TEST_CASE("a stop of old does not stop a new start", "[run][supervisor][stop]") {
  SupervisedScene scene({{good_run(), {}}});
  scene.folder.request_stop(StopRequest::immediately);
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.launcher.signals.empty());
}

}  // namespace
}  // namespace forge::run
