#include "core/run/scorer.h"
#include "core/base/files.h"
#include "core/config/experiment.h"
#include "core/data/rows/prepare.h"
#include "core/data/rows/token_file.h"
#include "core/data/tasks/task_rows.h"
#include "core/data/tasks/task_spec.h"
#include "core/model/parameters.h"
#include "core/run/event_log.h"
#include "core/run/supervisor.h"
#include "tests/core/data/tasks/capo_experiment.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::contains;
using tests::error_of;
using worker::AnswerKind;

/// An evaluation of so many rows of a task.
struct Asked {
  explicit Asked(const std::string& name, int64_t rows = 5) {
    config::TaskConfig& task = experiment.data.task;
    task = {};
    task.name = name;
    if (name == "copy") task.length = 4;
    if (name == "brevo1") task.max_nodes = 8;
    if (name == "capo") task.people = 20;
    request.evaluation_tokens.resize(1);
    request.evaluation_tokens[0].rows = rows;
    request.evaluation_tokens[0].task = data::tasks::make_spec(experiment.data);
    ask();
  }
  void ask() {
    request.experiment = config::to_json(experiment);
    request_answers(experiment, request);
  }

  config::Experiment experiment = tests::capo_experiment(9);
  worker::Request request;
};

TEST_CASE("a request asks what the task of its evaluation rows wants to know") {
  using Kinds = std::vector<AnswerKind>;
  REQUIRE(Asked("copy").request.answers == Kinds{AnswerKind::likeliest});
  REQUIRE(Asked("brevo1").request.answers == Kinds{AnswerKind::continuation});
  REQUIRE(Asked("lano").request.answers ==
          Kinds{AnswerKind::log_probabilities, AnswerKind::continuation});
  REQUIRE(Asked("capo").request.answers == Kinds{AnswerKind::loss});
}

TEST_CASE("no more rows are gone on with than train.eval_prompts says and than there are") {
  Asked asked("brevo1", 500);
  REQUIRE(asked.request.answer_rows == 100);
  asked.experiment.train.eval_prompts = 7;
  asked.ask();
  REQUIRE(asked.request.answer_rows == 7);
  REQUIRE(asked.request.answers.size() == 1);
  REQUIRE(Asked("brevo1", 5).request.answer_rows == 5);
}

TEST_CASE("nothing is asked of text and nothing is made of it") {
  worker::Request request;
  request.evaluation_tokens = {{"/cache/evaluation.tokens", 5}};
  request.answers = {AnswerKind::likeliest};  // of a request before
  request_answers(tests::capo_experiment(9), request);
  REQUIRE(request.answers.empty());
  REQUIRE(request.answer_rows == 0);
  Scorer scorer(request, "");
  REQUIRE(scorer.finish().empty());
  REQUIRE(contains(error_of([&] {
                     scorer.add({1, AnswerKind::likeliest, 0, {1}, {}});
                   }),
                   "unrequested answers"));
}

TEST_CASE("an scorer makes scores of a worker's answers, evaluation by evaluation") {
  const Asked asked("copy", 2);
  Scorer scorer(asked.request, "");
  const auto task = data::tasks::task_of(asked.request.evaluation_tokens.at(0).task);
  const data::tasks::TaskRows rows(*task, 1, data::Split::evaluation, 9);
  const auto right = [&](int64_t row) {
    const std::vector<int32_t> text = rows.first_instance(row).tokens;
    return std::vector<int32_t>(text.end() - 4, text.end());
  };
  scorer.add({10, AnswerKind::likeliest, 0, right(0), {}});
  std::vector<int32_t> wrong = right(1);
  wrong[3] = (wrong[3] + 1) % 4;
  scorer.add({10, AnswerKind::likeliest, 1, wrong, {}});
  scorer.add({10, AnswerKind::likeliest, 1, wrong, {}});  // sent again
  std::map<std::string, worker::Score> scores = scorer.finish();
  REQUIRE(scores.size() == 5);
  REQUIRE(scores.at("token_accuracy").value == Approx(7.0 / 8));
  REQUIRE(scores.at("token_accuracy").count == 8);
  REQUIRE(scores.at("sequence_accuracy").value == 0.5);
  REQUIRE(scores.at("sequence_accuracy").count == 2);
  for (const int64_t row : {1, 0}) scorer.add({20, AnswerKind::likeliest, row, right(row), {}});
  scores = scorer.finish(20);
  REQUIRE(scores.at("sequence_accuracy").value == 1);
  REQUIRE(scores.at("sequence_accuracy").count == 2);
  REQUIRE(scorer.finish(30).empty());
}

TEST_CASE("an evaluation is scored by all of its rows, each once, and by no other's") {
  const Asked asked("copy", 2);
  Scorer scorer(asked.request, "");
  const auto add = [&](int64_t step, int64_t row, int32_t id) {
    scorer.add({step, AnswerKind::likeliest, row, {id, 0, 0, 0}, {}});
  };
  add(10, 0, 1);
  CHECK(contains(error_of([&] { add(10, 0, 2); }), "row 0 twice"));
  CHECK(contains(error_of([&] { add(20, 1, 1); }), "of step 20 behind step 10"));
  CHECK(contains(error_of([&] { scorer.finish(10); }), "for 1 of 2 rows (likeliest)"));
  add(10, 1, 1);
  CHECK(contains(error_of([&] { scorer.finish(20); }), "of step 10, and evaluated after step 20"));
  scorer.forget();
  CHECK(scorer.finish(20).empty());
}

TEST_CASE("each kind of answer goes where it is asked for and is refused elsewhere") {
  const std::vector<std::pair<AnswerKind, std::string>> kinds = {
      {AnswerKind::likeliest, "likeliest ids"},
      {AnswerKind::loss, "losses"},
      {AnswerKind::log_probabilities, "log probabilities"},
      {AnswerKind::continuation, "continuations"}};
  for (const char* name : {"copy", "brevo1", "lano"}) {
    const Asked asked(name);
    Scorer scorer(asked.request, "");
    const std::vector<AnswerKind>& wanted = asked.request.answers;
    for (const auto& [kind, words] : kinds) {
      INFO(name << " " << words);
      const std::string error = error_of([&, kind = kind] { scorer.add({1, kind, 9, {}, {}}); });
      const bool is_wanted = std::find(wanted.begin(), wanted.end(), kind) != wanted.end();
      REQUIRE(contains(error, is_wanted ? "for row 9 of 5" : "answered " + words + ", which"));
    }
  }
}

TEST_CASE("Capo is examined with the run's files and the model's number of weights") {
  for (const config::RowKind kind : {config::RowKind::packed, config::RowKind::padded}) {
    const tests::TemporaryFolder cache;
    config::Experiment experiment = tests::capo_experiment(700);
    experiment.data.rows = kind;
    const data::PreparedData data = data::prepare(experiment, cache.path(), {});
    worker::Request request;
    request.experiment = config::to_json(experiment);
    worker::TokenSource rows;
    rows.path = data.evaluation.at(0).tokens.string();
    rows.rows = 1;  // the first of those that are there
    rows.pad_id = data.pad_id;
    rows.task = data.task;
    request.evaluation_tokens = {rows};
    request_answers(experiment, request);
    Scorer scorer(request, data.tokenizer);
    const data::TokenFile tokens(data.evaluation.at(0).tokens);
    const bool padded = kind == config::RowKind::padded;
    const int64_t targets = padded ? tokens.document(0).count - 1 : 700;
    scorer.add({1, AnswerKind::loss, 0, {}, std::vector<double>(static_cast<size_t>(targets))});
    const std::map<std::string, worker::Score> scores = scorer.finish();
    const auto weights = static_cast<double>(model::parameter_count(experiment.model));
    REQUIRE(scores.at("bits_per_parameter").value ==
            Approx(data::tasks::max_bits_per_parameter(20, weights)));
    REQUIRE((scores.at("name_loss").count > 1) == !padded);
  }
}

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
  experiment.train.max_steps = 3;
  const data::PreparedData data = data::prepare(experiment, "/nowhere", {});
  RunInputs inputs = small_inputs();
  inputs.experiment = config::to_json(experiment);
  worker::TokenSource rows;
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
  worker::Answers answers;
  answers.step = 3;
  answers.row = row;
  const std::vector<int32_t> tokens = rows.first_instance(row).tokens;
  answers.ids.assign(tokens.end() - 4, tokens.end());
  for (int i = 0; i < wrong; ++i) answers.ids[static_cast<size_t>(3 - i)] = 5;
  return worker::to_line(worker::Event(answers));
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
    R"({"event":"evaluation","step":3,"loss":2.5,"tokens":8,"seconds":1})";

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

TEST_CASE("unrequested answers end the run", "[run][supervisor]") {
  const Supervised run = supervise_copying(
      {R"({"event":"answers","step":3,"kind":"loss","row":0,"values":[1]})", evaluation});
  REQUIRE(run.status == supervised_failed);
  REQUIRE(contains(run.events.back().json.at("reason"), "does not ask for"));
}

}  // namespace
}  // namespace forge::run
