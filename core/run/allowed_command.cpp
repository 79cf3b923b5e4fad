#include "core/run/allowed_command.h"

#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/backend.h"

namespace forge::run {
namespace {

/// The run and all that decides what its command does.
std::string subject_of(const std::string& run_key, const config::ExternalConfig& external) {
  const nlohmann::json parts = {
      run_key, external.command, external.environment, external.working_directory};
  return json_text(parts);
}

/// Holds the subject that is allowed: its name alone is a hash that somebody could aim at.
fs::path allowance_file(const std::string& subject) {
  return user_cache_dir() / "allowed-commands" / hash_hex(subject);
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

bool is_command_allowed(const std::string& run_key, const config::Experiment& experiment) {
  if (experiment.backend == config::own_backend) return true;
  const std::string subject = subject_of(run_key, experiment.external);
  const fs::path file = allowance_file(subject);
  return is_file(file) && read_file(file) == subject;
}

void allow_command(const std::string& run_key, const config::Experiment& experiment) {
  if (is_command_allowed(run_key, experiment)) return;
  const std::string subject = subject_of(run_key, experiment.external);
  const fs::path file = allowance_file(subject);
  make_directories(file.parent_path());
  write_file_atomic(file, subject);
}

void require_allowed_command(const std::string& run,
                             const std::string& run_key,
                             const config::Experiment& experiment) {
  if (is_command_allowed(run_key, experiment)) return;
  throw Error("run '" + tables::printable(run) +
                  "' would start a program that you have not allowed: " +
                  shown_command(experiment.external) + code_of_blocks(experiment.model),
              "if you trust it, repeat the command with --allow-command");
}

}  // namespace forge::run
