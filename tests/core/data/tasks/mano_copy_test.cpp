#include <set>

#include "core/data/tasks/tasks.h"
#include "tests/core/data/tasks/published.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

ManoConfig config_of(int max_operators, Variant variant, bool synonyms = true) {
  return {max_operators, variant, synonyms};
}

/// Value of the expression that begins at `at`, read from the left by recursion over token names.
std::optional<int> value_of(const std::vector<std::string>& names, size_t& at) {
  if (at >= names.size()) return std::nullopt;
  const std::string name = names[at++];
  if (name.find_first_not_of("0123456789") == std::string::npos) return std::stoi(name);
  if (name.size() > 2 || std::string("+-*").find(name[0]) == std::string::npos) return std::nullopt;
  const std::optional<int> left = value_of(names, at);
  const std::optional<int> right = left ? value_of(names, at) : std::nullopt;
  if (!right) return std::nullopt;
  const int value = name[0] == '+'   ? *left + *right
                    : name[0] == '-' ? *left - *right
                                     : *left * *right;
  return ((value % 23) + 23) % 23;
}

/// Mano by its definition, from the names of tokens.
std::optional<Instance> by_definition(const ManoConfig& config,
                                      const std::vector<int32_t>& tokens) {
  const Mano task(config);
  std::vector<std::string> names;
  for (const int32_t token : tokens) {
    if (token < 0 || token >= task.vocab_size()) return std::nullopt;
    names.push_back(task.token_name(token));
    const bool second = names.back().back() == '\'';
    if (second && !config.synonyms) return std::nullopt;
    if (second && names.back().size() > 2) names.back().pop_back();
  }
  const size_t operators = (names.size() - 5) / 2;
  if (names.size() != 2 * operators + 5 || names[0] != "<bos>") return std::nullopt;
  const std::string length = std::to_string(operators);
  const bool code = config.variant == Variant::code;
  if (names[1] != "<len " + length + ">") return std::nullopt;
  if (names[names.size() - 2] != (code ? "<ans " + length + ">" : "<ans>")) return std::nullopt;
  size_t at = 2;
  const std::optional<int> value = value_of(names, at);
  if (!value || at != names.size() - 2 || names.back() != std::to_string(*value)) {
    return std::nullopt;
  }
  Instance right;
  right.scored.assign(tokens.size(), 1);
  const auto place = static_cast<int32_t>(tokens.size()) - 1;
  right.answers = {{place, place, place + 1, static_cast<int32_t>(operators)}};
  return right;
}

TEST_CASE("Mano's validator accepts of all changes of a token those that keep it true") {
  for (const ManoConfig& config : {config_of(4, Variant::paper),
                                   config_of(4, Variant::code),
                                   config_of(4, Variant::code, false)}) {
    const Mano task(config);
    for (uint64_t i = 0; i < 40; ++i) {
      Instance instance;
      task.generate(3, Split::training, i, instance);
      const int accepted = check_corruptions(
          task, instance, [&](const auto& text) { return by_definition(config, text); });
      REQUIRE(accepted >= static_cast<int>(instance.tokens.size()));
      if (i < 5) check_other_damage(task, instance);
    }
  }
}

TEST_CASE("Mano's texts have 2 l + 5 tokens, and L operators at evaluation") {
  const Mano task(config_of(16, Variant::paper));
  REQUIRE(task.vocab_size() == 3 + 16 + 1 + 23 + 1);
  std::set<size_t> sizes;
  for (uint64_t i = 0; i < 300; ++i) {
    Instance instance;
    task.generate(1, Split::training, i, instance);
    sizes.insert((instance.tokens.size() - 5) / 2);
    task.generate(1, Split::evaluation, i, instance);
    REQUIRE(instance.tokens.size() == 37);
  }
  REQUIRE(sizes.size() == 16);
  REQUIRE(*sizes.begin() == 1);
}

TEST_CASE("Mano is scored by the value alone") {
  const Mano task(config_of(5, Variant::paper));
  Instance instance;
  task.generate(1, Split::evaluation, 0, instance);
  std::vector<int32_t> predicted(instance.tokens.size(), -1);
  Scores scores;
  task.score(instance, predicted, scores);
  predicted.back() = instance.tokens.back();
  task.score(instance, predicted, scores);
  REQUIRE(*scores.mean("value_accuracy") == 0.5);
  REQUIRE(*scores.mean("value_accuracy.operators_5") == 0.5);
  REQUIRE(scores.sums().size() == 2);
}

TEST_CASE("Mano refuses bad parameters with what would be right") {
  const auto error = tests::error_of([] { make_task(config_of(0, Variant::paper)); });
  REQUIRE(error.find("max_operators must be 1") != std::string::npos);
}

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
