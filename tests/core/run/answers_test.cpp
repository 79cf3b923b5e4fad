#include "core/base/fs.h"
#include "core/config/json.h"
#include "core/data/prepare.h"
#include "core/data/tasks/rows.h"
#include "core/data/tasks/spec.h"
#include "core/run/event_log.h"
#include "core/run/supervisor.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_launcher.h"

namespace forge::run {
namespace {

using namespace tests;

/// A run on copies of four numbers in rows of ten: one copy a row.
RunInputs copying_inputs() {
  config::Experiment experiment;
  experiment.data.source = "task";
  experiment.data.task.name = "copy";
  experiment.data.task.length = 4;
  experiment.model.vocab_size = 6;
  experiment.train.seq_len = 9;
  experiment.train.eval_rows = 2;
  const data::PreparedData data = data::prepare(experiment, "/nowhere", {});
  RunInputs inputs = small_inputs();
  inputs.experiment = config::to_json(experiment);
  protocol::TokenSource rows;
  rows.task = data.task;
  rows.rows = data.train.at(0).rows;
  inputs.train_tokens = {rows};
  rows.rows = data.evaluation.at(0).rows;
  inputs.evaluation_tokens = {rows};
  return inputs;
}

/// The line that answers a row with what the task's rows hold, but for `wrong` ids at its end.
std::string answer(const RunInputs& inputs, int64_t row, int wrong) {
  const auto task = data::tasks::task_of(inputs.evaluation_tokens.at(0).task);
  const data::tasks::TaskRows rows(*task, 1, data::Split::evaluation, 9);
  protocol::Answers answers;
  answers.step = 3;
  answers.row = row;
  const std::vector<int32_t> tokens = rows.first_instance(row).tokens;
  answers.ids.assign(tokens.end() - 4, tokens.end());
  for (int i = 0; i < wrong; ++i) answers.ids[static_cast<size_t>(3 - i)] = 5;
  return protocol::to_line(protocol::Event(answers));
}

struct Supervised {
  int status;
  std::vector<StoredEvent> events;
};

Supervised supervise_copying(const std::vector<std::string>& said) {
  const TemporaryFolder runs;
  const RunInputs inputs = copying_inputs();
  const PlannedRun planned = plan_run(inputs, runs.path(), false);
  write_run_folder(planned, inputs);
  Script script = {Says{lines::hello}, Says{lines::environment}};
  for (const std::string& line : said) script.push_back(Says{line});
  script.push_back(Says{lines::finished(true)});
  script.push_back(Exits{{0, 0}});
  FakeClock clock;
  FakeLauncher launcher(clock, {{script, {}}});
  SupervisorOptions options;
  options.clock = [&] { return clock.seconds; };
  options.poll_seconds = 1;
  const int status = supervise(planned.folder, CommandBackend({"worker"}), launcher, options);
  return {status, read_events(planned.folder.events_file())};
}

const std::string evaluation =
    R"({"event":"evaluation","step":3,"loss":0.5,"tokens":8,"seconds":1})";

TEST_CASE("answers become the scores of the evaluation behind them and are not kept",
          "[run][supervisor]") {
  const RunInputs inputs = copying_inputs();
  const Supervised run =
      supervise_copying({answer(inputs, 0, 0), answer(inputs, 1, 2), evaluation, evaluation});
  REQUIRE(run.status == supervised_completed);
  std::vector<nlohmann::json> evaluations;
  for (const StoredEvent& event : run.events) {
    REQUIRE(event.name != "answers");
    if (event.name == "evaluation") evaluations.push_back(event.json);
  }
  REQUIRE(evaluations.size() == 2);
  const nlohmann::json& scores = evaluations[0].at("scores");
  REQUIRE(scores.at("token_accuracy").at("value") == 6.0 / 8);
  REQUIRE(scores.at("token_accuracy").at("count") == 8);
  REQUIRE(scores.at("sequence_accuracy").at("value") == 0.5);
  REQUIRE(evaluations[1].at("scores").empty());
}

TEST_CASE("an answer that cannot be one ends the run with the reason", "[run][supervisor]") {
  const Supervised run = supervise_copying(
      {R"({"event":"answers","step":3,"kind":"likeliest","row":0,"ids":[1,2,3]})", evaluation});
  REQUIRE(run.status == supervised_failed);
  const std::string reason = run.events.back().json.at("reason");
  REQUIRE(contains(reason, "answered row 0 with 3 ids instead of 4"));
}

TEST_CASE("answers that nobody asked for end the run", "[run][supervisor]") {
  const Supervised run = supervise_copying(
      {R"({"event":"answers","step":3,"kind":"loss","row":0,"values":[1]})", evaluation});
  REQUIRE(run.status == supervised_failed);
  REQUIRE(contains(run.events.back().json.at("reason"), "does not ask for"));
}

}  // namespace
}  // namespace forge::run
