#include <fcntl.h>
#include <unistd.h>
#include <fstream>

#include "backends/libtorch/worker/evaluate.h"
#include "backends/libtorch/worker/jobs.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/config/experiment.h"
#include "core/data/rows/token_file.h"
#include "core/data/tasks/task_scorer.h"
#include "core/data/tasks/task_spec.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"
#include "tests/support/tensors.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

constexpr int row_length = 8;
constexpr int batch_size = 3;

/// Seventeen rows of random ids, in five whole batches and a shorter one; the last row is short.
class Rows {
 public:
  explicit Rows(std::optional<int32_t> document_start) {
    data::TokenFileWriter writer(folder_ / "rows.tokens", 29, hash_hex("tokenizer"));
    RandomStream random(3, 1);
    for (int i = 0; i < 17 * row_length - 2; ++i) {
      const auto id = static_cast<int32_t>(random.below(29));
      writer.append(&id, 1);
    }
    writer.finish();
    data::RowOptions options;
    options.seq_len = row_length;
    options.last_row = data::LastRow::may_be_short;
    options.document_start = document_start;
    dataset_.emplace(folder_ / "rows.tokens", options);
  }

  const data::Dataset& dataset() const { return *dataset_; }

 private:
  TemporaryFolder folder_;
  std::optional<data::Dataset> dataset_;
};

const auto no_progress = [](double) {};

TEST_CASE("a loss without whole logits is the loss of the logits", "[worker]") {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const std::optional<int32_t> document_start : {std::optional<int32_t>(), {7}}) {
      const Rows rows(document_start);
      libtorch::Model model(small_model("ABCD", model::PositionKind::rope),
                            at::TensorOptions(test_device()).dtype(type));
      libtorch::load_initial(model, 5);
      libtorch::Evaluator evaluator(model, row_length, batch_size, test_device());
      std::vector<int64_t> shown;
      const auto see = [&](int64_t row, const at::Tensor& logits, const at::Tensor& targets) {
        REQUIRE(logits.sizes() == at::IntArrayRef({targets.size(0), row_length, 29}));
        shown.push_back(row);
      };
      const libtorch::EvaluationResult with_logits =
          evaluator.evaluate(rows.dataset(), no_progress, see);
      REQUIRE(shown == std::vector<int64_t>{0, 3, 6, 9, 12, 15});
      REQUIRE(with_logits.tokens == 17 * row_length - 3);
      // On a GPU some of these are recorded and replayed.
      for (int i = 0; i < 3; ++i) {
        INFO(at::toString(type) << " evaluation " << i);
        const libtorch::EvaluationResult without = evaluator.evaluate(rows.dataset(), no_progress);
        REQUIRE(without.tokens == with_logits.tokens);
        REQUIRE(without.loss ==
                Approx(with_logits.loss).margin(0).epsilon(type == at::kDouble ? 1e-12 : 1e-5));
      }
    }
  }
}

TEST_CASE("an evaluation sees what has become of the weights and says how far it is", "[worker]") {
  const Rows rows({});
  libtorch::Model model(small_model("", model::PositionKind::rope),
                        at::TensorOptions(test_device()).dtype(at::kFloat));
  libtorch::load_initial(model, 5);
  libtorch::Evaluator evaluator(model, row_length, batch_size, test_device());
  std::vector<double> said;
  const double first =
      evaluator.evaluate(rows.dataset(), [&](double done) { said.push_back(done); }).loss;
  REQUIRE(said.size() == 6);
  REQUIRE(std::is_sorted(said.begin(), said.end()));
  REQUIRE(said.back() == 1);
  // A longer row, as generation between two evaluations may have it.
  model.logits(at::zeros({1, 100}, at::TensorOptions(test_device()).dtype(at::kInt)));
  libtorch::load_initial(model, 6);
  const double second = evaluator.evaluate(rows.dataset(), no_progress).loss;
  REQUIRE(second != first);
  libtorch::load_initial(model, 5);
  REQUIRE(evaluator.evaluate(rows.dataset(), no_progress).loss == first);
}

using nlohmann::json;
using worker::AnswerKind;

/// An evaluation of a small model of drawn weights on a task.
class AnswersJob {
 public:
  explicit AnswersJob(const json& task, int seq_len, std::vector<AnswerKind> answers) {
    experiment.model = small_model("ABCD", model::PositionKind::rope);
    experiment.train.precision = model::Precision::float64;
    experiment.train.seq_len = seq_len;
    experiment.train.eval_batch_size = 2;
    request.job = worker::Job::evaluate;
    worker::TokenSource rows;
    rows.rows = 5;
    rows.task = task;
    request.evaluation_tokens = {rows};
    request.answers = std::move(answers);
    request.answer_rows = 4;
  }

  std::vector<worker::Answers> run() {
    request.experiment = config::to_json(experiment);
    const std::string log = (folder_ / "lines").string();
    const int fd = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
    loss = libtorch::evaluate_model(request, at::Device("cpu"), libtorch::EventWriter(fd))
               .values.at("loss");
    ::close(fd);
    std::vector<worker::Answers> answers;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) {
      const worker::Event event = worker::event_from_line(line);
      if (const auto* found = std::get_if<worker::Answers>(&event)) answers.push_back(*found);
    }
    return answers;
  }

  config::Experiment experiment;
  worker::Request request;
  double loss = 0;

 private:
  TemporaryFolder folder_;
};

const json copy_task = {
    {"name", "copy"}, {"seed", 3}, {"variant", "paper"}, {"length", 6}, {"scored_tokens", 0}};
const json lano_task = {
    {"name", "lano"},
    {"seed", 3},
    {"variant", "paper"},
    {"grammar", {{"6", {{4, 5}, {5, 4, 4}}}, {"4", {{1, 2}, {3}}}, {"5", {{2}}}}}};
const json brevo_task = {{"name", "brevo1"}, {"seed", 3}, {"variant", "paper"}, {"max_nodes", 6}};

TEST_CASE("a row is answered with a loss for each scored target and their mean is the loss",
          "[worker]") {
  AnswersJob job(copy_task, 16, {AnswerKind::likeliest, AnswerKind::loss});
  const std::vector<worker::Answers> answers = job.run();
  REQUIRE(answers.size() == 10);
  double sum = 0;
  size_t count = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    REQUIRE(answers[i].row == static_cast<int64_t>(i / 2));
    if (answers[i].kind == AnswerKind::likeliest) {
      REQUIRE(answers[i].ids.size() == 6);
      continue;
    }
    REQUIRE(answers[i].values.size() == 6);
    for (const double value : answers[i].values) sum += value;
    count += 6;
  }
  REQUIRE(count == 30);
  REQUIRE(sum / 30 == Approx(job.loss).epsilon(1e-6));
}

TEST_CASE("log probabilities reach from a row's beginning to behind its first text", "[worker]") {
  AnswersJob job(lano_task, 20, {AnswerKind::log_probabilities});
  const auto task = data::tasks::task_of(lano_task);
  const data::tasks::TaskRows rows(*task, 3, data::Split::evaluation, 20);
  for (const worker::Answers& answers : job.run()) {
    const size_t positions = rows.first_instance(answers.row).tokens.size();
    REQUIRE(answers.values.size() == positions * 4);
    for (size_t i = 0; i < positions; ++i) {
      double sum = 0;
      for (size_t id = 0; id < 4; ++id) sum += std::exp(answers.values[i * 4 + id]);
      REQUIRE(sum == Approx(1).epsilon(1e-5));
    }
  }
}

TEST_CASE("a vocabulary that is larger than the task's makes its rows no longer", "[worker]") {
  AnswersJob job(lano_task, 64, {AnswerKind::log_probabilities});
  job.experiment.model.vocab_size = 2000;
  CHECK(job.run().size() == 5);
}

TEST_CASE("a task's scorer takes what the worker answers", "[worker]") {
  for (const json& task : {copy_task, lano_task, brevo_task}) {
    INFO(task.dump());
    data::tasks::ScorerOptions options;
    options.seq_len = 40;
    options.rows = 5;
    const auto scorer = data::tasks::make_scorer(task, options);
    const auto requested = scorer->requested();
    AnswersJob job(task, 40, {requested.begin(), requested.end()});
    size_t continuations = 0;
    for (const worker::Answers& answers : job.run()) {
      continuations += answers.kind == AnswerKind::continuation;
      scorer->add({answers.kind, answers.row, answers.ids, answers.values});
    }
    REQUIRE(continuations == 4 * requested.count(AnswerKind::continuation));
    REQUIRE_FALSE(scorer->finish().sums().empty());
  }
}

TEST_CASE("continuations are the same whatever their neighbours", "[worker]") {
  for (const json& task : {lano_task, brevo_task}) {
    AnswersJob job(task, 40, {AnswerKind::continuation});
    std::vector<std::vector<int32_t>> together(4);
    for (const worker::Answers& answers : job.run()) {
      together.at(static_cast<size_t>(answers.row)) = answers.ids;
    }
    job.experiment.train.eval_batch_size = 1;
    for (const worker::Answers& answers : job.run()) {
      REQUIRE(answers.ids == together.at(static_cast<size_t>(answers.row)));
      REQUIRE_FALSE(answers.ids.empty());
    }
  }
}

TEST_CASE("questions that rows cannot answer are refused", "[worker]") {
  AnswersJob job(copy_task, 16, {AnswerKind::continuation});
  REQUIRE(contains(error_of([&] { job.run(); }), "scored teacher forced"));
  job.request.evaluation_tokens.at(0).task = json::object();
  job.request.evaluation_tokens.at(0).path = "/nowhere.tokens";
  REQUIRE_FALSE(error_of([&] { job.run(); }).empty());
}

}  // namespace
}  // namespace forge::tests
