#include "core/run/program_hash.h"

#include <sys/stat.h>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/hash.h"

namespace forge::run {

namespace fs = std::filesystem;

namespace {

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

std::vector<fs::path> program_files(const config::ExternalConfig& external) {
  std::vector<fs::path> files;
  for (const std::string& word : external.command) {
    const fs::path file = named_file(external.working_directory, word);
    if (!file.empty()) files.push_back(file);
  }
  return files;
}

std::string program_hash(const config::ExternalConfig& external) {
  if (external.command.empty()) return "";
  const std::vector<fs::path> files = program_files(external);
  if (files.empty()) return hash_hex(external.working_directory);
  Hasher hasher;
  for (const fs::path& file : files) hasher.update(hash_file(file));
  return hasher.hex();
}

std::string program_state(const config::ExternalConfig& external) {
  std::string state = program_hash(external);
  for (const fs::path& file : program_files(external)) {
    struct stat status {};
    if (::stat(file.c_str(), &status) != 0) continue;  // the hash has told that it is gone
    state +=
        " " + std::to_string(status.st_ctim.tv_sec) + "." + std::to_string(status.st_ctim.tv_nsec);
  }
  return state;
}

}  // namespace forge::run
