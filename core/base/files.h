#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forge {

namespace fs = std::filesystem;

/// What exists at a path, following links. A path that cannot be examined counts as absent.
/// False where this user may not look. Throw Error where a disk or a limit keeps the system from
/// it.
bool path_exists(const fs::path& path);
bool is_file(const fs::path& path);
/// The same where files of one name are looked for in several folders. Throws Error where it cannot
/// be seen whether one is there, because this user may not look into a folder, or a link leads
/// nowhere: to take the next one might mean another file for another user.
bool is_seen_file(const fs::path& path);
bool is_folder(const fs::path& path);
/// The same, but true where this user may not look: what they may not see is not gone.
bool may_exist(const fs::path& path);
/// Whether both lead to one file or folder; false where one of them cannot be reached.
bool is_same_path(const fs::path& a, const fs::path& b);

/// Paths of what lies directly in a folder, sorted. Empty where there is no folder, or where this
/// user may not list it. Throws Error where a disk or a limit keeps the system from it.
std::vector<fs::path> folder_entries(const fs::path& folder);

/// Whole content of a file. Throws Error naming the path and the system's reason.
std::string read_file(const fs::path& path);

/// Replaces a file so that a reader sees the old or the new content and never a part: written
/// beside it, synced, renamed, the folder synced. On an error the old file is untouched. `rights`
/// it has beside those that the umask leaves.
void write_file_atomic(const fs::path& path,
                       std::string_view content,
                       fs::perms rights = fs::perms::none);

/// mkdir -p; throws Error naming the folder and the reason.
void make_directories(const fs::path& folder);

// What lies in a runs folder may come from somebody else: a link there, symbolic or hard, could
// lead to any file or folder of the user's. So forge makes, changes and empties only real files and
// folders in it, and files only that have no second name.

/// Throws Error where a link or anything else but a folder stands there.
void require_own_folder(const fs::path& folder);

/// Makes `inner`, names below `root`, one in the other. Throws Error where one of them is there and
/// no real folder, and where `root` is not there, which may have been moved away: it is never made
/// here. `root` itself may be a link.
void make_own_folders(const fs::path& root, const fs::path& inner);

/// fsync of a file or folder by path, so that a rename within a folder outlives a power cut.
void sync_path(const fs::path& path);

/// Removes a folder or file and all below; no error when it is not there.
void remove_tree(const fs::path& path);
void remove_tree(const fs::path& path, std::error_code& error);

/// rename(2); throws Error naming both.
void rename_path(const fs::path& from, const fs::path& to);

/// Names of folders on their way in or out begin so. No reader takes one for a finished folder.
constexpr const char* aside_prefix = ".tmp-";

/// Twelve random digits. Throws Error where the machine has none.
std::string random_digits();

/// Digits that no other process has: not one of this machine, nor one of another container or host
/// that shares a folder with it and may have the same process id. They begin with that.
std::string process_digits();

/// Whether a name is that of a file or folder on its way in or out: ".tmp-…", or for a file
/// "….tmp-" and a process's digits, as OutputFile names it.
bool is_aside_name(const std::string& name);

/// Where `folder` is put together, or to where it is moved to be removed: beside it, under a name
/// of this process's own.
fs::path aside_path(const fs::path& folder, const std::string& purpose = "");

/// Puts the finished folder `aside` in the place of `folder` and syncs the rename; what stood there
/// is removed, but not before.
void replace_folder(const fs::path& aside, const fs::path& folder);

/// A file descriptor that is closed at the end of its scope. Movable, not copyable.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

/// Writes all bytes to a descriptor. Throws Error naming `path`.
void write_all(int fd, std::string_view bytes, const fs::path& path);

/// Opens a file for reading. Throws Error for a folder, and for a pipe or device, of which a read
/// could wait or go on for ever.
FileDescriptor open_regular_file(const fs::path& path);
/// The same; no descriptor where there is no such file.
FileDescriptor open_if_exists(const fs::path& path);

/// Opens a file of forge's own with open(2)'s flags, to write to it. Throws Error for a link, which
/// is not followed, for a file that has a second name (a hard link), and for whatever else is no
/// file.
FileDescriptor open_own_file(const fs::path& path, int flags, const char* purpose = "open");
/// Throws Error where a link, a file with a second name, or anything else but a file stands there:
/// before a library opens it.
void require_own_file(const fs::path& path);

/// Size of an open file.
int64_t file_bytes(const FileDescriptor& file);

/// A log that only grows. Opening it cuts a torn last line (one without a newline), which a crash
/// in mid-write leaves. One writer at a time; that is the caller's lock to hold.
class AppendFile {
 public:
  explicit AppendFile(const fs::path& path);
  /// Writes all of `text`; after a failed or short write the file is cut back to where it was, at
  /// the latest before the next one.
  void append(std::string_view text);
  /// Returns once everything appended is on the disk.
  void sync();
  /// Whether the path still names this file: nobody has removed or replaced it.
  bool is_in_place() const;

 private:
  void cut_torn_text();

  fs::path path_;
  FileDescriptor file_;
  std::optional<off_t> torn_from_;  ///< where text begins that was not written whole
};

/// An advisory lock on a file, held until the object or the process ends (also by kill -9).
class FileLock {
 public:
  /// The lock, or nothing when another process holds it. Creates the file.
  static std::optional<FileLock> try_acquire(const fs::path& path);
  /// A lock that any number of processes share, on a file that is there; nothing where it is not,
  /// or a process holds the lock for itself.
  static std::optional<FileLock> try_share(const fs::path& path);
  /// Waits until the lock is free.
  static FileLock acquire(const fs::path& path);
  /// Whether some process holds the lock now. False when the file does not exist, or is not for
  /// this user to open. Throws Error where the machine does not say for a second: it may be held.
  static bool is_held(const fs::path& path);
  /// Whether the path still names the file that is locked: nobody has removed or replaced it.
  bool is_at(const fs::path& path) const;
  /// Leaves a line in the file for those who wait: which process holds the lock, and on which host.
  /// Nobody is hindered where there is no room for it.
  void sign(const std::string& host) const;
  /// What the holder of a lock that is held has left there, "process 4711 on node3"; empty if none.
  static std::string holder(const fs::path& path);

 private:
  explicit FileLock(FileDescriptor file) : file_(std::move(file)) {}
  FileDescriptor file_;
};

/// A whole file mapped read-only. Movable; the bytes stay where they are.
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  /// What was read so far no longer counts as this process's memory; it is read anew when needed.
  void forget() const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

/// Path of the running program.
fs::path program_path();

/// Folder of files that forge can make again: FORGE_CACHE_DIR, else forge/ in XDG_CACHE_HOME, else
/// ~/.cache/forge. Makes none of them. Without a home it is a folder for temporary files, made here
/// with access for this user alone; throws Error where others can write to it.
fs::path user_cache_dir();

/// The same where that cannot be written: a folder for temporary files, of this user alone.
fs::path temporary_cache_dir();

/// Folder of downloaded public texts: corpora/ in the user's cache.
fs::path corpora_dir();

/// Throws Error where a path has control characters: no line, table or command that names it could
/// be read or pasted. `what` names it: "the runs folder".
void require_printable_path(const fs::path& path, const std::string& what, const std::string& hint);

/// `path` as a user in the current folder would type it: relative when it lies below.
std::string shown_path(const fs::path& path);

/// A file that the user names for the output of a command. A new or regular file is replaced as a
/// whole; after a failure it is unchanged. A device, a pipe, or the target of a link, such as
/// /dev/stdout, is written to and never replaced.
class OutputFile {
 public:
  /// Throws Error naming the file where it cannot be written. Without `follows_links` the path is
  /// replaced whatever stands there.
  explicit OutputFile(fs::path path, bool follows_links = true);
  /// Discards what was written to a new or regular file, unless `finish` was called.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  void add_rights(fs::perms rights);
  void finish();

 private:
  fs::path path_;
  fs::path aside_;  ///< what becomes the file; "": it is written into
  FileDescriptor file_;
};

/// The file with this text and no other.
void write_output_file(const fs::path& path, std::string_view text);

}  // namespace forge
