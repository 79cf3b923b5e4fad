#pragma once

#include "core/config/check.h"
#include "core/config/layers.h"

namespace forge::config {

/// Checks the section `data` and tokenizer.path, and fills in what follows: absolute paths, and
/// data.documents record where the source is jsonl.
void check_and_complete_data(Draft& draft, const PathBases& bases, const ProblemSink& on_problem);

}  // namespace forge::config
