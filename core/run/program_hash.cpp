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

/// Of files elsewhere larger ones are data that a program reads, which may take minutes to hash.
constexpr uintmax_t most_bytes_elsewhere = 16 << 20;

/// The file that a word of the command names; "" for others. A program of the system that starts
/// the command, /usr/bin/python3, is as it is named.
fs::path named_file(const fs::path& folder, const std::string& word, bool is_started) {
  const size_t equals = word.find('=');
  const std::string name = equals == std::string::npos ? word : word.substr(equals + 1);
  if (name.empty()) return {};
  const fs::path file = (folder / name).lexically_normal();
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return {};
  const bool is_elsewhere = fs::path(name).is_absolute() &&
                            *file.lexically_relative(folder.lexically_normal()).begin() == "..";
  if (is_elsewhere && (is_started || fs::file_size(file, ignored) > most_bytes_elsewhere))
    return {};
  return file;
}

}  // namespace

bool is_called_as_forges_own(const fs::path& working_directory) {
  return working_directory.filename() == "bigram" || working_directory.filename() == "pytorch";
}

std::vector<fs::path> program_files(const config::ExternalConfig& external) {
  std::vector<fs::path> files;
  for (size_t i = 0; i < external.command.size(); ++i) {
    const fs::path file = named_file(external.working_directory, external.command[i], i == 0);
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
