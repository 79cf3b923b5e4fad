#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/data/tasks/brevo.h"
#include "core/data/tasks/depo.h"
#include "core/data/tasks/task.h"

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

/// What a validator says, "" where it accepts.
std::string fault(const Task& task, const Instance& instance);

}  // namespace forge::data::tasks::published
