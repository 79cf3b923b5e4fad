#include "core/data/tasks/copy.h"

#include "tests/core/data/tasks/corruptions.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

TEST_CASE("Copy's validator accepts no change of a token") {
  const Copy task({7, 0});
  Instance instance;
  task.generate(1, Split::training, 4, instance);
  check_other_damage(task, instance);
  const int accepted = check_corruptions(task, instance, [&](const std::vector<int32_t>& text) {
    std::optional<Instance> same;
    if (text == instance.tokens) same = instance;
    return same;
  });
  REQUIRE(accepted == 16);
}

TEST_CASE("Copy is scored by token, by sequence and by its first tokens") {
  const Copy task({6, 0});
  Instance instance;
  task.generate(1, Split::training, 0, instance);
  REQUIRE(instance.tokens.size() == 14);
  std::vector<int32_t> predicted = instance.tokens;
  Scores scores;
  task.score(instance, predicted, scores);
  predicted[8 + 3] = -1;
  task.score(instance, predicted, scores);
  REQUIRE(*scores.mean("token_accuracy") == Approx(11.0 / 12));
  REQUIRE(*scores.mean("sequence_accuracy") == 0.5);
  REQUIRE(*scores.mean("token_accuracy.first_1") == 1);
  REQUIRE(*scores.mean("token_accuracy.first_2") == 1);
  REQUIRE(*scores.mean("token_accuracy.first_4") == Approx(7.0 / 8));
}

TEST_CASE("Copy may score its first tokens alone") {
  const Copy task({6, 2});
  Instance instance;
  task.generate(1, Split::training, 0, instance);
  REQUIRE(instance.scored == std::vector<uint8_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0});
  REQUIRE(published::fault(task, instance) == "");
  const auto error = tests::error_of([] { make_task(CopyConfig{6, 7}); });
  REQUIRE(error.find("scored_tokens must be 0 … 6, not 7") != std::string::npos);
}

}  // namespace
}  // namespace forge::data::tasks
