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

/// Stands for the run and for all that decides what its command does.
fs::path allowance_file(const std::string& run_key, const config::ExternalConfig& external) {
  const nlohmann::json subject = {
      run_key, external.command, external.environment, external.working_directory};
  return user_cache_dir() / "allowed-commands" / hash_hex(json_text(subject));
}

/// The command as a person can judge it.
std::string shown_command(const config::ExternalConfig& external) {
  std::string text = join(external.environment, " ");
  if (!text.empty()) text += " ";
  text += join(external.command, " ");
  return tables::printable(text + " (in " + external.working_directory + ")");
}

}  // namespace

bool is_command_allowed(const std::string& run_key, const config::Experiment& experiment) {
  return experiment.backend == config::own_backend ||
         path_exists(allowance_file(run_key, experiment.external));
}

void allow_command(const std::string& run_key, const config::Experiment& experiment) {
  if (is_command_allowed(run_key, experiment)) return;
  const fs::path file = allowance_file(run_key, experiment.external);
  make_directories(file.parent_path());
  write_file_atomic(file, shown_command(experiment.external) + "\n");
}

void require_allowed_command(const std::string& run,
                             const std::string& run_key,
                             const config::Experiment& experiment) {
  if (is_command_allowed(run_key, experiment)) return;
  throw Error("run '" + tables::printable(run) +
                  "' would start a program that you have not allowed: " +
                  shown_command(experiment.external),
              "if you trust it, repeat the command with --allow-command");
}

}  // namespace forge::run
