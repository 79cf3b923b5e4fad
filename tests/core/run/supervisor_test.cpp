// What a supervisor makes of a run from its start to its end.

#include "core/run/supervisor.h"

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/run/allowed_command.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

TEST_CASE("a good worker's events are kept and the run is completed", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  REQUIRE(scene.folder.state() == RunState::not_started);
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.story() == "attempt hello environment train checkpoint finished ended");
  REQUIRE(scene.folder.state() == RunState::completed);
  REQUIRE(fs::exists(scene.folder.done_file()));
  REQUIRE(scene.launcher.signals.empty());

  const auto events = read_events(scene.folder.events_file());
  for (const StoredEvent& event : events) {
    REQUIRE(event.attempt == 1);
    REQUIRE(event.time > 1.6e9);
  }
  REQUIRE(events.front().json.at("pid") == 4711);
  REQUIRE(std::get<worker::TrainMetrics>(*events[3].event).loss == 2.5);
}

TEST_CASE("a completed run leaves no mark with the run that it began from", "[run][supervisor]") {
  const TemporaryFolder elsewhere;
  const RunFolder origin = make_completed_run(elsewhere.path(), {});
  RunInputs inputs = small_inputs();
  inputs.initial_weights = {save_checkpoint(origin.checkpoints(), 1), "w1", "", {}};
  SupervisedScene scene({{good_run(), {}}}, inputs);
  REQUIRE(folder_entries(elsewhere / ".needed").size() == 1);
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(folder_entries(elsewhere / ".needed").empty());
}

TEST_CASE("the worker gets the request of the run folder as its only line", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  scene.supervise();
  const worker::Launch& launch = scene.launcher.launches.at(0);
  // The weights' initial distributions are added on the way: the folder does not hold them.
  nlohmann::json sent = nlohmann::json::parse(launch.input);
  REQUIRE_FALSE(sent.at("weights").empty());
  sent["weights"] = nlohmann::json::array();
  REQUIRE(sent == nlohmann::json::parse(read_file(scene.folder.request_file())));
  REQUIRE(launch.stderr_file == scene.folder.stderr_file());
  REQUIRE(launch.command.arguments == std::vector<std::string>{"worker"});
}

TEST_CASE("what the worker runs on is kept beside the events", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  scene.supervise();
  const auto json = nlohmann::json::parse(read_file(scene.folder.environment_file()));
  REQUIRE(json.at("device_name") == "test");
  REQUIRE(json.at("numerics_version") == 1);
  REQUIRE(json.at("revision") == "0123456789ab");
  REQUIRE(json.contains("host"));
  REQUIRE(json.at("variables").is_object());
  const AttemptStarted started = *read_events(scene.folder.events_file()).at(0).started;
  REQUIRE(started.recompute == "none");
  REQUIRE(nlohmann::json(*started.variables) == json.at("variables"));
}

TEST_CASE("progress is shown in a file of its own and not stored", "[run][supervisor]") {
  Script script = greeting();
  for (int step = 1; step <= 50; ++step) script.push_back(Says{lines::progress(step)});
  script =
      then(script, {IsSilent{1}, Says{lines::progress(51)}, Says{lines::finished(true)}, Exits{}});
  SupervisedScene scene({{script, {}}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.story() == "attempt hello environment finished ended");
  const auto progress =
      stored_event_from_line(std::string(trim(read_file(scene.folder.progress_file()))));
  REQUIRE(std::get<worker::Progress>(*progress.event).step == 51);
}

TEST_CASE("progress of an earlier attempt is forgotten", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  write_file_atomic(scene.folder.progress_file(), "old");
  scene.supervise();
  REQUIRE_FALSE(fs::exists(scene.folder.progress_file()));
}

TEST_CASE("attempts are counted on by the next supervisor", "[run][supervisor]") {
  SupervisedScene scene({{{Says{lines::hello}, Exits{{1, 0}}}, {}}, {good_run(), {}}});
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(read_events(scene.folder.events_file()).back().attempt == 2);
}

TEST_CASE("a worker that cannot be started fails the run with the reason", "[run][supervisor]") {
  SupervisedScene scene({});
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(scene.folder.status().reason == "no such program");
}

/// Fails to start so many workers, then starts those of the scripts.
class RefusingLauncher : public worker::Launcher {
 public:
  RefusingLauncher(worker::Launcher& launcher, int cause, int times)
      : launcher_(launcher), cause_(cause), left_(times) {}

  std::unique_ptr<worker::RunningWorker> start(const worker::Launch& launch) override {
    if (left_ > 0) {
      --left_;
      throw system_error("start 'worker'", cause_);
    }
    return launcher_.start(launch);
  }

 private:
  worker::Launcher& launcher_;
  int cause_, left_;
};

TEST_CASE("a run waits while the machine starts no worker", "[run][supervisor][hostile]") {
  const int cause = GENERATE(EAGAIN, ENOMEM, ETXTBSY, ENOENT, EACCES);
  CAPTURE(cause);
  SupervisedScene scene({{good_run(), {}}});
  RefusingLauncher launcher(scene.launcher, cause, 9);
  const double begun = scene.clock.seconds;
  REQUIRE(run::supervise(scene.folder, CommandBackend({"worker"}), launcher, scene.options) ==
          supervised_completed);
  CHECK(scene.clock.seconds - begun >= 2 + 10 + 7 * 60);
  CHECK(scene.folder.state() == RunState::completed);
}

TEST_CASE("a command that is not there fails its run, and holds up no other", "[run][supervisor]") {
  RunInputs inputs = small_inputs();
  inputs.experiment["backend"] = "external";
  inputs.experiment["external"]["command"] = {"/bin/true"};
  const TemporaryFolder cache;  // in which it is remembered what is allowed
  ::setenv("FORGE_CACHE_DIR", cache.path().c_str(), 1);
  SupervisedScene scene({{good_run(), {}}}, inputs);
  allow_command(scene.folder.record().identity, config::experiment_from_json(inputs.experiment));
  RefusingLauncher launcher(scene.launcher, ENOENT, 9);
  const int code =
      run::supervise(scene.folder, CommandBackend({"worker"}), launcher, scene.options);
  ::unsetenv("FORGE_CACHE_DIR");
  INFO(scene.last_event().dump());
  CHECK(code == supervised_failed);
  CHECK(contains(scene.folder.status().reason, "cannot start 'worker'"));
}

TEST_CASE("a run that waits for the machine can be stopped", "[run][supervisor][stop]") {
  SupervisedScene scene({});
  RefusingLauncher launcher(scene.launcher, EAGAIN, 1000);
  int waited = 0;
  scene.options.sleep = [&](double seconds) {
    scene.clock.seconds += seconds;
    if (++waited == 100) scene.folder.request_stop(StopRequest::after_checkpoint);
  };
  REQUIRE(run::supervise(scene.folder, CommandBackend({"worker"}), launcher, scene.options) ==
          supervised_stopped);
}

TEST_CASE("a completed run is not run again", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.launcher.launches.size() == 1);
  // A supervisor killed between its last event and DONE: the events are the truth.
  fs::remove(scene.folder.done_file());
  REQUIRE(scene.folder.state() == RunState::completed);
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.launcher.launches.size() == 1);
  REQUIRE(fs::exists(scene.folder.done_file()));
}

TEST_CASE("a run has one supervisor at a time", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  const auto lock = FileLock::try_acquire(scene.folder.lock_file());
  scene.folder.request_stop(StopRequest::after_checkpoint);
  REQUIRE(scene.folder.state() == RunState::running);
  REQUIRE(contains(error_of([&] { scene.supervise(); }), "is running already"));
  REQUIRE(scene.launcher.launches.empty());
  REQUIRE(fs::exists(scene.folder.stop_file()));  // it is meant for the one that runs
}

TEST_CASE("an events file torn in mid-line is mended by the next start", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  write_file_atomic(scene.folder.events_file(),
                    R"({"attempt":4,"event":"attempt","time":1})"
                    "\n"
                    R"({"attempt":4,"ev)");
  REQUIRE(scene.folder.state() == RunState::failed);
  REQUIRE(contains(scene.folder.status().reason, "supervisor was killed"));
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.story() == "attempt attempt hello environment train checkpoint finished ended");
  REQUIRE(scene.last_event().at("attempt") == 5);
}

}  // namespace
}  // namespace forge::run
