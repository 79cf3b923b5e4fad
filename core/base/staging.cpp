#include "core/base/staging.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "core/base/error.h"

namespace forge {

fs::path temporary_folder() {
  const char* chosen = std::getenv("TMPDIR");
  if (!chosen || *chosen == '\0') return "/tmp";
  if (is_folder(chosen)) return chosen;
  throw Error("TMPDIR names no folder: '" + std::string(chosen) + "'",
              "unset it, or name a folder that can be written",
              ExitCode::failed);
}

ScratchFolder::ScratchFolder(fs::path path, Access access) : path_(std::move(path)) {
  const bool is_own = access == Access::own;
  remove_tree(path_);
  if (!is_own && path_.has_parent_path()) make_directories(path_.parent_path());
  constexpr mode_t everybody = S_IRWXU | S_IRWXG | S_IRWXO;
  if (::mkdir(path_.c_str(), is_own ? S_IRWXU : everybody) != 0)
    throw system_error("make the folder '" + path_.string() + "'", errno);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  remove_tree(path_, ignored);
}

PrivateFolder::PrivateFolder(const std::string& purpose, bool stays) : stays_(stays) {
  std::string pattern = (temporary_folder() / ("forge-" + purpose + "-XXXXXX")).string();
  if (!::mkdtemp(pattern.data())) throw system_error("make a folder '" + pattern + "'", errno);
  path_ = pattern;
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  if (!stays_) remove_tree(path_, ignored);
}

void FolderWriter::create() {
  rename_path(path(), folder_);
  sync_path(folder_.parent_path());
}

namespace {

/// In one go, all that was written to the file system of the folder.
void sync_file_system(const fs::path& folder) {
  const FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::syncfs(opened.get()) != 0)
    throw system_error("sync '" + folder.string() + "'", errno);
}

void sync_each(const fs::path& folder) {
  for (const fs::path& entry : folder_entries(folder)) {
    const fs::file_type kind = fs::symlink_status(entry).type();
    if (kind == fs::file_type::directory) sync_each(entry);
    if (kind == fs::file_type::regular) sync_path(entry);
  }
  sync_path(folder);
}

}  // namespace

void sync_tree(const fs::path& folder) {
  sync_file_system(folder);
  sync_each(folder);
}

void write_files_atomic(const fs::path& folder,
                        const std::vector<std::pair<std::string, std::string>>& contents) {
  if (contents.empty()) return;
  if (contents.size() == 1)
    return write_file_atomic(folder / contents[0].first, contents[0].second);
  const ScratchFolder aside(aside_path(folder / "batch"));
  for (const auto& [name, content] : contents) {
    const fs::path path = aside.path() / name;
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file) throw system_error("write '" + path.string() + "'", errno);
    write_all(file.get(), content, path);
  }
  sync_file_system(aside.path());
  for (const auto& [name, content] : contents) rename_path(aside.path() / name, folder / name);
  sync_path(folder);
}

fs::path existing_ancestor(fs::path path) {
  while (!path_exists(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

TemporaryFile::TemporaryFile() {
  const fs::path folder = temporary_folder();
  std::string pattern = (folder / "forge-XXXXXX").string();
  const FileDescriptor made(::mkstemp(pattern.data()));
  if (!made) throw system_error("make a file in " + folder.string(), errno);
  path_ = pattern;
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace forge
