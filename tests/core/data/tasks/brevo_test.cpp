#include "core/data/tasks/brevo.h"

#include <map>
#include <set>

#include "tests/core/data/tasks/corruptions.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

using Word = std::vector<int32_t>;

/// Splits tokens into words; nothing where they are none.
std::optional<std::vector<Word>> words_of(const BrevoConfig& config, const Word& tokens) {
  std::vector<Word> words(1);
  for (const int32_t token : tokens) {
    words.back().push_back(token);
    if (config.names && token < config.letters) continue;
    const int length = static_cast<int>(words.back().size());
    if (config.names && (length < config.min_name_length || length > config.max_name_length)) {
      return std::nullopt;
    }
    words.emplace_back();
  }
  if (!words.back().empty()) return std::nullopt;
  words.pop_back();
  return words;
}

using Edges = std::set<std::pair<Word, Word>>;

/// The pairs as edges; nothing where one comes twice or a degree is above four.
std::optional<Edges> edges_of(const std::vector<Word>& words) {
  Edges edges;
  std::map<Word, int> parents, children;
  for (size_t i = 0; i < words.size(); i += 2) {
    if (!edges.emplace(words[i], words[i + 1]).second) return std::nullopt;
    if (++children[words[i]] > 4 || ++parents[words[i + 1]] > 4) return std::nullopt;
  }
  return edges;
}

/// All pairs of which the second depends on the first.
Edges closure_of(const Edges& edges, const std::set<Word>& vertices) {
  Edges before = edges;
  for (const Word& middle : vertices) {
    for (const Word& from : vertices) {
      for (const Word& to : vertices) {
        if (before.count({from, middle}) != 0 && before.count({middle, to}) != 0) {
          before.emplace(from, to);
        }
      }
    }
  }
  return before;
}

bool is_answer(const std::vector<Word>& answer, const Word& query, const Edges& before) {
  std::set<Word> wanted = {query};
  for (const auto& [from, to] : before) {
    if (to == query) wanted.insert(from);
  }
  if (std::set<Word>(answer.begin(), answer.end()) != wanted) return false;
  for (size_t i = 0; i < answer.size(); ++i) {
    for (size_t j = i + 1; j < answer.size(); ++j) {
      if (before.count({answer[j], answer[i]}) != 0) return false;
    }
  }
  return wanted.size() == answer.size() && wanted.size() >= 2;
}

int depth_of(const Word& query, const Edges& edges) {
  std::set<Word> level = {query};
  const auto is_leaf = [&](const Word& vertex) {
    return std::none_of(
        edges.begin(), edges.end(), [&](const auto& edge) { return edge.second == vertex; });
  };
  int depth = 0;
  for (; std::none_of(level.begin(), level.end(), is_leaf); ++depth) {
    std::set<Word> above;
    for (const auto& [from, to] : edges) {
      if (level.count(to) != 0) above.insert(from);
    }
    level = above;
  }
  return depth;
}

/// Brevo by its definition, with the transitive closure of the edges as a table.
std::optional<Instance> by_definition(const BrevoConfig& config, const Word& tokens) {
  const Brevo task(config);
  std::vector<Word> parts(1);
  Word marks;
  for (const int32_t token : tokens) {
    if (token < 0) return std::nullopt;
    if (token < task.query()) parts.back().push_back(token);
    if (token >= task.query()) marks.push_back(token);
    if (token >= task.query()) parts.emplace_back();
  }
  if (marks != Word{task.bos(), task.query(), task.answer(), task.eos()}) return std::nullopt;
  if (!parts[0].empty() || !parts[4].empty()) return std::nullopt;
  const auto words = words_of(config, parts[1]);
  const auto query = words_of(config, parts[2]);
  const auto answer = words_of(config, parts[3]);
  if (!words || !query || !answer || words->size() % 2 != 0 || query->size() != 1) {
    return std::nullopt;
  }
  const std::optional<Edges> edges = edges_of(*words);
  const std::set<Word> vertices(words->begin(), words->end());
  if (!edges || vertices.size() > static_cast<size_t>(config.max_nodes)) return std::nullopt;
  const Edges before = closure_of(*edges, vertices);
  for (const Word& vertex : vertices) {
    if (before.count({vertex, vertex}) != 0) return std::nullopt;
  }
  if (!is_answer(*answer, query->front(), before)) return std::nullopt;
  Instance right;
  const auto marker = static_cast<int32_t>(2 + parts[1].size() + parts[2].size());
  const auto end = static_cast<int32_t>(tokens.size());
  right.scored.assign(tokens.size(), 0);
  std::fill(right.scored.begin() + marker, right.scored.end(), uint8_t{1});
  right.answers = {{marker, marker + 1, end, depth_of(query->front(), *edges)}};
  return right;
}

TEST_CASE("Brevo's validator accepts of all changes of a token those that keep it true", "[slow]") {
  BrevoConfig names = brevo2(7);
  names.letters = 2;
  names.min_name_length = 2;
  names.max_name_length = 3;
  for (const BrevoConfig& config : {brevo1(9), brevo1(9, Variant::code), names}) {
    const Brevo task(config);
    int accepted = 0;
    for (uint64_t i = 0; i < 25; ++i) {
      Instance instance;
      task.generate(3, Split::training, i, instance);
      accepted += check_corruptions(
          task, instance, [&](const Word& text) { return by_definition(config, text); });
      if (i < 5) check_other_damage(task, instance);
    }
    REQUIRE(accepted > 25);
  }
}

TEST_CASE("Brevo takes any order with parents first, and nothing else") {
  const Brevo task(brevo1(6));
  Instance instance;
  // 1 -> 3, 2 -> 3, 3 -> 4, 1 -> 5; asked for 4.
  instance.tokens = {
      task.bos(), 0, 2, 1, 2, 2, 3, 0, 4, task.query(), 3, task.answer(), 0, 1, 2, 3, task.eos()};
  instance.scored.assign(17, 0);
  std::fill(instance.scored.begin() + 11, instance.scored.end(), uint8_t{1});
  instance.answers = {{11, 12, 17, 2}};
  REQUIRE(published::fault(task, instance) == "");

  const auto accepts = [&](std::vector<int32_t> written) {
    Scores scores;
    task.score(instance, written, scores);
    REQUIRE(scores.mean("answer_accuracy.depth_2") == scores.mean("answer_accuracy"));
    return *scores.mean("answer_accuracy") == 1;
  };
  const int32_t eos = task.eos();
  REQUIRE(accepts({0, 1, 2, 3, eos}));
  REQUIRE(accepts({1, 0, 2, 3, eos}));
  REQUIRE(!accepts({0, 2, 1, 3, eos}));     // a parent too late
  REQUIRE(!accepts({0, 1, 2, 3}));          // no end
  REQUIRE(!accepts({0, 1, 2, 3, eos, 0}));  // more behind the end
  REQUIRE(!accepts({0, 0, 1, 2, 3, eos}));  // a vertex twice
  REQUIRE(!accepts({0, 4, 1, 2, 3, eos}));  // one that the query does not depend on
  REQUIRE(!accepts({0, 1, 2, eos}));        // the query is missing
  REQUIRE(!accepts({0, 2, 3, eos}));        // a parent is missing
  REQUIRE(!accepts({0, 5, 1, 2, 3, eos}));  // an unknown vertex
  REQUIRE(!accepts({}));

  const Prompt prompt = task.prompt(instance);
  REQUIRE(task.asked() == Asked::greedy);
  REQUIRE(prompt.tokens ==
          std::vector<int32_t>(instance.tokens.begin(), instance.tokens.begin() + 12));
  REQUIRE(prompt.stop == eos);
  REQUIRE(prompt.max_new_tokens == 5);
}

TEST_CASE("Brevo asks of the last quarter of vertices, in the code's variant of the last") {
  // In the code's variant nothing depends on the query.
  for (const Variant variant : {Variant::paper, Variant::code}) {
    const Brevo task(brevo1(40, variant));
    int with_children = 0;
    for (uint64_t i = 0; i < 200; ++i) {
      Instance instance;
      task.generate(1, Split::evaluation, i, instance);
      const int32_t query = instance.tokens[instance.answers[0].loss_begin - 1];
      for (size_t at = 1; instance.tokens[at] != task.query(); at += 2) {
        if (instance.tokens[at] != query) continue;
        ++with_children;
        break;
      }
    }
    REQUIRE((with_children == 0) == (variant == Variant::code));
  }
}

TEST_CASE("Brevo refuses bad parameters with what would be right") {
  const auto error = [](const BrevoConfig& config) {
    return tests::error_of([&] { make_task(config); });
  };
  REQUIRE(error(brevo1(2)).find("max_nodes must be 3") != std::string::npos);
  REQUIRE(error(brevo2(337)).find("max_nodes must be at most 336, not 337") != std::string::npos);
  REQUIRE(error(brevo2(336)).empty());
}

}  // namespace
}  // namespace forge::data::tasks
