#include <map>
#include <set>

#include "core/data/tasks/tasks.h"
#include "tests/core/data/tasks/published.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

using Name = std::vector<int32_t>;

DepoConfig small(int letters, int least, int most) {
  DepoConfig config = depo1(6, 9);
  config.letters = letters;
  config.min_name_length = least;
  config.max_name_length = most;
  config.max_queries = 4;
  return config;
}

/// Splits letters into names; nothing where they are none.
std::optional<std::vector<Name>> names_of(const DepoConfig& config, const Name& letters) {
  std::vector<Name> names(1);
  for (const int32_t letter : letters) {
    names.back().push_back(letter);
    if (letter < config.letters) continue;
    const int length = static_cast<int>(names.back().size());
    if (length < config.min_name_length || length > config.max_name_length) return std::nullopt;
    names.emplace_back();
  }
  if (!names.back().empty()) return std::nullopt;
  names.pop_back();
  return names;
}

/// Depo by its definition: walks the cycle with the pairs searched anew at every step.
std::optional<Instance> by_definition(const DepoConfig& config, const Name& tokens) {
  const Depo task(config);
  std::vector<Name> parts(1);  // letters between marks
  std::vector<int32_t> marks;
  for (const int32_t token : tokens) {
    if (token < 0) return std::nullopt;
    if (token < 2 * config.letters) parts.back().push_back(token);
    if (token >= 2 * config.letters) marks.push_back(token);
    if (token >= 2 * config.letters) parts.emplace_back();
  }
  if (marks.empty() || marks[0] != task.bos() || !parts[0].empty()) return std::nullopt;
  const auto told = names_of(config, parts[1]);
  if (!told || told->size() % 2 != 0) return std::nullopt;
  const size_t n = told->size() / 2;
  if (n < 3 || n > static_cast<size_t>(config.max_nodes)) return std::nullopt;
  const auto next = [&](const Name& name) -> std::optional<Name> {
    std::optional<Name> found;
    for (size_t i = 0; i < told->size(); i += 2) {
      if ((*told)[i] != name) continue;
      if (found) return std::nullopt;
      found = (*told)[i + 1];
    }
    return found;
  };
  std::set<Name> reached;
  Name at = (*told)[0];
  for (size_t i = 0; i < n; ++i) {
    reached.insert(at);
    const auto after = next(at);
    if (!after) return std::nullopt;
    at = *after;
  }
  if (reached.size() != n || at != (*told)[0]) return std::nullopt;

  const size_t queries = std::min<size_t>(n, config.max_queries);
  if (marks.size() != 1 + 2 * queries) return std::nullopt;
  Instance right;
  right.scored.assign(1 + parts[1].size(), 0);
  std::set<Name> asked;
  for (size_t q = 0; q < queries; ++q) {
    const int k = marks[1 + 2 * q] - task.hop(1) + 1;
    Name query = parts[2 + 2 * q];
    if (k < 1 || k > config.max_hops || marks[2 + 2 * q] != task.answer()) return std::nullopt;
    if (reached.count(query) == 0 || !asked.insert(query).second) return std::nullopt;
    right.scored.resize(right.scored.size() + 1 + query.size());
    for (int step = 0; step < k; ++step) query = *next(query);
    if (query != parts[3 + 2 * q]) return std::nullopt;
    const auto marker = static_cast<int32_t>(right.scored.size());
    right.scored.resize(right.scored.size() + 1 + query.size(), 1);
    right.answers.push_back({marker, marker + 1, static_cast<int32_t>(right.scored.size()), k});
  }
  return right;
}

TEST_CASE("Depo's validator accepts of all changes of a token those that keep it true") {
  for (const DepoConfig& config : {small(5, 1, 2), small(2, 2, 3)}) {
    const Depo task(config);
    int accepted = 0;
    int tokens = 0;
    for (uint64_t i = 0; i < 40; ++i) {
      Instance instance;
      task.generate(3, Split::training, i, instance);
      accepted += check_corruptions(
          task, instance, [&](const Name& text) { return by_definition(config, text); });
      tokens += static_cast<int>(instance.tokens.size());
      if (i < 5) check_other_damage(task, instance);
    }
    REQUIRE(accepted > tokens);  // hops that lead around the cycle to the same name
  }
}

TEST_CASE("Depo's validator tells several cycles from one") {
  DepoConfig config = small(5, 1, 1);
  config.max_queries = 1;
  config.max_nodes = 5;
  config.letters = 6;
  const Depo task(config);
  Instance instance;
  // 7 -> 8 -> 9 -> 7 and 10 -> 11 -> 10, and what is 1 step on from 7.
  instance.tokens = {task.bos(), 6, 7, 7, 8, 8, 6, 9, 10, 10, 9, task.hop(1), 6, task.answer(), 7};
  instance.scored = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
  instance.answers = {{13, 14, 15, 1}};
  REQUIRE(published::fault(task, instance).find("several cycles") != std::string::npos);
  // One cycle of the same names.
  instance.tokens = {task.bos(), 6, 7, 7, 8, 8, 9, 9, 10, 10, 6, task.hop(1), 6, task.answer(), 7};
  REQUIRE(published::fault(task, instance) == "");
  instance.tokens.back() = 8;
  REQUIRE(published::fault(task, instance) == "token 14: the answer is wrong: 1 steps lead to 8");
}

TEST_CASE("Depo asks for powers of two at evaluation, of the largest cycle") {
  const std::map<int, std::set<int>> hops = {
      {8, {1, 2, 4, 8}}, {6, {1, 2, 4, 6}}, {1, {1}}, {32, {1, 2, 4, 8, 16, 24, 32}}};
  for (const auto& [most, expected] : hops) {
    const Depo task(depo1(20, most));
    std::set<int> seen;
    for (uint64_t i = 0; i < 50; ++i) {
      Instance instance;
      task.generate(1, Split::evaluation, i, instance);
      REQUIRE(instance.answers.size() == 10);
      for (const Answer& answer : instance.answers) seen.insert(answer.group);
    }
    REQUIRE(seen == expected);
  }
}

TEST_CASE("Depo is scored by token and by whole name, in all and by hops") {
  const Depo task(small(5, 2, 2));
  Instance instance;
  task.generate(5, Split::training, 1, instance);
  REQUIRE(instance.answers.size() >= 3);
  std::vector<int32_t> predicted = instance.tokens;
  // One of two tokens of the first answer is wrong, and all that is no answer is not looked at.
  predicted[instance.answers[0].begin] += 1;
  for (size_t i = 0; i < predicted.size(); ++i) {
    bool within = false;
    for (const Answer& answer : instance.answers) {
      within |= static_cast<int>(i) >= answer.begin && static_cast<int>(i) < answer.end;
    }
    if (!within) predicted[i] = -1;
  }
  Scores scores;
  task.score(instance, predicted, scores);
  const auto answers = static_cast<double>(instance.answers.size());
  REQUIRE(*scores.mean("answer_accuracy") == Approx((answers - 1) / answers));
  REQUIRE(*scores.mean("token_accuracy") == Approx((2 * answers - 1) / (2 * answers)));
  const std::string hop = ".hop_" + std::to_string(instance.answers[0].group);
  int same = 0;
  for (const Answer& answer : instance.answers) same += answer.group == instance.answers[0].group;
  REQUIRE(*scores.mean("answer_accuracy" + hop) == Approx((same - 1.0) / same));
  REQUIRE(*scores.mean("token_accuracy" + hop) == Approx((2 * same - 1.0) / (2 * same)));
  REQUIRE(!scores.mean("answer_accuracy.hop_100"));
}

TEST_CASE("Depo refuses bad parameters with what would be right") {
  const auto error = [](const DepoConfig& config) {
    return tests::error_of([&] { make_task(config); });
  };
  REQUIRE(error(depo1(2, 8)).find("max_nodes must be 3") != std::string::npos);
  REQUIRE(error(depo1(2551, 8)).find("max_nodes must be at most 2550, not 2551") !=
          std::string::npos);
  REQUIRE(error(depo1(2550, 8)).empty());
  REQUIRE(error(depo1(10, 0)).find("max_hops must be 1") != std::string::npos);
  REQUIRE(error(small(1, 1, 2)).find("letters must be 2") != std::string::npos);
  REQUIRE(error(small(5, 3, 2)).find("max_name_length must be 3") != std::string::npos);
  REQUIRE(error(small(1000, 1, 24)).find("lower letters") != std::string::npos);
  DepoConfig config = depo1(10, 4);
  config.max_queries = 0;
  REQUIRE(error(config).find("max_queries must be 1") != std::string::npos);
}

TEST_CASE("Depo prints readably") {
  const Depo task(depo1(4, 3));
  Instance instance;
  task.generate(1, Split::evaluation, 0, instance);
  const std::string text = print(task, instance.tokens);
  INFO(text);
  REQUIRE(text.rfind("<bos> ", 0) == 0);
  REQUIRE(text.find(" <hop ") != std::string::npos);
  REQUIRE(text.find(" <answer> ") != std::string::npos);
  REQUIRE(tests::error_of([&] { task.token_name(task.vocab_size()); }) != "");
  REQUIRE(task.token_name(0) == "1");
}

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
  REQUIRE(task.eval_mode() == EvalMode::greedy);
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
