#pragma once

#include "core/config/check.h"
#include "core/config/layers.h"

namespace forge::config {

/// Checks data.task against data.source, and fills in what follows where a task has ids of its own:
/// tokenizer.kind none, and model.vocab_size where nobody gave it.
void check_and_complete_task(Draft& draft, const PathBases& bases, const ProblemSink& on_problem);

}  // namespace forge::config
