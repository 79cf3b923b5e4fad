#include "core/run/supervisor.h"

#include <sys/resource.h>

#include <csignal>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/run/checkpoint_space.h"
#include "core/run/event_log.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::run {
namespace {

using namespace tests;  // Says, Exits, …: the words of the scripts

/// A run folder, a fake worker for each script, and what came of supervising them.
class SupervisedScene {
 public:
  explicit SupervisedScene(std::vector<WorkerScript> scripts,
                           const RunInputs& inputs = small_inputs())
      : folder(new_run(runs_.path(), inputs)), launcher(clock, std::move(scripts)) {
    options.clock = [this] { return clock.seconds; };
    options.poll_seconds = 1;
    options.sleep = [this](double seconds) { clock.seconds += seconds; };
  }

  int supervise() { return run::supervise(folder, CommandBackend({"worker"}), launcher, options); }

  /// Names of the stored events, in order.
  std::string story() const {
    std::vector<std::string> names;
    for (const StoredEvent& event : read_events(folder.events_file())) names.push_back(event.name);
    return join(names, " ");
  }
  nlohmann::json last_event() const { return read_events(folder.events_file()).back().json; }

 private:
  TemporaryFolder runs_;

 public:
  RunFolder folder;
  FakeClock clock;
  FakeLauncher launcher;
  SupervisorOptions options;
};

Script good_run() {
  return {Says{lines::hello},
          Says{lines::environment},
          Says{lines::train(1)},
          Saves{1},
          Says{lines::finished(true)},
          Exits{{0, 0}}};
}

Script then(Script script, const Script& more) {
  script.insert(script.end(), more.begin(), more.end());
  return script;
}

Script greeting() { return {Says{lines::hello}, Says{lines::environment}}; }

/// Supervises a worker that is expected to fail and returns the "ended" line.
nlohmann::json failure_of(const Script& script, const RunInputs& inputs = small_inputs()) {
  SupervisedScene scene({{script, {}}}, inputs);
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(scene.folder.state() == RunState::failed);
  REQUIRE_FALSE(fs::exists(scene.folder.done_file()));
  REQUIRE(scene.last_event().at("event") == "ended");
  return scene.last_event();
}

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

TEST_CASE("a worker that prints rubbish is killed and its line quoted", "[run][supervisor]") {
  SupervisedScene scene(
      {{then(greeting(), {Says{"Epoch 1/3 \x1b[1m"}, Says{lines::finished(true)}}), {}}});
  REQUIRE(scene.supervise() == supervised_failed);
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"kill"});
  REQUIRE(scene.story() == "attempt hello environment ended");
  REQUIRE(contains(scene.last_event().at("reason"), "'Epoch 1/3 ?[1m'"));
}

TEST_CASE("a worker of another protocol is refused with what to do", "[run][supervisor]") {
  const auto ended = failure_of({Says{
      R"({"event":"hello","protocol":2,"backend":"x","backend_version":"1","numerics_version":0})"}});
  REQUIRE(contains(ended.at("reason"), "version 2 of the protocol and forge version 1"));
  REQUIRE(contains(ended.at("hint"), "same sources"));
}

TEST_CASE("a worker has to say hello first", "[run][supervisor]") {
  const auto ended = failure_of({Says{lines::train(1)}});
  REQUIRE(contains(ended.at("reason"), "first event was 'train' instead of 'hello'"));
}

TEST_CASE("a silent worker is killed at the limit and not before", "[run][supervisor]") {
  SupervisedScene patient({{then(greeting(),
                                 {IsSilent{118},
                                  Says{lines::train(1)},
                                  IsSilent{118},
                                  Says{lines::finished(true)},
                                  Exits{}}),
                            {}}});
  REQUIRE(patient.supervise() == supervised_completed);

  const auto ended = failure_of(then(greeting(), {IsSilent{122}, Says{lines::finished(true)}}));
  REQUIRE(contains(ended.at("reason"), "made no progress for 2m 00s"));
  REQUIRE(ended.at("retry") == false);

  REQUIRE(contains(failure_of({IsSilent{122}, Says{lines::hello}}).at("reason"), "no progress"));
}

TEST_CASE("the config says how long a worker may be silent", "[run][supervisor]") {
  for (const double patience : {40.0, 400.0}) {
    SupervisedScene scene(
        {{then(greeting(), {IsSilent{200}, Says{lines::finished(true)}, Exits{}}), {}}});
    auto request = nlohmann::json::parse(read_file(scene.folder.request_file()));
    request["experiment"]["train"]["hung_after_seconds"] = patience;
    write_file_atomic(scene.folder.request_file(), request.dump() + "\n");
    REQUIRE(scene.supervise() == (patience < 200 ? supervised_failed : supervised_completed));
  }
}

TEST_CASE("time that nobody watched is no silence", "[run][supervisor][hostile]") {
  struct Case {
    double patience, silence, suspended;
  };
  for (const Case& that : {Case{120, 50, 5000}, Case{4, 1, 5.2}}) {
    SupervisedScene scene({});
    scene.options.silence_seconds = that.patience;
    const auto suspended = [&] { scene.clock.seconds += that.suspended; };
    scene.launcher.add({then(greeting(),
                             {IsSilent{that.silence},
                              Does{suspended},
                              IsSilent{that.silence},
                              Says{lines::finished(true)},
                              Exits{}}),
                        {}});
    CHECK(scene.supervise() == supervised_completed);
  }
}

TEST_CASE("a slow first step of a worker that computes is waited for", "[run][supervisor]") {
  const auto scene_of = [](double silence) {
    return std::vector<WorkerScript>{{then(greeting(),
                                           {Says{lines::progress(0)},
                                            IsSilent{silence},
                                            Says{lines::progress(1)},
                                            IsSilent{1.5 * silence},
                                            Says{lines::finished(true)},
                                            Exits{}}),
                                      {}}};
  };
  for (const bool computes : {true, false}) {
    SupervisedScene scene(scene_of(400));
    scene.options.cpu_seconds = [&](int) { return computes ? scene.clock.seconds : 7; };
    CHECK(scene.supervise() == (computes ? supervised_completed : supervised_failed));
    if (!computes) {
      CHECK(contains(scene.last_event().at("hint"), "raise train.hung_after_seconds (now 120)"));
      CHECK_FALSE(contains(scene.last_event().at("hint"), "stderr.log"));
    }
  }
  SupervisedScene hung(scene_of(1300));  // more than ten times as long is too much
  hung.options.cpu_seconds = [&](int) { return hung.clock.seconds; };
  CHECK(hung.supervise() == supervised_failed);
}

TEST_CASE("a run's lock that somebody removes is put back", "[run][supervisor][hostile]") {
  SupervisedScene scene({});
  bool held = false;
  scene.launcher.add({then(greeting(),
                           {Does{[&] { remove_tree(scene.folder.lock_file()); }},
                            IsSilent{3},
                            Does{[&] { held = scene.folder.is_running(); }},
                            Says{lines::finished(true)},
                            Exits{}}),
                      {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(held);
}

TEST_CASE("a run whose lock another process has taken ends without a word in its events",
          "[run][supervisor][hostile]") {
  SupervisedScene scene({});
  std::optional<FileLock> other;
  scene.launcher.add({then(greeting(),
                           {Does{[&] {
                              remove_tree(scene.folder.lock_file());
                              other = FileLock::try_acquire(scene.folder.lock_file());
                            }},
                            IsSilent{3}}),
                      {}});
  REQUIRE(contains(error_of([&] { scene.supervise(); }), "another process has taken the run"));
  REQUIRE(scene.story() == "attempt hello environment");
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"kill"});
}

TEST_CASE("a run whose folder or events somebody removes ends and leaves nothing",
          "[run][supervisor][hostile]") {
  for (const bool whole : {true, false}) {
    SupervisedScene scene({});
    const fs::path removed = whole ? scene.folder.path() : scene.folder.events_file();
    scene.launcher.add({then(greeting(), {Does{[&] { remove_tree(removed); }}, IsSilent{3}}), {}});
    CHECK(contains(error_of([&] { scene.supervise(); }), "was removed while the run went on"));
    CHECK_FALSE(fs::exists(removed));
    CHECK(scene.launcher.signals == std::vector<std::string>{"kill"});
  }
}

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

TEST_CASE("only progress that goes on is a sign of life", "[run][supervisor]") {
  Script alive = greeting();
  Script hung = greeting();
  for (int i = 1; i <= 4; ++i) {
    alive = then(alive, {IsSilent{50}, Says{lines::progress(i)}});
    hung = then(hung, {IsSilent{50}, Says{lines::progress(7)}});
  }
  SupervisedScene scene({{then(alive, {Says{lines::finished(true)}, Exits{}}), {}}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(
      contains(failure_of(then(hung, {Says{lines::finished(true)}})).at("reason"), "no progress"));
}

TEST_CASE("a failure that the worker explains is passed on and not tried again",
          "[run][supervisor]") {
  const std::string failed =
      R"({"event":"failed","message":"no bfloat16 here","field":"train.precision","hint":"use float32"})";
  SupervisedScene scene({{then(greeting(), {Says{failed}, Exits{{1, 0}}}), {}}});
  REQUIRE(scene.supervise() == supervised_failed);
  const RunStatus status = scene.folder.status();
  REQUIRE(status.reason == "train.precision: no bfloat16 here");
  REQUIRE(status.hint == "use float32");
  REQUIRE(status.exit_status == 1);
  REQUIRE(scene.launcher.launches.size() == 1);
}

TEST_CASE("the last lines of stderr are kept with the end", "[run][supervisor]") {
  SupervisedScene scene({});
  write_file_atomic(scene.folder.stderr_file(), "of an earlier attempt\n");
  const auto prose = [&] {
    std::string text = read_file(scene.folder.stderr_file());
    for (int i = 1; i <= 30; ++i) text += "line " + std::to_string(i) + "\n";
    write_file_atomic(scene.folder.stderr_file(),
                      text + "bad \xff byte\n" + std::string(9999, 'x'));
  };
  scene.launcher.add({{Does{prose}, Exits{{7, 0}}}, {}});
  REQUIRE(scene.supervise() == supervised_failed);
  const RunStatus status = scene.folder.status();
  REQUIRE(contains(status.reason, "exited without a final event, with exit status 7"));
  REQUIRE(status.stderr_lines.size() == 20);
  REQUIRE(status.stderr_lines[0] == "line 13");
  REQUIRE(status.stderr_lines[18] == "bad \xef\xbf\xbd byte");
  REQUIRE(status.stderr_lines[19].size() < 500);
}

TEST_CASE("leaving with status 0 but no last word is a failure", "[run][supervisor]") {
  const auto ended = failure_of(then(greeting(), {Says{lines::train(1)}, Exits{{0, 0}}}));
  REQUIRE(contains(ended.at("reason"), "without a final event, with exit status 0"));
}

TEST_CASE("what a worker says after its last word counts for nothing", "[run][supervisor]") {
  SupervisedScene scene(
      {{then(
            greeting(),
            {Says{lines::finished(true)}, Says{"bye"}, Says{lines::train(9)}, Exits{{0, SIGSEGV}}}),
        {}}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.story() == "attempt hello environment finished ended");
  REQUIRE(scene.last_event().at("signal") == SIGSEGV);
}

TEST_CASE("events that cannot be true break the protocol", "[run][supervisor]") {
  const auto reason_of = [](const Script& said) {
    return failure_of(then(greeting(), said)).at("reason").get<std::string>();
  };
  const auto with = [](std::string line, const std::string& part, const std::string& other) {
    REQUIRE(contains(line, part));
    return line.replace(line.find(part), part.size(), other);
  };
  const std::string end = lines::finished(true);
  const std::string evaluation =
      R"({"event":"evaluation","step":3,"loss":4.0,"tokens":9,"seconds":1})";
  CHECK(contains(reason_of({Says{with(end, "\"step\":3", "\"step\":1")}}),
                 "it finished as completed at step 1 of 3"));
  CHECK(contains(reason_of({Says{with(end, "\"step\":3", "\"step\":4")}}),
                 "'finished' is of step 4, and the config has 3 steps"));
  CHECK(contains(reason_of({Says{lines::train(4)}}), "'train' is of step 4"));
  CHECK(contains(reason_of({Says{lines::checkpoint(4)}}), "'checkpoint' is of step 4"));
  CHECK(contains(reason_of({Says{lines::train(2)}, Says{lines::train(1)}}),
                 "'train' is of step 1, after step 2"));
  CHECK(contains(reason_of({Says{evaluation}, Says{end}}),
                 "eval_loss is 2.5, and the evaluation of step 3 said 4"));
  CHECK(contains(
      reason_of({Says{with(
          evaluation, "\"seconds\"", R"("row_losses":[5,5.2],"row_tokens":[8,1],"seconds")")}}),
      "the worker broke the protocol: row_losses of the evaluation of step 3"));
  CHECK(contains(reason_of({Says{with(lines::train(1), "second\":5", "second\":-5")}}),
                 "'tokens_per_second' is negative: -5"));
  CHECK(contains(reason_of({Says{with(lines::train(1), "second\":5", "second\":1e300")}}),
                 "'tokens_per_second' is impossible: 1e+300"));
  for (const char* loss : {"-5", "\"-inf\""}) {
    INFO(loss);
    CHECK(contains(
        reason_of({Says{with(lines::train(1), "\"loss\":2.5", std::string("\"loss\":") + loss)}}),
        "'loss' is negative"));
    CHECK(contains(
        reason_of({Says{with(evaluation, "\"loss\":4.0", std::string("\"loss\":") + loss)}}),
        "'loss' is negative"));
    CHECK(contains(
        reason_of({Says{with(end, "eval_loss\":2.5", std::string("eval_loss\":") + loss)}}),
        "'eval_loss' is negative"));
  }
  CHECK(contains(reason_of({Says{lines::hello}}), "it said 'hello' twice"));
  RunInputs evaluates = small_inputs();
  evaluates.experiment["train"]["eval_rows"] = 4;
  const auto evaluated_reason = [&](const std::string& line) {
    return failure_of(then(greeting(), {Says{line}}), evaluates).at("reason").get<std::string>();
  };
  CHECK(contains(evaluated_reason(with(end, "\"eval_loss\":2.5,", "")),
                 "it finished as completed without eval_loss"));
  CHECK(contains(evaluated_reason(end),
                 "it finished as completed without an 'evaluation' of step 3"));
  const auto started = [](int64_t max_steps, int64_t tokens) {
    return R"({"event":"started","parameters":1,"first_step":0,"max_steps":)" +
           std::to_string(max_steps) + R"(,"tokens_per_step":)" + std::to_string(tokens) + "}";
  };
  const config::TrainConfig train;
  const int64_t tokens = int64_t{train.batch_size} * train.seq_len;
  CHECK(contains(reason_of({Says{started(4, tokens)}}), "'max_steps' of 'started' is 4"));
  CHECK(contains(reason_of({Says{started(3, tokens + 1)}}), "'tokens_per_step' of 'started' is"));
  CHECK(contains(reason_of({Says{started(3, tokens)}, Says{started(3, tokens)}}),
                 "it said 'started' twice"));
}

TEST_CASE("a finished worker that does not leave is ended and the log says so",
          "[run][supervisor][hostile]") {
  SupervisedScene scene({{then(greeting(), {Says{lines::finished(true)}}), {}}});
  const double began = scene.clock.seconds;
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.launcher.signals == std::vector<std::string>{"kill"});
  REQUIRE(scene.clock.seconds - began <= scene.options.exit_grace_seconds + 2);
  REQUIRE(scene.last_event().at("reason") ==
          "the worker did not exit within 30s after its last event and was killed");
  REQUIRE(scene.folder.state() == RunState::completed);
}

TEST_CASE("a run whose last file cannot be written is completed all the same",
          "[run][supervisor][hostile]") {
  SupervisedScene scene({});
  const auto block = [&] { make_directories(scene.folder.done_file() / "in the way"); };
  scene.launcher.add({then(greeting(), {Does{block}, Says{lines::finished(true)}, Exits{}}), {}});
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(scene.folder.state() == RunState::completed);
}

TEST_CASE("a run goes on where a surplus checkpoint cannot be removed",
          "[run][supervisor][hostile]") {
  SupervisedScene scene(
      {{then(greeting(), {Saves{1}, Saves{2}, Saves{3}, Says{lines::finished(true)}, Exits{}}),
        {}}});
  const fs::path all = scene.folder.checkpoints();
  make_directories(aside_path(all / "000000001", "old") / "in the way");
  REQUIRE(scene.supervise() == supervised_completed);
  REQUIRE(weights::list_checkpoints(all).size() == 3);
}

TEST_CASE("a stop is a stop whatever its file is", "[run][supervisor][stop][hostile]") {
  SupervisedScene scene({});
  scene.launcher.add({then(greeting(),
                           {Does{[&] { make_directories(scene.folder.stop_file()); }},
                            IsSilent{60},
                            Says{lines::train(99)}}),
                      {Says{lines::finished(false)}, Exits{{3, 0}}}});
  REQUIRE(scene.supervise() == supervised_stopped);
}

TEST_CASE("events are not appended to a file that has another name elsewhere",
          "[run][supervisor][hostile]") {
  for (const char* name : {"events.jsonl", "stderr.log", "supervisor.log", "lock"}) {
    SupervisedScene scene({{good_run(), {}}});
    const TemporaryFolder elsewhere;
    const fs::path theirs = elsewhere.write("theirs", "text without an end");
    fs::remove(scene.folder.path() / name);
    fs::create_hard_link(theirs, scene.folder.path() / name);
    CHECK(contains(error_of([&] { scene.supervise(); }), "has another name elsewhere"));
    CHECK(read_file(theirs) == "text without an end");
    CHECK(scene.launcher.launches.empty());
  }
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
  for (const Case& that : std::vector<Case>{{nothing, "there is no folder"},
                                            {a_file, "there is no folder"},
                                            {unfinished, "weights.safetensors has 1 bytes"},
                                            {of_other_step, "is one of step 3"},
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

TEST_CASE("a run with links in place of its own files is not begun", "[run][supervisor][hostile]") {
  const TemporaryFolder elsewhere;
  elsewhere.write("000000001/mine", "x");
  const fs::path theirs = elsewhere.write("file", "whole\ncut");
  SupervisedScene scene({{good_run(), {}}});
  const run::RunFolder& run = scene.folder;
  const auto is_refused = [&](const fs::path& link, const fs::path& target) {
    CAPTURE(link);
    fs::create_symlink(target, link);
    CHECK(contains(error_of([&] { scene.supervise(); }), "is a symbolic link"));
    CHECK(contains(error_of([&] {
                     write_run_folder(plan_run(small_inputs(), run.path().parent_path(), false),
                                      small_inputs());
                   }),
                   "is a symbolic link"));
    fs::remove(link);
  };
  for (const fs::path& target : {theirs, elsewhere / "new"}) {
    for (const fs::path& file :
         {run.lock_file(), run.events_file(), run.stderr_file(), run.supervisor_log()})
      is_refused(file, target);
  }
  is_refused(run.checkpoints(), elsewhere.path());
  is_refused(run.checkpoints(), elsewhere / "new");
  REQUIRE(read_file(theirs) == "whole\ncut");
  REQUIRE_FALSE(fs::exists(elsewhere / "new"));
  REQUIRE(fs::exists(elsewhere / "000000001/mine"));
  REQUIRE(scene.launcher.launches.empty());
  // The folder itself.
  const fs::path away = elsewhere / run.id();
  fs::rename(run.path(), away);
  is_refused(run.path(), away);
  REQUIRE_FALSE(fs::exists(away / "lock"));
}

TEST_CASE("latest progress is not written through a link", "[run][supervisor][hostile]") {
  const TemporaryFolder elsewhere;
  const fs::path theirs = elsewhere.write("file", "text");
  SupervisedScene scene({{then(greeting(), then({Says{lines::progress(1)}}, good_run())), {}}});
  fs::create_symlink(theirs, scene.folder.progress_file().string() + ".tmp");
  scene.supervise();
  REQUIRE(read_file(theirs) == "text");
}

}  // namespace
}  // namespace forge::run
