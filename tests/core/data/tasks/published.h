#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/data/tasks/task.h"
#include "core/data/tasks/tasks.h"
#include "tests/support/catch.h"

/// The samples of tests/golden/tasks, in the ids of the authors' code, as instances in dense ids.
namespace forge::data::tasks::published {

nlohmann::json read(const std::string& file);

std::vector<int32_t> depo_ids(const Depo& task, int letters, const nlohmann::json& tokens);
Instance depo(const Depo& task, int letters, const nlohmann::json& sample);

/// Its last token, where the authors' code has the answer marker, becomes eos.
Instance brevo(const Brevo& task, const nlohmann::json& sample);

/// Ids in the variant of the code.
Instance mano(int max_operators, const nlohmann::json& tokens);

Instance copy(int length, const nlohmann::json& sample);

/// A grammar that ships with the program: "cfg3f".
Grammar grammar(const std::string& name);
/// The symbol of a name, -1 when there is none.
int find_symbol(const Grammar& grammar, int name);

/// What a validator says, "" where it accepts.
std::string fault(const Task& task, const Instance& instance);

}  // namespace forge::data::tasks::published

namespace forge::data::tasks {

/// The answers and loss marks of a text of the task, nothing where it is none: by definition and by
/// other means than the validator's.
using Definition = std::function<std::optional<Instance>(const std::vector<int32_t>& tokens)>;

/// Puts every token in every place of an instance, also ids that are none; the validator must
/// accept exactly what the definition does. Returns how many it accepted, the instance itself
/// included.
inline int check_corruptions(const Task& task,
                             const Instance& instance,
                             const Definition& definition) {
  REQUIRE(published::fault(task, instance) == "");
  int accepted = 0;
  for (size_t place = 0; place < instance.tokens.size(); ++place) {
    for (int32_t token = -1; token <= task.vocab_size(); ++token) {
      Instance corrupted = instance;
      corrupted.tokens[place] = token;
      const std::optional<Instance> right = definition(corrupted.tokens);
      if (right) corrupted.answers = right->answers;
      const std::string fault = published::fault(task, corrupted);
      if ((fault == "") != (right && right->scored == corrupted.scored)) {
        FAIL("token " << place << " of " << print(task, instance.tokens) << " as " << token << ": "
                      << (fault.empty() ? "accepted" : fault));
      }
      accepted += fault.empty();
    }
  }
  return accepted;
}

/// Cuts, doubled tokens and flipped loss marks are never an instance.
inline void check_other_damage(const Task& task, const Instance& instance) {
  for (size_t place = 0; place < instance.tokens.size(); ++place) {
    Instance damaged = instance;
    damaged.scored[place] = damaged.scored[place] == 0;
    REQUIRE(published::fault(task, damaged) != "");
    damaged = instance;
    damaged.tokens.resize(place);
    damaged.scored.resize(place);
    REQUIRE(published::fault(task, damaged) != "");
  }
  Instance longer = instance;
  longer.add(instance.tokens.back(), true);
  REQUIRE(published::fault(task, longer) != "");
  Instance unmarked = instance;
  unmarked.scored.pop_back();
  REQUIRE(published::fault(task, unmarked) != "");
}

}  // namespace forge::data::tasks
