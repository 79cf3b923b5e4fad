#include "core/base/staging.h"

#include <cerrno>
#include <cstdlib>

#include "core/base/error.h"

namespace forge {

FolderWriter::FolderWriter(fs::path folder)
    : folder_(std::move(folder)), aside_(aside_path(folder_)) {
  remove_tree(aside_);
  make_directories(aside_);
}

FolderWriter::~FolderWriter() {
  std::error_code ignored;
  remove_tree(aside_, ignored);
}

void FolderWriter::create() {
  rename_path(aside_, folder_);
  sync_path(folder_.parent_path());
}

void FolderWriter::replace() { replace_folder(aside_, folder_); }

ScratchFolder::ScratchFolder(fs::path path) : path_(std::move(path)) {
  remove_tree(path_);
  make_directories(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  remove_tree(path_, ignored);
}

fs::path existing_ancestor(fs::path path) {
  while (!path_exists(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

TemporaryFile::TemporaryFile() {
  std::string pattern = (fs::temp_directory_path() / "forge-XXXXXX").string();
  const FileDescriptor made(::mkstemp(pattern.data()));
  if (!made) throw system_error("make a file in " + fs::temp_directory_path().string(), errno);
  path_ = pattern;
}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace forge
