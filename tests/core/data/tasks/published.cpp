#include "tests/core/data/tasks/published.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/base/files.h"
#include "tests/core/data/tasks/validators.h"
#include "tests/support/support.h"

namespace forge::data::tasks::published {
namespace {

/// Runs of scored tokens, each an answer behind its marker.
std::vector<Answer> runs(const Instance& instance, int32_t markers) {
  std::vector<Answer> answers;
  const auto size = static_cast<int32_t>(instance.tokens.size());
  for (int32_t i = 0; i < size; ++i) {
    if (instance.scored[i] == 0) continue;
    Answer answer = {i, i + markers, i, 0};
    while (answer.end < size && instance.scored[answer.end] != 0) ++answer.end;
    i = answer.end;
    answers.push_back(answer);
  }
  return answers;
}

/// Fewest steps from the query to a vertex without parents, by trying all ways.
int depth(const std::multimap<std::vector<int32_t>, std::vector<int32_t>>& parents,
          const std::vector<int32_t>& vertex) {
  int least = -1;
  const auto [begin, end] = parents.equal_range(vertex);
  for (auto parent = begin; parent != end; ++parent) {
    const int below = depth(parents, parent->second);
    if (least < 0 || below < least) least = below;
  }
  return least + 1;
}

}  // namespace

nlohmann::json read(const std::string& file) {
  return nlohmann::json::parse(read_file(tests::tests_dir() / "golden" / "tasks" / file));
}

std::vector<int32_t> depo_ids(const Depo& task, int letters, const nlohmann::json& tokens) {
  std::vector<int32_t> ids;
  for (const int token : tokens) {
    ids.push_back(token <= 2 * letters ? token - 1
                  : token == 9999      ? task.bos()
                  : token == 9500      ? task.answer()
                                       : task.hop(token - 9000));
  }
  return ids;
}

Instance depo(const Depo& task, int letters, const nlohmann::json& sample) {
  Instance instance;
  instance.tokens = depo_ids(task, letters, sample["tokens"]);
  instance.scored = sample["label"].get<std::vector<uint8_t>>();
  instance.answers = runs(instance, 1);
  for (Answer& answer : instance.answers) {
    int32_t marker = answer.loss_begin;
    while (instance.tokens[marker] < task.hop(1) || instance.tokens[marker] >= task.answer()) {
      --marker;
    }
    answer.group = instance.tokens[marker] - task.hop(1) + 1;
  }
  return instance;
}

Instance brevo(const Brevo& task, const nlohmann::json& sample) {
  Instance instance;
  for (const int token : sample["tokens"]) {
    instance.tokens.push_back(token == 9999   ? task.bos()
                              : token == 9998 ? task.answer()
                              : token == 9997 ? task.query()
                                              : token - 1);
  }
  instance.tokens.back() = task.eos();
  instance.scored = sample["label"].get<std::vector<uint8_t>>();
  instance.answers = runs(instance, 1);

  std::multimap<std::vector<int32_t>, std::vector<int32_t>> parents;
  std::vector<std::vector<int32_t>> words(1);
  const bool names = task.query() == 8;  // letters 1 … 8 of Brevo2
  for (size_t i = 1; instance.tokens[i] != task.answer(); ++i) {
    if (instance.tokens[i] == task.query()) continue;
    words.back().push_back(instance.tokens[i]);
    if (!names || instance.tokens[i] >= 4) words.emplace_back();
  }
  words.pop_back();
  for (size_t i = 0; i + 2 < words.size(); i += 2) parents.emplace(words[i + 1], words[i]);
  instance.answers.at(0).group = depth(parents, words.back());
  return instance;
}

Instance mano(int max_operators, const nlohmann::json& tokens) {
  Instance instance;
  for (const int token : tokens) {
    const int32_t id = token < 4       ? token - 1
                       : token < 8     ? token - 2
                       : token >= 9998 ? 6 + 4 * max_operators + 23 + token - 9998
                       : token >= 5000
                           ? 6 + 4 * max_operators + token - 5000
                           : 6 + 4 * (token / 10 - 1) + token % 10 / 4 * 2 + token % 10 % 4;
    instance.add(id, true);
  }
  const auto place = static_cast<int32_t>(instance.tokens.size()) - 1;
  instance.answers = {{place, place, place + 1, tokens[1].get<int>() / 10}};
  return instance;
}

Instance copy(int length, const nlohmann::json& sample) {
  Instance instance;
  for (const int token : sample["tokens"]) {
    instance.tokens.push_back(token == 9999 ? length + 1 : token == 9997 ? length : token - 1);
  }
  instance.scored = sample["label"].get<std::vector<uint8_t>>();
  instance.answers = runs(instance, 0);
  return instance;
}

Grammar grammar(const std::string& name) {
  return Grammar::read(tests::tests_dir() / ".." / "templates" / "data" / "lano" /
                       (name + ".json"));
}

int find_symbol(const Grammar& grammar, int name) {
  const std::vector<Grammar::Symbol>& symbols = grammar.symbols();
  const auto found =
      std::find_if(symbols.begin(), symbols.end(), [&](const Grammar::Symbol& symbol) {
        return symbol.name == name;
      });
  return found == symbols.end() ? -1 : static_cast<int>(found - symbols.begin());
}

std::string fault(const Task& task, const Instance& instance) {
  const std::optional<Fault> found = find_fault(task, instance);
  if (!found) return "";
  return "token " + std::to_string(found->position) + ": " + found->message;
}

}  // namespace forge::data::tasks::published
