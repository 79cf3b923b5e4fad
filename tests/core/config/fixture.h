#pragma once

#include "core/config/resolve.h"
#include "tests/core/project/fixture.h"

namespace forge::tests {

/// A complete model and training in a few lines; a test appends what it is about.
inline const char* const small_config =
    "name: Small\n"
    "model: {vocab_size: 300, hidden_size: 64, num_layers: 2, "
    "attention: {num_heads: 4}, mlp: {intermediate_size: 96}}\n"
    "tokenizer: {vocab_size: 300}\n"
    "train: {max_steps: 10}\n"
    "profiles:\n"
    "  quick: {train: {max_steps: 3, batch_size: 2}}\n"
    "  long: {train: {max_steps: 99}}\n";

inline config::ResolveOptions fixed_options(std::vector<std::string> overrides = {},
                                            bool backend_has_gpu = false) {
  config::ResolveOptions options;
  options.overrides = std::move(overrides);
  options.backend_has_gpu = backend_has_gpu;
  options.host_environment = fixed_surroundings();
  return options;
}

/// A workspace with projects/p, whose configs a test writes.
class ConfigFixture {
 public:
  ConfigFixture() { files.add_project("p"); }

  /// Resolves `text` as the config "c" of projects/p.
  config::ResolvedConfig resolve(const std::string& text,
                                 std::vector<std::string> overrides = {},
                                 bool backend_has_gpu = false) const {
    files.add_config("p", "c", text);
    config::ResolveOptions options = fixed_options(std::move(overrides), backend_has_gpu);
    options.host_environment.working_directory = files.folder.path().string();
    return config::resolve(files.project("p"), "c", options);
  }
  /// The small config with more lines.
  config::ResolvedConfig small(const std::string& more,
                               std::vector<std::string> overrides = {}) const {
    return resolve(small_config + more, std::move(overrides));
  }
  std::string error(const std::string& text, std::vector<std::string> overrides = {}) const {
    return error_of([&] { resolve(text, std::move(overrides)); });
  }
  std::string small_error(const std::string& more, std::vector<std::string> overrides = {}) const {
    return error(small_config + more, std::move(overrides));
  }

  TemporaryWorkspace files;
};

/// The error for overrides of the small config, and what they make of it.
inline std::string small_refusal(std::vector<std::string> overrides) {
  return ConfigFixture().small_error("", std::move(overrides));
}
inline config::Experiment small_accepted(std::vector<std::string> overrides) {
  return ConfigFixture().small("", std::move(overrides)).experiment;
}

}  // namespace forge::tests
