#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/config/experiment.h"
#include "core/data/common.h"
#include "core/data/tasks/capo.h"
#include "core/data/tasks/task.h"

namespace forge::data::tasks {

/// All that the rows of a task depend on, for a worker that has no files of ours: the section
/// data.task, "seed" and, of lano, the grammar itself,
///
///     {"name": "copy", "seed": 1, "variant": "paper", "length": 500, "scored_tokens": 0}
///     {"name": "lano", "seed": 1, "variant": "paper", "grammar": {"22": [[20, 21]], …}}
///
/// Throws Error where the grammar cannot be read. Equal ones give equal rows.
nlohmann::json make_spec(const config::DataConfig& data);

/// A hash of it and of the version of the generators.
std::string spec_fingerprint(const nlohmann::json& spec);

/// What a spec describes. Throw Error where it is none, or of a task of the other sort.
std::unique_ptr<const Task> task_of(const nlohmann::json& spec);
Capo capo_of(const nlohmann::json& spec);
uint64_t seed_of(const nlohmann::json& spec);
bool is_capo(const nlohmann::json& spec);

/// What ids mean in the rows of one task and of another: "id 3 is '4' of copy, and '<hop 1>' of
/// depo1". "" where all mean the same, and where a config is none of a task with ids of its own or
/// its grammar cannot be read.
std::string difference_of_ids(const config::DataConfig& data, const config::DataConfig& other);

/// A text of a task, to be looked at.
struct Sample {
  std::string text;                 ///< of a task of text; else the tokens' names
  std::vector<int32_t> ids;         ///< empty for a task of text
  std::vector<std::string> tokens;  ///< their names, "<bos>"
  std::vector<bool> scored;         ///< per token whether it carries loss
};

/// The first `count` texts of a config's task. Throws Error where its data are no task.
std::vector<Sample> preview_instances(const config::DataConfig& data, Split split, int count);

}  // namespace forge::data::tasks
