#include "core/config/resumable.h"

#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::config {
namespace {

using tests::contains;
using tests::error_of;

Experiment sample(const std::string& schedule = "infinite_lr") {
  Experiment experiment;
  experiment.train.max_steps = 300;
  experiment.schedule.type = schedule;
  experiment.schedule.warmup_steps = 10;
  experiment.schedule.cooldown_steps = 50;
  return experiment;
}

TEST_CASE("training goes on under the config that it began with and under one that keeps others") {
  const Experiment before = sample();
  check_resumable(before, before, 300);
  Experiment now = before;
  now.name = "another";
  now.train.log_every = 3;
  now.train.eval_every = 7;
  now.train.eval_rows = 9;
  now.train.checkpoint_every = 11;
  now.train.keep_checkpoints = 5;
  now.train.keep_best = false;
  now.train.max_bad_steps = 2;
  now.train.hung_after_seconds = 9;
  now.data.path = "/elsewhere";
  check_resumable(before, now, 120);
}

TEST_CASE("what changes a step is named with both values") {
  const Experiment before = sample();
  const auto refusal = [&](const auto& change) {
    Experiment now = before;
    change(now);
    return error_of([&] { check_resumable(before, now, 120); });
  };
  const std::string batch = refusal([](Experiment& e) { e.train.batch_size = 16; });
  REQUIRE(contains(batch, "train.batch_size is 16 and was 32"));
  REQUIRE(contains(batch, "120 steps"));
  REQUIRE(contains(refusal([](Experiment& e) { e.seed = 7; }), "seed is 7 and was 42"));
  REQUIRE(contains(refusal([](Experiment& e) { e.model.canon.set = "AC"; }), "model.canon.set"));
  REQUIRE(contains(refusal([](Experiment& e) { e.optimizer.eps = 1; }), "optimizer.eps"));
  REQUIRE(contains(refusal([](Experiment& e) { e.data.seed = 2; }), "data.seed"));
  REQUIRE(contains(refusal([](Experiment& e) { e.data.sources["a"].weight = 2; }), "data.sources"));
  REQUIRE(contains(refusal([](Experiment& e) { e.train.precision = Precision::bfloat16; }),
                   "train.precision"));
}

TEST_CASE("a longer budget is allowed where every step done had the rate that it would have") {
  for (const char* type : {"infinite_lr", "constant", "inv_sqrt"}) {
    const Experiment before = sample(type);
    Experiment now = before;
    now.train.max_steps = 900;
    check_resumable(before, now, 300);
    now.train.max_steps = 100;
    const std::string message = error_of([&] { check_resumable(before, now, 120); });
    REQUIRE(contains(message, "the checkpoint is of step 120"));
    REQUIRE(contains(message, "ends after step 100"));
  }
  for (const char* type : {"cosine", "linear"}) {
    const Experiment before = sample(type);
    Experiment now = before;
    now.train.max_steps = 900;
    const std::string message = error_of([&] { check_resumable(before, now, 120); });
    REQUIRE(contains(message, "step 12 was done with learning rate"));  // after the warm-up
    REQUIRE(contains(message, "schedule.type " + std::string(type) + " of 900 steps"));
    REQUIRE(contains(message, "of 300"));
    check_resumable(before, now, 11);
  }
}

TEST_CASE("under wsd a longer budget is allowed up to where the rate began to fall") {
  const Experiment before = sample("wsd");
  Experiment now = before;
  now.train.max_steps = 600;
  check_resumable(before, now, 271);  // the last tenth of 300 steps falls
  REQUIRE(contains(error_of([&] { check_resumable(before, now, 300); }), "at most 271 steps"));
}

TEST_CASE("another peak rate is refused and one for later alone is not") {
  const Experiment before = sample();
  Experiment now = before;
  now.optimizer.lr = 2e-3;
  REQUIRE(contains(error_of([&] { check_resumable(before, now, 120); }), "step 2 was done"));
  now = before;
  now.schedule.checkpoint_step = 200;  // annealing begins there
  check_resumable(before, now, 200);
  REQUIRE(contains(error_of([&] { check_resumable(before, now, 250); }), "step 202 was done"));
}

}  // namespace
}  // namespace forge::config
