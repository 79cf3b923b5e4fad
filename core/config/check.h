#pragma once

#include <filesystem>
#include <vector>

#include "core/config/layers.h"

namespace forge::config {

/// Folders from which relative paths in a config are meant.
struct PathBases {
  std::filesystem::path working_directory;  ///< of paths on the command line
  std::filesystem::path project_folder;     ///< of paths in templates
  std::vector<std::filesystem::path> backends =
      {};  ///< folders of declared backends, nearest first
};

/// Checks all that concerns several keys or a key's meaning, and fills in what follows from others:
/// num_kv_heads, head_dim, the canonical canon.set, max_steps from max_tokens (rounded up),
/// absolute paths. Throws Error with the reason at the place that gave the guilty key its value, or
/// tells `on_problem` all that is wrong.
void check_and_complete(Draft& draft,
                        const PathBases& bases,
                        const ProblemSink& on_problem = nullptr);

/// The same for the section `model` alone. Returns whether the model has all keys that it needs.
bool check_and_complete_model(Draft& draft, const ProblemSink& on_problem = nullptr);

}  // namespace forge::config
