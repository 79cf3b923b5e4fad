// Which checkpoints of a worker count, and which one it goes on from.

#include "core/run/supervisor.h"

#include <csignal>

#include "core/base/files.h"
#include "core/run/checkpoint_space.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

TEST_CASE("a run whose checkpoint has no room is refused before its first step",
          "[run][supervisor][hostile]") {
  SupervisedScene scene({{good_run(), {}}});
  config::Experiment experiment;
  REQUIRE(check_checkpoint_space(scene.folder.path(), experiment).empty());
  experiment.model.hidden_size = 1 << 18;
  experiment.model.vocab_size = 1 << 28;
  REQUIRE(contains(error_of([&] { check_checkpoint_space(scene.folder.path(), experiment); }),
                   "a checkpoint takes "));
  experiment.backend = "of others";
  REQUIRE(check_checkpoint_space(scene.folder.path(), experiment).empty());
}

TEST_CASE("a checkpoint that is none does not count, and the older one stays",
          "[run][supervisor][hostile]") {
  const fs::path wrong = "000000002";
  weights::CheckpointState state;
  state.step = 2;
  const auto nothing = [](const fs::path&) {};
  const auto unfinished = [&](const fs::path& all) {
    save_checkpoint(all, 2);
    fs::resize_file(all / wrong / "weights.safetensors", 1);
  };
  const auto of_other_step = [&](const fs::path& all) {
    state.step = 3;
    fs::rename(weights::write_checkpoint(all, state, {}, {}), all / wrong);
  };
  const auto of_other_run = [&](const fs::path& all) {
    state.step = 2;
    state.identity = "ffffffffffff";
    weights::write_checkpoint(all, state, {}, {});
  };
  const auto a_file = [&](const fs::path& all) { write_file_atomic(all / wrong, "x"); };
  struct Case {
    std::function<void(const fs::path&)> write;
    std::string said;
  };
  for (const Case& that :
       std::vector<Case>{{nothing, "there is no folder"},
                         {a_file, "there is no folder"},
                         {unfinished, "weights.safetensors has 1 bytes"},
                         {of_other_step, "is the one of step 3, under the name of step 2"},
                         {of_other_run, "is of another run"}}) {
    SupervisedScene scene({});
    const fs::path all = scene.folder.checkpoints();
    auto request = nlohmann::json::parse(read_file(scene.folder.request_file()));
    request["experiment"]["train"]["keep_checkpoints"] = 1;
    write_file_atomic(scene.folder.request_file(), request.dump() + "\n");
    scene.launcher.add({then(greeting(),
                             {Saves{1},
                              Does{[&] { that.write(all); }},
                              Says{lines::checkpoint(2)},
                              Says{lines::finished(true)},
                              Exits{}}),
                        {}});
    CHECK(scene.supervise() == supervised_failed);
    CHECK(scene.story() == "attempt hello environment checkpoint ended");
    const std::string reason = scene.last_event().at("reason");
    CHECK(contains(reason, "the worker's checkpoint of step 2 cannot be kept: "));
    CHECK(contains(reason, that.said));
    CHECK(contains(scene.last_event().at("hint"), "the run keeps those before it"));
    CHECK(scene.folder.newest_checkpoint() == (all / "000000001").string());
  }
}

TEST_CASE("a link that comes into the place of a run's checkpoints ends the run",
          "[run][supervisor][hostile]") {
  const TemporaryFolder elsewhere;
  for (const int step : {1, 2, 3}) save_checkpoint(elsewhere.path(), step);
  SupervisedScene scene({});
  const auto exchange = [&] {
    fs::rename(scene.folder.checkpoints(), scene.folder.path() / "away");
    fs::create_directory_symlink(elsewhere.path(), scene.folder.checkpoints());
  };
  scene.launcher.add({then(greeting(),
                           {Saves{1},
                            Does{exchange},
                            Says{lines::checkpoint(3)},
                            Says{lines::finished(true)},
                            Exits{}}),
                      {}});
  CHECK(scene.supervise() == supervised_failed);
  const std::string reason = scene.last_event().at("reason");
  INFO(reason);
  CHECK(contains(reason, "checkpoints' is a symbolic link, and forge keeps a folder there"));
  CHECK(weights::list_checkpoints(elsewhere.path()).size() == 3);
  CHECK(!weights::is_acknowledged(elsewhere / "000000003"));
}

TEST_CASE("a checkpoint whose manifest is left to forge has one when it is acknowledged",
          "[run][supervisor]") {
  SupervisedScene scene(std::vector<WorkerScript>{});
  const fs::path checkpoint = scene.folder.checkpoints() / "000000001";
  const auto save = [&] {
    fs::create_directories(checkpoint);
    write_file_atomic(checkpoint / "counts.txt", "1 2 3\n");
  };
  Script script = greeting();
  script.insert(script.end(), {Does{save}, Saves{1}, Exits{{1, 0}}});
  scene.launcher.add({script, {}});
  scene.supervise();
  REQUIRE(scene.folder.newest_checkpoint() == checkpoint.string());
}

TEST_CASE("a checkpoint's name cannot climb out of the run folder", "[run][supervisor]") {
  for (const char* path : {"../../other", "checkpoints/../x", "checkpoints/1", "/tmp/x", ""}) {
    const nlohmann::json line = {
        {"event", "checkpoint"}, {"step", 1}, {"path", path}, {"bytes", 1}};
    const nlohmann::json ended = failure_of(then(greeting(), {Says{line.dump()}}));
    REQUIRE(contains(ended.at("reason"), "saved the checkpoint of step 1 as"));
    REQUIRE(contains(ended.at("hint"), "checkpoints/000000001"));
  }
}

TEST_CASE("only what was recorded makes an older checkpoint surplus", "[run][supervisor]") {
  SupervisedScene scene({});
  const auto run_ahead = [&] {
    for (const int step : {1, 2, 3, 4}) save_checkpoint(scene.folder.checkpoints(), step);
  };
  scene.options.retry_waits = {};
  scene.launcher.add(
      {then(greeting(), {Does{run_ahead}, Saves{1}, Saves{2}, Saves{3}, Exits{{0, SIGKILL}}}), {}});
  REQUIRE(scene.supervise() == supervised_failed);
  const fs::path all = scene.folder.checkpoints();
  REQUIRE(weights::list_checkpoints(all) ==
          std::vector<fs::path>{all / "000000002", all / "000000003", all / "000000004"});
  REQUIRE(scene.folder.newest_checkpoint() == (all / "000000003").string());
}

TEST_CASE("a checkpoint from which an unfinished run begins is no surplus", "[run][supervisor]") {
  for (const bool continues : {true, false}) {
    RunInputs longer = small_inputs();
    longer.experiment["train"]["max_steps"] = 9;
    SupervisedScene scene({}, longer);
    const fs::path runs = scene.folder.path().parent_path();
    const fs::path first = scene.folder.checkpoints() / "000000001";
    std::optional<RunFolder> other;
    const auto plan_other = [&] {
      RunInputs inputs = small_inputs();
      inputs.experiment["seed"] = 7;
      if (continues) {
        inputs.continue_from = {first, scene.folder.events_file(), 1, 1};
      } else {
        inputs.initial_weights = {first, "w1", "", {}};
      }
      other = new_run(runs, inputs);
    };
    scene.options.retry_waits = {};
    const Script dies = {Saves{2}, Saves{3}, Saves{4}, Exits{{0, SIGKILL}}};
    scene.launcher.add({then(then(greeting(), {Saves{1}, Does{plan_other}}), dies), {}});
    REQUIRE(scene.supervise() == supervised_failed);
    CHECK(path_exists(first));
    CHECK_FALSE(path_exists(scene.folder.checkpoints() / "000000002"));
    // Once the other run has a checkpoint of its own it is surplus.
    save_checkpoint(other->checkpoints(), 1);
    const worker::CheckpointSaved saved{1, "checkpoints/000000001", 1};
    append_event(*other, saved);
    scene.launcher.add({then(greeting(), {Saves{5}, Exits{{0, SIGKILL}}}), {}});
    REQUIRE(scene.supervise() == supervised_failed);
    CHECK_FALSE(path_exists(first));
  }
}

TEST_CASE("a run does not resume from a checkpoint that its events do not tell of",
          "[run][supervisor]") {
  SupervisedScene scene({});
  const auto run_ahead = [&] { save_checkpoint(scene.folder.checkpoints(), 100); };
  scene.launcher.add({then(greeting(), {Does{run_ahead}, Exits{{0, SIGKILL}}}), {}});
  scene.launcher.add({good_run(), {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(worker::request_from_line(scene.launcher.launches.at(1).input).resume_from.empty());
}

TEST_CASE("a damaged checkpoint is named and the one before it used", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  const fs::path whole = save_checkpoint(scene.folder.checkpoints(), 100);
  const fs::path cut = save_checkpoint(scene.folder.checkpoints(), 200);
  const fs::path empty = save_checkpoint(scene.folder.checkpoints(), 300);
  fs::resize_file(cut / "weights.safetensors", 3);
  fs::remove(empty / "manifest.json");
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(worker::request_from_line(scene.launcher.launches.at(0).input).resume_from ==
          whole.string());
  const nlohmann::json damaged = read_events(scene.folder.events_file())[0].json.at("damaged");
  REQUIRE(damaged.size() == 2);
  REQUIRE(contains(damaged[0], "000000300' is damaged: manifest.json cannot be read"));
  REQUIRE(contains(damaged[1], "000000200' is damaged: weights.safetensors has 3 bytes"));
}

TEST_CASE("a checkpoint of another run is not gone on from", "[run][supervisor]") {
  SupervisedScene scene({{good_run(), {}}});
  weights::CheckpointState state;
  state.step = 100;
  state.identity = scene.folder.record().key;
  const fs::path own = weights::write_checkpoint(scene.folder.checkpoints(), state, {}, {});
  state.step = 200;
  state.identity = "ffffffffffff";
  weights::write_checkpoint(scene.folder.checkpoints(), state, {}, {});
  const FoundCheckpoint found = scene.folder.find_checkpoint();
  REQUIRE(found.folder == own.string());
  REQUIRE(found.damaged.size() == 1);
  REQUIRE(contains(found.damaged[0], "000000200' is of another run, with key ffffffffffff"));
}

}  // namespace
}  // namespace forge::run
