// Which failures are tried again, and when.

#include "core/run/supervisor.h"

#include <sys/resource.h>

#include <csignal>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/data/stories/toy_stories.h"
#include "core/run/request.h"
#include "tests/core/data/rows/small_experiment.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

TEST_CASE("a worker killed by a signal is started again from the newest checkpoint",
          "[run][supervisor]") {
  SupervisedScene scene({});
  const fs::path checkpoint = scene.folder.checkpoints() / "000000001";
  const auto save = [&] { save_checkpoint(scene.folder.checkpoints(), 1); };
  scene.launcher.add({then(greeting(), {Does{save}, Saves{1}, Exits{{0, SIGKILL}}}), {}});
  scene.launcher.add({good_run(), {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.story() ==
          "attempt hello environment checkpoint ended "
          "attempt hello environment train checkpoint finished ended");
  const auto events = read_events(scene.folder.events_file());
  REQUIRE(events[4].json.at("retry") == true);
  REQUIRE(events[4].json.at("signal") == SIGKILL);
  REQUIRE(events[5].attempt == 2);
  const auto first = worker::request_from_line(scene.launcher.launches.at(0).input);
  const auto second = worker::request_from_line(scene.launcher.launches.at(1).input);
  REQUIRE(first.resume_from.empty());
  REQUIRE_FALSE(first.weights.empty());
  REQUIRE(second.resume_from == checkpoint.string());
  REQUIRE(second.weights.empty());
}

/// A run on a text in a cache of its own.
struct PreparedScene {
  PreparedScene() {
    ::setenv("FORGE_CACHE_DIR", cache.path().c_str(), 1);
    config::Experiment experiment = data::small_experiment();
    experiment.train.max_steps = 3;
    experiment.train.eval_rows = 0;
    experiment.data.source = "text";
    std::string stories;
    for (uint64_t i = 0; i < 200; ++i)
      stories += data::toy_story(8, data::Split::training, i) + "\n\n";
    experiment.data.path = cache.write("text.txt", stories).string();
    const data::PreparedData data = data::prepare(experiment, cache.path(), {});
    inputs.experiment = config::to_json(experiment);
    inputs.data_fingerprint = data.data_fingerprint;
    inputs.tokenizer_fingerprint = data.tokenizer_fingerprint;
    inputs.train_tokens = token_sources(data, data.train);
    inputs.evaluation_tokens = token_sources(data, data.evaluation);
  }
  ~PreparedScene() { ::unsetenv("FORGE_CACHE_DIR"); }
  PreparedScene(const PreparedScene&) = delete;
  PreparedScene& operator=(const PreparedScene&) = delete;

  const TemporaryFolder cache;
  RunInputs inputs = small_inputs();
};

TEST_CASE("tokens that are deleted while a run waits, or between its attempts, are prepared anew",
          "[run][supervisor]") {
  const PreparedScene prepared;
  SupervisedScene scene({}, prepared.inputs);
  const auto empty = [&] { remove_tree(prepared.cache / "data"); };
  scene.launcher.add({then(greeting(), {Does{empty}, Exits{{0, SIGKILL}}}), {}});
  scene.launcher.add({good_run(), {}});
  empty();
  const int exit_code = scene.supervise();
  INFO(scene.last_event().dump());
  REQUIRE(exit_code == supervised_completed);
  REQUIRE(scene.launcher.launches.size() == 2);
  for (const worker::Launch& launch : scene.launcher.launches)
    REQUIRE_FALSE(worker::request_from_line(launch.input).train_tokens.at(0).path.empty());
  REQUIRE(path_exists(read_request(scene.folder).train_tokens.at(0).path));
}

TEST_CASE("tokens that are deleted with their text are named with what prepares them",
          "[run][supervisor]") {
  const PreparedScene prepared;
  SupervisedScene scene({}, prepared.inputs);
  remove_tree(prepared.cache / "data");
  fs::remove(prepared.cache / "text.txt");
  error_of([&] { scene.supervise(); });
  const RunStatus status = scene.folder.status();
  REQUIRE(contains(status.reason, "train.tokens' are gone and cannot be prepared anew"));
  REQUIRE(contains(status.hint, "'forge runs resume " + scene.folder.id() + "' prepares them"));
  REQUIRE(scene.launcher.launches.empty());
}

TEST_CASE("a worker that could not write what must be kept gives the run an exit code of its own",
          "[run][supervisor]") {
  const std::string failed =
      R"({"event":"failed","message":"the checkpoint of step 9 could not be written"})";
  SupervisedScene scene({{then(greeting(), {Says{failed}, Exits{{worker::exit_storage, 0}}}), {}}});
  REQUIRE(scene.supervise() == supervised_storage);
  REQUIRE(scene.folder.status().exit_status == worker::exit_storage);
  REQUIRE(contains(scene.folder.status().reason, "could not be written"));
  REQUIRE(scene.launcher.launches.size() == 1);
}

const WorkerScript dies{{Says{lines::hello}, Exits{{0, SIGBUS}}}, {}};

/// "2 10 60 -": how long was waited after each attempt, and "-" where nothing was tried again.
std::string waits_of(const SupervisedScene& scene) {
  std::vector<std::string> waits;
  for (const StoredEvent& event : read_events(scene.folder.events_file())) {
    if (event.name != "ended") continue;
    const bool retry = event.json.at("retry");
    REQUIRE(retry == event.json.contains("wait_seconds"));
    waits.push_back(retry ? shortest(event.json.at("wait_seconds")) : "-");
  }
  return join(waits, " ");
}

TEST_CASE("a kill under a limit of CPU time names the limit", "[run][supervisor]") {
  struct rlimit before {};
  REQUIRE(::getrlimit(RLIMIT_CPU, &before) == 0);
  const int signal = GENERATE(SIGKILL, SIGXCPU);
  const WorkerScript killed{{Says{lines::hello}, Exits{{0, signal}}}, {}};
  SupervisedScene scene({killed});
  scene.options.retry_waits = {};
  struct rlimit limited = before;
  limited.rlim_cur = 1'000'000;
  REQUIRE(::setrlimit(RLIMIT_CPU, &limited) == 0);
  const int code = scene.supervise();
  ::setrlimit(RLIMIT_CPU, &before);
  REQUIRE(code == supervised_failed);
  REQUIRE(contains(scene.folder.status().hint, "1000000 seconds of CPU time"));
}

TEST_CASE("before each retry there is a longer wait, and then the run has failed",
          "[run][supervisor]") {
  SupervisedScene scene({dies, dies, dies, dies, dies});
  std::vector<double> started;
  scene.options.at_end = [&](int) { started.push_back(scene.clock.seconds); };
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(scene.launcher.launches.size() == 4);
  REQUIRE(waits_of(scene) == "2.0 10.0 60.0 -");
  REQUIRE(started.at(0) - 1000 >= 72);
  const RunStatus status = scene.folder.status();
  REQUIRE(status.attempt == 4);
  REQUIRE(status.signal == SIGBUS);
  REQUIRE(contains(status.reason, "killed by signal 7"));
}

TEST_CASE("a worker that saves a checkpoint has got further and waits begin anew",
          "[run][supervisor]") {
  SupervisedScene scene({dies, dies});
  const auto save = [&] { save_checkpoint(scene.folder.checkpoints(), 1); };
  scene.launcher.add({then(greeting(), {Does{save}, Saves{1}, Exits{{0, SIGKILL}}}), {}});
  scene.launcher.add({good_run(), {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(waits_of(scene) == "2.0 10.0 2.0 -");
}

TEST_CASE("a checkpoint that the next worker cannot begin with is no progress",
          "[run][supervisor]") {
  SupervisedScene scene({});
  const auto damage = [&] {
    write_file_atomic(scene.folder.checkpoints() / "000000001" / "manifest.json", "{");
  };
  for (int i = 0; i < 5; ++i)
    scene.launcher.add({then(greeting(), {Saves{1}, Does{damage}, Exits{{0, SIGKILL}}}), {}});
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(waits_of(scene) == "2.0 10.0 60.0 -");
}

TEST_CASE("a failure is tried again where the worker says that this may mend it",
          "[run][supervisor]") {
  const std::string busy = R"({"event":"failed","message":"all devices are busy","retry":true})";
  SupervisedScene scene({{then(greeting(), {Says{busy}, Exits{{1, 0}}}), {}}, {good_run(), {}}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(waits_of(scene) == "2.0 -");
  const auto ended = read_events(scene.folder.events_file()).at(4).json;
  REQUIRE(ended.at("event") == "ended");
  REQUIRE(ended.at("reason") == "all devices are busy");
}

TEST_CASE("without waits nothing is tried again", "[run][supervisor]") {
  SupervisedScene scene({dies, dies});
  scene.options.retry_waits = {};
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(waits_of(scene) == "-");
}

TEST_CASE("a stop ends the wait for a retry at once", "[run][supervisor][stop]") {
  SupervisedScene scene({dies, dies});
  int waited = 0;
  scene.options.sleep = [&](double seconds) {
    scene.clock.seconds += seconds;
    if (++waited == 2) scene.folder.request_stop(StopRequest::after_checkpoint);
  };
  scene.options.retry_waits = {60};
  REQUIRE(scene.supervise() == supervised_stopped);
  REQUIRE(waited == 2);
  REQUIRE(scene.launcher.launches.size() == 1);
  const RunStatus status = scene.folder.status();
  REQUIRE(status.state == RunState::stopped);
  REQUIRE_FALSE(status.interrupted);
  REQUIRE(contains(status.reason, "while it waited"));
}

TEST_CASE("while it waits the supervisor looks after what else there is to do",
          "[run][supervisor]") {
  SupervisedScene scene({dies, {good_run(), {}}});
  scene.options.retry_waits = {60};
  int looked = 0;
  scene.options.periodic_task = [&] { ++looked; };
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(looked >= 60 / 5 - 1);
}

TEST_CASE("waits are read from a list of seconds", "[run][supervisor]") {
  REQUIRE(retry_waits_from_text("2, 0.5,60") == std::vector<double>{2, 0.5, 60});
  REQUIRE(retry_waits_from_text(" ").empty());
  for (const char* wrong : {"2,,3", "soon", "-1", "nan", "1e9", "3s"})
    REQUIRE(contains(error_of([&] { retry_waits_from_text(wrong); }), "no time to wait"));
}

}  // namespace
}  // namespace forge::run
