#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/data/split.h"

namespace forge::data::tasks {

/// A text of a task, to be looked at.
struct Sample {
  std::string text;                 ///< of a task of text; else the tokens' names
  std::vector<int32_t> ids;         ///< empty for a task of text
  std::vector<std::string> tokens;  ///< their names, "<bos>"
  std::vector<bool> scored;         ///< per token whether it carries loss
};

/// The first `count` texts of a config's task. Throws Error where its data are no task.
std::vector<Sample> samples_of(const config::DataConfig& data, Split split, int count);

}  // namespace forge::data::tasks
