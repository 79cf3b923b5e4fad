#include "tests/support/torch_catch.h"

#include "backends/libtorch/worker/answers.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "backends/libtorch/worker/evaluate_model.h"
#include "core/config/json.h"
#include "core/data/tasks/examination.h"
#include "core/data/tasks/spec.h"
#include "tests/backends/libtorch/model/small_models.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

using nlohmann::json;
using protocol::AnswerKind;

/// An evaluation of a small model of drawn weights on a task.
class AnswersJob {
 public:
  explicit AnswersJob(const json& task, int seq_len, std::vector<AnswerKind> answers) {
    experiment.model = small_model("ABCD", config::PositionKind::rope);
    experiment.train.precision = config::Precision::float64;
    experiment.train.seq_len = seq_len;
    experiment.train.eval_batch_size = 2;
    request.job = protocol::Job::evaluate;
    protocol::TokenSource rows;
    rows.rows = 5;
    rows.task = task;
    request.evaluation_tokens = {rows};
    request.answers = std::move(answers);
    request.answer_rows = 4;
  }

  std::vector<protocol::Answers> run() {
    request.experiment = config::to_json(experiment);
    const std::string log = (folder_ / "lines").string();
    const int fd = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
    loss = worker::evaluate_model(request, at::Device("cpu"), worker::EventWriter(fd))
               .values.at("loss");
    ::close(fd);
    std::vector<protocol::Answers> answers;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) {
      const protocol::Event event = protocol::event_from_line(line);
      if (const auto* found = std::get_if<protocol::Answers>(&event)) answers.push_back(*found);
    }
    return answers;
  }

  config::Experiment experiment;
  protocol::Request request;
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
  const std::vector<protocol::Answers> answers = job.run();
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
  for (const protocol::Answers& answers : job.run()) {
    const size_t positions = rows.first_instance(answers.row).tokens.size();
    REQUIRE(answers.values.size() == positions * 4);
    for (size_t i = 0; i < positions; ++i) {
      double sum = 0;
      for (size_t id = 0; id < 4; ++id) sum += std::exp(answers.values[i * 4 + id]);
      REQUIRE(sum == Approx(1).epsilon(1e-5));
    }
  }
}

TEST_CASE("a task's examination takes what the worker answers", "[worker]") {
  for (const json& task : {copy_task, lano_task, brevo_task}) {
    INFO(task.dump());
    data::tasks::ExaminationOptions options;
    options.seq_len = 40;
    options.rows = 5;
    const auto examination = data::tasks::examination_of(task, options);
    const data::tasks::Wanted wanted = examination->wanted();
    std::vector<AnswerKind> kinds;
    if (wanted.likeliest) kinds.push_back(AnswerKind::likeliest);
    if (wanted.log_probabilities) kinds.push_back(AnswerKind::log_probabilities);
    if (wanted.continuation) kinds.push_back(AnswerKind::continuation);
    AnswersJob job(task, 40, kinds);
    int continuations = 0;
    for (const protocol::Answers& answers : job.run()) {
      switch (answers.kind) {
        case AnswerKind::likeliest: examination->take_likeliest(answers.row, answers.ids); break;
        case AnswerKind::log_probabilities:
          examination->take_log_probabilities(answers.row, answers.values);
          break;
        case AnswerKind::continuation:
          ++continuations;
          examination->take_continuation(answers.row, answers.ids);
          break;
        case AnswerKind::loss: FAIL("nobody asked for losses");
      }
    }
    REQUIRE(continuations == (wanted.continuation ? 4 : 0));
    REQUIRE_FALSE(examination->finish().sums().empty());
  }
}

TEST_CASE("continuations are the same whatever their neighbours", "[worker]") {
  for (const json& task : {lano_task, brevo_task}) {
    AnswersJob job(task, 40, {AnswerKind::continuation});
    std::vector<std::vector<int32_t>> together(4);
    for (const protocol::Answers& answers : job.run()) {
      together.at(static_cast<size_t>(answers.row)) = answers.ids;
    }
    job.experiment.train.eval_batch_size = 1;
    for (const protocol::Answers& answers : job.run()) {
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
