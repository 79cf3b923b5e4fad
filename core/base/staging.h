#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/base/files.h"

/// Files and folders that exist until they are put in their place, or no longer needed.
namespace forge {

/// The system's folder for temporary files: $TMPDIR, or /tmp where that is not set or empty. Throws
/// Error where it is no folder.
fs::path temporary_folder();

/// An empty folder that is removed with the object.
class ScratchFolder {
 public:
  /// Who can enter it: whom the umask lets, or this user alone.
  enum class Access { usual, own };

  /// Replaces what stands there. One of this user's own is made in a folder that is there: where
  /// another command moves that away it must not come back with nothing but this in it.
  explicit ScratchFolder(fs::path path, Access access = Access::usual);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// A new folder that only this user can enter, in the system's folder for temporary files. It is
/// removed with the object, unless it is to stay.
class PrivateFolder {
 public:
  /// `purpose` begins its name. Throws Error where it cannot be made.
  explicit PrivateFolder(const std::string& purpose, bool stays = false);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
  bool stays_;
};

/// A folder that is filled beside its place and put there when it is whole. One that is not put
/// there is removed with the object.
class FolderWriter {
 public:
  explicit FolderWriter(fs::path folder)
      : folder_(std::move(folder)), aside_(aside_path(folder_)) {}

  /// To be filled.
  const fs::path& path() const { return aside_.path(); }
  /// Puts the folder in its place, which must be free, and syncs the rename. Throws Error where it
  /// is not.
  void create();
  /// The same; what stands there is replaced.
  void replace() { replace_folder(path(), folder_); }

 private:
  fs::path folder_;
  ScratchFolder aside_;
};

/// Returns once all below a folder is on the disk: written in one go for the whole file system, and
/// then asked for file by file, which tells of each that could not be written. Links stay unopened.
void sync_tree(const fs::path& folder);

/// Replaces files of a folder, by their names, as write_file_atomic replaces one. The disk is
/// waited for once: for each file it would be some milliseconds.
void write_files_atomic(const fs::path& folder,
                        const std::vector<std::pair<std::string, std::string>>& contents);

/// `path` or the nearest folder above it that exists.
fs::path existing_ancestor(fs::path path);

/// A file that is removed with the object.
class TemporaryFile {
 public:
  /// A new empty file in the system's folder for temporary files.
  TemporaryFile();
  /// Whatever is or will be written there.
  explicit TemporaryFile(fs::path path) : path_(std::move(path)) {}
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace forge
