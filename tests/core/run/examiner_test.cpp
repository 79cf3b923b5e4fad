#include "core/run/examiner.h"

#include "core/config/json.h"
#include "core/data/tasks/rows.h"
#include "core/data/tasks/spec.h"
#include "core/data/token_file.h"
#include "core/model/parameters.h"
#include "tests/core/data/tasks/capo_experiment.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using protocol::AnswerKind;
using tests::contains;
using tests::error_of;

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
    ask_for_answers(experiment, request);
  }

  config::Experiment experiment = tests::capo_experiment(9);
  protocol::Request request;
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
  protocol::Request request;
  request.evaluation_tokens = {{"/cache/evaluation.tokens", 5}};
  request.answers = {AnswerKind::likeliest};  // of a request before
  ask_for_answers(tests::capo_experiment(9), request);
  REQUIRE(request.answers.empty());
  REQUIRE(request.answer_rows == 0);
  Examiner examiner(request, "");
  REQUIRE(examiner.finish().empty());
  REQUIRE(contains(error_of([&] {
                     examiner.take({1, AnswerKind::likeliest, 0, {1}, {}});
                   }),
                   "answers that nobody asked for"));
}

TEST_CASE("an examiner makes scores of a worker's answers, evaluation by evaluation") {
  const Asked asked("copy");
  Examiner examiner(asked.request, "");
  const auto task = data::tasks::task_of(asked.request.evaluation_tokens.at(0).task);
  const data::tasks::TaskRows rows(*task, 1, data::Split::evaluation, 9);
  const auto right = [&](int64_t row) {
    const std::vector<int32_t> text = rows.first_instance(row).tokens;
    return std::vector<int32_t>(text.end() - 4, text.end());
  };
  examiner.take({10, AnswerKind::likeliest, 0, right(0), {}});
  std::vector<int32_t> wrong = right(4);
  wrong[3] = (wrong[3] + 1) % 4;
  examiner.take({10, AnswerKind::likeliest, 4, wrong, {}});
  std::map<std::string, protocol::Score> scores = examiner.finish();
  REQUIRE(scores.size() == 5);
  REQUIRE(scores.at("token_accuracy").value == Approx(7.0 / 8));
  REQUIRE(scores.at("token_accuracy").count == 8);
  REQUIRE(scores.at("sequence_accuracy").value == 0.5);
  REQUIRE(scores.at("sequence_accuracy").count == 2);
  examiner.take({20, AnswerKind::likeliest, 4, right(4), {}});
  scores = examiner.finish();
  REQUIRE(scores.at("sequence_accuracy").value == 1);
  REQUIRE(scores.at("sequence_accuracy").count == 1);
  REQUIRE(examiner.finish().empty());
}

TEST_CASE("each kind of answer goes where it is asked for and is refused elsewhere") {
  const std::vector<std::pair<AnswerKind, std::string>> kinds = {
      {AnswerKind::likeliest, "likeliest ids"},
      {AnswerKind::loss, "losses"},
      {AnswerKind::log_probabilities, "log probabilities"},
      {AnswerKind::continuation, "continuations"}};
  for (const char* name : {"copy", "brevo1", "lano"}) {
    const Asked asked(name);
    Examiner examiner(asked.request, "");
    const std::vector<AnswerKind>& wanted = asked.request.answers;
    for (const auto& [kind, words] : kinds) {
      INFO(name << " " << words);
      const std::string error = error_of([&, kind = kind] { examiner.take({1, kind, 9, {}, {}}); });
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
    protocol::Request request;
    request.experiment = config::to_json(experiment);
    protocol::TokenSource rows;
    rows.path = data.evaluation.at(0).tokens.string();
    rows.rows = data.evaluation.at(0).rows;
    rows.pad_id = data.pad_id;
    rows.task = data.task;
    request.evaluation_tokens = {rows};
    ask_for_answers(experiment, request);
    Examiner examiner(request, data.tokenizer);
    const data::TokenFile tokens(data.evaluation.at(0).tokens);
    const bool padded = kind == config::RowKind::padded;
    const int64_t targets = padded ? tokens.document(0).count - 1 : 700;
    examiner.take({1, AnswerKind::loss, 0, {}, std::vector<double>(static_cast<size_t>(targets))});
    const std::map<std::string, protocol::Score> scores = examiner.finish();
    const auto weights = static_cast<double>(model::parameter_count(experiment.model));
    REQUIRE(scores.at("bits_per_parameter").value ==
            Approx(data::tasks::max_bits_per_parameter(20, weights)));
    REQUIRE((scores.at("name_loss").count > 1) == !padded);
  }
}

}  // namespace
}  // namespace forge::run
