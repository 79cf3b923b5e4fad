#include "backends/libtorch/worker/loss_watch.h"

#include "tests/support/torch_catch.h"

#include <limits>

#include "tests/support/contains.h"

namespace forge::tests {
namespace {

using worker::LossWatch;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

config::Experiment sample() {
  config::Experiment experiment;
  experiment.model.vocab_size = 1000;  // guessing costs 6.9 nats
  experiment.train.max_steps = 100;
  experiment.train.max_bad_steps = 10;
  experiment.schedule.type = "constant";
  return experiment;
}

/// Ten steps up to `step` with a mean loss.
worker::Stretch ten_steps(int64_t step, double loss, double norm = 1) {
  return {step, 10, 10 * loss, 10 * norm};
}

TEST_CASE("a loss is bad that is not finite or far above guessing and above the first one",
          "[worker]") {
  const config::Experiment experiment = sample();
  double first = 0;
  LossWatch watch(experiment);
  watch.take(ten_steps(10, 7.5), first);
  REQUIRE(first == 7.5);
  for (const double good : {7.5, 22.0, 0.01}) {
    watch.take(ten_steps(20, good), first);
    REQUIRE(watch.is_good());
    REQUIRE_FALSE(watch.is_over());
  }
  REQUIRE(first == 7.5);
  for (const double bad : {22.6, nan, std::numeric_limits<double>::infinity()}) {
    LossWatch other(experiment);
    other.take(ten_steps(10, bad), first);
    REQUIRE_FALSE(other.is_good());
  }
  LossWatch other(experiment);
  other.take(ten_steps(10, 5, nan), first);  // the next loss would be nan
  REQUIRE_FALSE(other.is_good());
  // A model that begins far worse than guessing is given its own measure.
  double high = 0;
  LossWatch strange(experiment);
  strange.take(ten_steps(10, 40), high);
  strange.take(ten_steps(20, 100), high);
  REQUIRE(strange.is_good() == true);
}

TEST_CASE("so many bad steps in a row are the end and a good one begins the count anew",
          "[worker]") {
  config::Experiment experiment = sample();
  experiment.train.max_bad_steps = 20;
  double first = 0;
  LossWatch watch(experiment);
  watch.take(ten_steps(10, 99), first);
  REQUIRE(first == 99);
  first = 7;
  watch.take(ten_steps(20, 99), first);
  REQUIRE_FALSE(watch.is_over());
  watch.take(ten_steps(30, 7), first);
  watch.take(ten_steps(40, 99), first);
  REQUIRE_FALSE(watch.is_over());
  watch.take({50, 0, 0, 0}, first);  // nothing new
  REQUIRE_FALSE(watch.is_over());
  watch.take(ten_steps(50, 99), first);
  REQUIRE(watch.is_over());
}

TEST_CASE("the diagnosis says what was good last and which weight is broken", "[worker]") {
  const config::Experiment experiment = sample();
  double first = 0;
  LossWatch watch(experiment);
  watch.take(ten_steps(10, 7, 2), first);
  watch.take(ten_steps(20, nan, nan), first);
  worker::NamedTensors weights = {{"whole", at::ones({3})}, {"broken", at::ones({3})}};
  weights[1].second[1] = nan;
  const std::string text = watch.diagnosis(weights);
  INFO(text);
  REQUIRE(contains(text, "not a finite number: step 20 has loss nan"));
  REQUIRE(
      contains(text, "good up to step 10, with loss 7.0, gradient norm 2.0, learning rate 0.001"));
  REQUIRE(contains(text, "'broken' holds"));
  LossWatch other(experiment);
  other.take(ten_steps(10, 7), first);
  other.take(ten_steps(20, 70), first);
  REQUIRE(contains(other.diagnosis({}), "exploded: step 20 has loss 70"));
}

}  // namespace
}  // namespace forge::tests
