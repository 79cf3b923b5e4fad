#pragma once

#include <optional>

#include "core/data/tasks/capo.h"
#include "core/data/tasks/lano.h"
#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// Nothing where the text is an instance of the task: well formed, every answer right, exactly the
/// right tokens scored. Accepts any ids.
std::optional<Fault> find_fault(const Task& task, const Instance& instance);

/// Nothing where terminals make a sentence of the grammar; else the first one that no sentence
/// goes on with, or the end where the sentence is not over.
std::optional<Fault> find_sentence_fault(const Lano& task, const std::vector<int32_t>& terminals);

/// Nothing where a text tells all facts of its person right and records where.
std::optional<Fault> find_fault(const Capo& capo, const Biography& biography);

/// "birth city".
const char* fact_name(Fact fact);

}  // namespace forge::data::tasks
