#include "core/run/allowed_command.h"

#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/sha256.h"
#include "core/base/text.h"
#include "core/config/backend.h"
#include "core/run/queue/owners.h"

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

/// A cache may be a group's, or root may work in a user's: what others could have written there is
/// no permission of this user's.
bool is_command_allowed(const Identity& identity, const config::Experiment& experiment) {
  if (experiment.backend == config::own_backend) return true;
  const fs::path file = allowance_file(identity, experiment);
  return is_file(file) && queue::is_only_own(file.parent_path()) && queue::is_only_own(file);
}

void allow_command(const Identity& identity, const config::Experiment& experiment) {
  if (is_command_allowed(identity, experiment)) return;
  const fs::path file = allowance_file(identity, experiment);
  const fs::path folder = file.parent_path(), cache = user_cache_dir();
  for (const fs::path& place : {cache, folder}) {
    if (!queue::is_of_other_user(place) || queue::is_only_own(place)) continue;
    throw Error("the program of '" + experiment.backend + "' cannot be allowed in the cache '" +
                    shown_path(cache) + "', which is not yours",
                "FORGE_CACHE_DIR must name a folder of your own");
  }
  // What others could write there may be a permission that they gave.
  if (!queue::is_only_own(folder)) remove_tree(folder);
  make_directories(folder);
  std::error_code has_no_rights;  // the file system
  fs::permissions(folder, fs::perms::owner_all, has_no_rights);
  const std::string shown = shown_command(experiment.external) + "\n";  // for people
  queue::write_own_files(folder, {{file.filename(), shown}});
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
