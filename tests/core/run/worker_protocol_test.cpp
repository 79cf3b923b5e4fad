// What a supervisor believes of what a worker says.

#include "core/run/supervisor.h"

#include <csignal>

#include "core/base/files.h"
#include "tests/core/run/supervised_scene.h"

namespace forge::run {
namespace {

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
  const std::string other_loss = with(lines::train(2), "\"loss\":2.5", "\"loss\":2.25");
  CHECK(contains(reason_of({Says{lines::train(2)}, Says{other_loss}}),
                 "it said 'train' of step 2 twice, with the losses 2.5 and 2.25"));
  CHECK(contains(reason_of({Says{evaluation}, Says{with(evaluation, "4.0", "2.5")}}),
                 "it said 'evaluation' of step 3 twice, with the losses 4.0 and 2.5"));
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
  evaluates.evaluation_tokens[0].rows = 4;
  evaluates.experiment["train"]["seq_len"] = 8;
  CHECK(contains(evaluated_reason(evaluation),
                 "'tokens' of the evaluation of step 3 is 9, and its rows have 32 targets"));
  evaluates.evaluation_tokens[0].pad_id = 0;  // pads are not scored
  CHECK_FALSE(contains(evaluated_reason(evaluation), "targets"));
  CHECK(contains(evaluated_reason(with(evaluation, ":9", ":33")), "is 33, and its rows have 32"));
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
  CHECK(contains(reason_of({Says{started(3, tokens)}, Says{with(end, "meters\":1", "meters\":5")}}),
                 "'parameters' of 'finished' is 5, and of 'started' 1"));
  const std::string diverged = with(lines::train(3), "\"loss\":2.5", "\"loss\":\"nan\"");
  CHECK(contains(reason_of({Says{diverged}, Says{with(end, "n_loss\":2.5", "n_loss\":1.5")}}),
                 "'finished' says that train_loss is 1.5, and 'train' of step 3 said nan"));
}

TEST_CASE("a run that diverged is one until another attempt of it ends", "[run][supervisor]") {
  const config::TrainConfig train;
  const std::string started =
      R"({"event":"started","parameters":1,"first_step":0,"max_steps":3,"tokens_per_step":)" +
      std::to_string(int64_t{train.batch_size} * train.seq_len) + "}";
  const std::string failed = R"({"event":"failed","message":"loss nan","diverged":true})";
  SupervisedScene scene({{then(greeting(), {Says{started}, Says{failed}, Exits{{1, 0}}}), {}}});
  REQUIRE(scene.supervise() == supervised_failed);
  CHECK(scene.folder.status().state == RunState::failed);
  CHECK(scene.folder.status().diverged);
  CHECK(scene.last_event().at("diverged") == true);
  CHECK(scene.last_event().at("retry") == false);
  scene.launcher.add({{Exits{{1, 0}}}, {}});  // for another reason
  REQUIRE(scene.supervise() == supervised_failed);
  CHECK_FALSE(scene.folder.status().diverged);
  scene.launcher.add({good_run(), {}});
  REQUIRE(scene.supervise() == supervised_completed);
  CHECK_FALSE(scene.folder.status().diverged);
}

TEST_CASE("a worker that says that it diverged is believed where that can be",
          "[run][supervisor]") {
  const auto ended = failure_of(
      {{Says{lines::hello}, Says{R"({"event":"failed","message":"nan","diverged":true})"}}});
  CHECK(contains(ended.at("reason"), "it said that it diverged before it said 'started': nan"));
  CHECK(ended.at("diverged") == false);
}

}  // namespace
}  // namespace forge::run
