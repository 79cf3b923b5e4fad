#include "core/run/input_files.h"

#include <sys/stat.h>
#include <algorithm>
#include <sstream>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/data/rows/token_file.h"
#include "core/run/inputs_hash.h"
#include "core/run/program_hash.h"

namespace forge::run {
namespace {

namespace fs = std::filesystem;

/// Content of more than this is not read again: seconds of a fast disk.
constexpr int64_t most_read_again = int64_t{4} << 30;

constexpr const char* written_to = " (written to; the content is what it was)";

int64_t nanoseconds(const struct timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

InputFiles::InputFiles(const config::ExternalConfig& external, const worker::Request& request)
    : experiment_(request.experiment) {
  const fs::path folder = fs::path(external.working_directory).lexically_normal();
  for (const fs::path& file : program_files(external))
    add({file, file.lexically_relative(folder).string(), {}, {}, {}});
  for (const auto* sources :
       {&request.train_tokens, &request.evaluation_tokens, &request.validation_tokens}) {
    for (const worker::TokenSource& source : *sources) {
      if (source.path.empty()) continue;
      const fs::path file(source.path);
      add({file, (file.parent_path().filename() / file.filename()).string(), source, {}, {}});
    }
  }
}

std::string InputFiles::State::text() const {
  return std::to_string(size) + " " + std::to_string(inode) + " " + std::to_string(written_ns) +
         " " + std::to_string(changed_ns);
}

bool InputFiles::is_suspicious(const File& file, const State& before, const State& now) {
  // A backup that makes links, or other rights, change the last of the times alone.
  const bool is_other = now.inode != before.inode;
  const bool is_written = now.size != before.size || now.written_ns != before.written_ns;
  return file.source ? is_written && !is_other : is_written || is_other;
}

bool InputFiles::read_state(const fs::path& path, State& state) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return false;
  state = {status.st_size,
           static_cast<int64_t>(status.st_ino),
           nanoseconds(status.st_mtim),
           nanoseconds(status.st_ctim)};
  return true;
}

/// "" of a file that cannot be read, and with `checks_all` of tokens that are damaged.
std::string InputFiles::content_of(const File& file, bool checks_all) const {
  try {
    if (!file.source) return hash_file(file.path);
    if (checks_all) data::TokenFile(file.path).verify_hash();
    return tokens_hash(*file.source, experiment_);
  } catch (const Error&) {
    return "";
  }
}

void InputFiles::add(File file) {
  const bool is_known = std::any_of(
      files_.begin(), files_.end(), [&](const File& other) { return other.path == file.path; });
  if (is_known || !read_state(file.path, file.state)) return;
  file.content = content_of(file, false);
  files_.push_back(std::move(file));
}

std::string InputFiles::change_of(const File& file) const {
  const State& before = file.state;
  State now;
  if (!read_state(file.path, now)) return "";
  if (now.text() == before.text()) return "";
  const bool is_read_again = now.size <= most_read_again;
  if (content_of(file, is_read_again) != file.content) return file.name;
  if (!is_suspicious(file, before, now)) return "";
  return file.name + (is_read_again ? written_to : " (written to; too large to be read again)");
}

std::vector<std::string> InputFiles::changed() const {
  std::vector<std::string> names;
  for (const File& file : files_) {
    const std::string change = change_of(file);
    if (!change.empty()) names.push_back(change);
  }
  return names;
}

std::map<std::string, std::string> InputFiles::states() const {
  std::map<std::string, std::string> states;
  for (const File& file : files_) states[file.path.string()] = file.state.text();
  return states;
}

std::vector<std::string> InputFiles::changed_since(
    const std::map<std::string, std::string>& states) const {
  std::vector<std::string> names;
  for (const File& file : files_) {
    const auto found = states.find(file.path.string());
    if (found == states.end()) continue;
    State before;
    std::istringstream text(found->second);
    text >> before.size >> before.inode >> before.written_ns >> before.changed_ns;
    if (text && is_suspicious(file, before, file.state)) names.push_back(file.name + written_to);
  }
  return names;
}

std::string changed_inputs_text(const std::string& files) {
  return "files that it reads were changed while it trained: " + files;
}

}  // namespace forge::run
