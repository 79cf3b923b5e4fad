#include "core/worker/plausible.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::worker {
namespace {

using tests::contains;
using tests::error_of;

std::string fault_of(const Event& event) {
  return error_of([&] { require_plausible(event); });
}

Evaluation evaluation_of(double loss, std::vector<double> losses, std::vector<int64_t> tokens) {
  Evaluation evaluation;
  evaluation.step = 7;
  evaluation.loss = loss;
  for (const int64_t scored : tokens) evaluation.tokens += scored;
  evaluation.row_losses = std::move(losses);
  evaluation.row_tokens = std::move(tokens);
  return evaluation;
}

TEST_CASE("the rows of an evaluation are those of its loss", "[worker][plausible]") {
  CHECK(fault_of(evaluation_of(2.0, {}, {})).empty());
  CHECK(fault_of(evaluation_of(2.0, {1.0, 2.5}, {1, 2})).empty());  // weighted by tokens
  CHECK(fault_of(evaluation_of(2.0, {0.0, 2.0}, {0, 3})).empty());  // nothing is scored in a row
  CHECK(fault_of(evaluation_of(2.0, {1.00005, 2.5}, {1, 2})).empty());
  CHECK(fault_of(evaluation_of(std::nan(""), {1.0, 2.5}, {1, 2})).empty());  // it diverged
  CHECK(contains(fault_of(evaluation_of(2.0, {5.0, 5.25, 5.5}, {1, 1, 1})),
                 "row_losses of the evaluation of step 7 have the mean 5.25, and its loss is 2"));
  CHECK(contains(fault_of(evaluation_of(1.75, {1.0, 2.5}, {1, 2})), "have the mean 2.0"));
  CHECK(contains(fault_of(evaluation_of(2.0, {2.0, 2.0}, {1})),
                 "2 numbers of row_losses and 1 of row_tokens of the evaluation of step 7"));
  CHECK(contains(fault_of(evaluation_of(2.0, {}, {1})), "0 numbers of row_losses"));
  CHECK(contains(fault_of(evaluation_of(2.0, {-1.0, 5.0}, {1, 1})), "'row_losses' is negative"));
  CHECK(contains(fault_of(evaluation_of(2.0, {std::nan(""), 2.0}, {1, 1})),
                 "row_losses of the evaluation of step 7 have the mean nan, and its loss is 2"));
  Evaluation fewer = evaluation_of(2.0, {2.0, 2.0}, {1, 1});
  fewer.tokens = 256;
  CHECK(contains(fault_of(fewer),
                 "row_tokens of the evaluation of step 7 add up to 2, and its tokens are 256"));
}

TEST_CASE("a run that diverged would do so again", "[worker][plausible]") {
  Failed failed{"the loss is nan", "", ""};
  failed.diverged = true;
  CHECK(fault_of(failed).empty());
  failed.retry = true;
  CHECK(contains(fault_of(failed), "'failed' says both 'diverged' and 'retry': the loss is nan"));
  failed.retry = false;
  failed.lost = true;
  CHECK(contains(fault_of(failed), "'failed' says both 'diverged' and 'lost'"));
  failed.diverged = false;
  CHECK(fault_of(failed).empty());
}

TEST_CASE("numbers of events that cannot be are refused", "[worker][plausible]") {
  const double infinite = std::numeric_limits<double>::infinity();
  TrainMetrics train;
  train.loss = infinite;
  CHECK(fault_of(train).empty());
  train.gradient_norm = -1;
  CHECK(contains(fault_of(train), "'gradient_norm' is negative"));
  train = {};
  train.tokens_per_second = 1e300;
  CHECK(contains(fault_of(train), "'tokens_per_second' is impossible"));
  train.tokens_per_second = std::nan("");
  CHECK(contains(fault_of(train), "'tokens_per_second' is impossible: nan"));
  for (const double rate : {infinite, std::nan("")}) {
    train = {};
    train.learning_rate = rate;
    CHECK(contains(fault_of(train), "'learning_rate' is no finite number"));
  }
  train.learning_rate = -1;
  CHECK(contains(fault_of(train), "'learning_rate' is negative: -1"));
  CheckpointSaved saved;
  CHECK(fault_of(saved).empty());
  saved.pause_seconds = infinite;
  CHECK(contains(fault_of(saved), "'pause_seconds' is no number of seconds: inf"));
  Finished finished;
  CHECK(fault_of(finished).empty());
  finished.eval_loss = -5;
  CHECK(contains(fault_of(finished), "'eval_loss' is negative: -5"));
  finished.eval_loss = 5;
  finished.wall_seconds = infinite;
  CHECK(contains(fault_of(finished), "'wall_seconds' is no number of seconds"));
  finished.wall_seconds = 1e30;
  CHECK(contains(fault_of(finished), "'wall_seconds' is no number of seconds: 1e+30"));
  finished.wall_seconds = 0;
  finished.first_step_seconds = std::nan("");
  CHECK(contains(fault_of(finished), "'first_step_seconds' is no number of seconds"));
  finished.first_step_seconds = 1;
  finished.compile_seconds = -1;
  CHECK(contains(fault_of(finished), "'compile_seconds' is negative"));
  CHECK(fault_of(MicroBatch{4, "train", 1, 2, ""}).empty());
  CHECK(contains(fault_of(MicroBatch{4, "train", 99, 2, ""}), "99 rows of 2"));
  CHECK(contains(fault_of(MicroBatch{4, "train", 0, 2, ""}), "0 rows of 2"));
  Evaluation evaluation;
  evaluation.validation_loss = -1;
  CHECK(contains(fault_of(evaluation), "'validation_loss' is negative"));
}

TEST_CASE("the loss of the end is that of its evaluation", "[worker][plausible]") {
  Evaluation evaluation = evaluation_of(2.0, {}, {});
  Finished finished;
  finished.step = 7;
  const auto fault = [&](std::optional<double> loss) {
    finished.eval_loss = loss;
    return error_of([&] { require_same_loss(evaluation, finished); });
  };
  CHECK(fault(2.0).empty());
  CHECK(fault(2.00001).empty());
  CHECK(fault(std::nullopt).empty());
  CHECK(contains(fault(2.5), "eval_loss is 2.5, and the evaluation of step 7 said 2"));
  CHECK(contains(fault(std::nan("")), "eval_loss is nan, and the evaluation of step 7 said 2"));
  evaluation.loss = std::nan("");
  CHECK(contains(fault(3.0), "eval_loss is 3.0, and the evaluation of step 7 said nan"));
  CHECK(fault(std::nan("")).empty());
  CHECK(fault(std::numeric_limits<double>::infinity()).empty());
  evaluation.loss = 2.0;
  finished.step = 8;  // not evaluated at this step
  CHECK(fault(2.5).empty());
}

}  // namespace
}  // namespace forge::worker
