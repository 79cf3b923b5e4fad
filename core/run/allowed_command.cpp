#include "core/run/allowed_command.h"

#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/config/backend.h"

namespace forge::run {
namespace {

/// Is there where the run with all that decides what its command does is allowed: the command, and
/// what travels in the config. An identity has of a block's code only a hash that somebody could
/// aim at.
fs::path allowance_file(const Identity& identity, const config::Experiment& experiment) {
  const config::ExternalConfig& external = experiment.external;
  nlohmann::json code = nlohmann::json::object();
  for (const auto& [name, block] : experiment.model.blocks) code[name] = block.source;
  const nlohmann::json parts = {identity_text(identity),
                                external.command,
                                external.environment,
                                external.working_directory,
                                code};
  return user_cache_dir() / "allowed-commands" / sha256_hex(json_text(parts));
}

/// The command as a person can judge it.
std::string shown_command(const config::ExternalConfig& external) {
  std::vector<std::string> words = external.environment;
  words.insert(words.end(), external.command.begin(), external.command.end());
  return shell_quoted(words) + " (in " + tables::printable(external.working_directory) + ")";
}

/// That the program runs Python code which the run brings along; "" where it brings none.
std::string code_of_blocks(const config::ModelConfig& model) {
  if (model.blocks.empty()) return "";
  std::vector<std::string> names;
  for (const auto& [name, block] : model.blocks) names.push_back(tables::printable(name));
  return ", which would run the Python code of " + join(names, ", ") +
         " that came with the run ('forge block show' prints it)";
}

}  // namespace

bool is_command_allowed(const Identity& identity, const config::Experiment& experiment) {
  return experiment.backend == config::own_backend || is_file(allowance_file(identity, experiment));
}

void allow_command(const Identity& identity, const config::Experiment& experiment) {
  if (is_command_allowed(identity, experiment)) return;
  const fs::path file = allowance_file(identity, experiment);
  make_directories(file.parent_path());
  write_file_atomic(file, shown_command(experiment.external) + "\n");  // for people
}

void require_allowed_command(const std::string& run,
                             const Identity& identity,
                             const config::Experiment& experiment) {
  if (is_command_allowed(identity, experiment)) return;
  throw Error("run '" + tables::printable(run) +
                  "' would start a program that you have not allowed: " +
                  shown_command(experiment.external) + code_of_blocks(experiment.model),
              "if you trust it, repeat the command with --allow-command");
}

}  // namespace forge::run
