#include "core/run/program_hash.h"

#include <filesystem>
#include <system_error>

#include "core/base/hash.h"

namespace forge::run {
namespace {

namespace fs = std::filesystem;

/// The file that a word of the command names, where the folder decides which it is; "" for others.
/// A program of the system, /usr/bin/python3, is as it is named.
fs::path named_file(const fs::path& folder, const std::string& word) {
  const size_t equals = word.find('=');
  const std::string name = equals == std::string::npos ? word : word.substr(equals + 1);
  if (name.empty()) return {};
  const fs::path file = (folder / name).lexically_normal();
  const bool is_absolute = fs::path(name).is_absolute();
  if (is_absolute && *file.lexically_relative(folder.lexically_normal()).begin() == "..") return {};
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) ? file : fs::path();
}

}  // namespace

std::string program_hash(const config::ExternalConfig& external) {
  if (external.command.empty()) return "";
  Hasher hasher;
  bool names_a_file = false;
  for (const std::string& word : external.command) {
    const fs::path file = named_file(external.working_directory, word);
    if (file.empty()) continue;
    names_a_file = true;
    hasher.update(hash_file(file));
  }
  return names_a_file ? hasher.hex() : hash_hex(external.working_directory);
}

}  // namespace forge::run
