#include "core/base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include <dirent.h>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/pinned_folder.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/base/waiting.h"

namespace forge {
namespace {

FileDescriptor open_file(const fs::path& path, int flags, const char* purpose) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
  if (fd < 0) throw system_error(std::string(purpose) + " '" + path.string() + "'", errno);
  return FileDescriptor(fd);
}

std::string kind_of_file(mode_t mode) {
  if (S_ISREG(mode)) return "a file";
  if (S_ISLNK(mode)) return "a symbolic link";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// What stands at the path itself, 0 for nothing.
mode_t mode_of_entry(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return status.st_mode;
  if (errno == ENOENT || errno == ENOTDIR) return 0;
  throw system_error("look at '" + path.string() + "'", errno);
}

/// A file with two names may be any file of the user's: somebody else gave it the second one.
Error several_names(const fs::path& path) {
  return Error("'" + shown_path(path) +
                   "' has another name elsewhere (a hard link), and forge "
                   "writes only to files of its own",
               "to keep its content: " +
                   quoted_command("cp -p " + shell_quoted(path.string()) + " " +
                                  shell_quoted(path.string() + ".copy")) +
                   " and " +
                   quoted_command("mv " + shell_quoted(path.string() + ".copy") + " " +
                                  shell_quoted(path.string())),
               ExitCode::failed);
}

Error not_own(const fs::path& path, mode_t mode, const char* wanted) {
  return Error("'" + shown_path(path) + "' is " + kind_of_file(mode) + ", and forge keeps " +
                   wanted + " there",
               "remove it, or put what it leads to in its place",
               ExitCode::failed);
}

/// The names in an open folder.
std::vector<std::string> names_in(FileDescriptor folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(folder.get()), ::closedir);
  if (!entries) return names;
  folder.release();
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

/// Removes what has that name in an open folder, and all below; 0, or the number of the error. Each
/// folder is opened from the one that it lies in, and never through a link: whatever is put in the
/// place of one meanwhile, nothing elsewhere is removed.
int remove_below(int folder, const std::string& name) {
  if (::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT) return 0;
  if (errno != EISDIR) return errno;
  const FileDescriptor inner(
      ::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (inner) {
    for (const std::string& entry : names_in(FileDescriptor(::dup(inner.get()))))
      if (const int error = remove_below(inner.get(), entry)) return error;
  }
  // One that cannot be read may still be empty.
  const int unreadable = inner ? 0 : errno;
  if (::unlinkat(folder, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return 0;
  return unreadable ? unreadable : errno;
}

/// Whether the path still names the open file.
bool is_same_file(const FileDescriptor& file, const fs::path& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(file.get(), &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

void sync_descriptor(int fd, const fs::path& path) {
  if (::fsync(fd) != 0) throw system_error("sync '" + path.string() + "'", errno);
}

/// Makes a folder in a place where every user may write, or takes one made before. Throws Error
/// where it is not this user's alone: whoever made it could put files of theirs into it.
fs::path private_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw system_error("make the folder '" + path.string() + "'", errno);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    throw system_error("look at '" + path.string() + "'", errno);
  const char* fault = !S_ISDIR(status.st_mode)               ? "is not a folder"
                      : status.st_uid != ::geteuid()         ? "belongs to another user"
                      : status.st_mode & (S_IWGRP | S_IWOTH) ? "can be written by other users"
                                                             : nullptr;
  if (!fault) return path;
  throw Error("the cache folder '" + path.string() + "' " + fault,
              "set HOME or FORGE_CACHE_DIR to a folder of your own",
              ExitCode::failed);
}

}  // namespace

void write_all(int fd, std::string_view bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw system_error("write '" + path.string() + "'", written < 0 ? errno : EIO);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

namespace {

/// Throws Error where a disk or a limit kept the system from looking: what stands there is not
/// gone.
void require_answered(const std::string& what, const fs::path& path, const std::error_code& error) {
  if (!error) return;
  const Error problem = system_error(what + " '" + path.string() + "'", error.value());
  if (may_pass(problem)) throw problem;
}

/// Of what a path leads to; of type not_found or unknown where it leads to nothing that this user
/// may see.
fs::file_status status_of(const fs::path& path) {
  std::error_code unreadable;
  const fs::file_status status = fs::status(path, unreadable);
  require_answered("look at", path, unreadable);
  return status;
}

}  // namespace

bool path_exists(const fs::path& path) {
  const fs::file_status status = status_of(path);
  return fs::status_known(status) && fs::exists(status);
}

bool may_exist(const fs::path& path) { return status_of(path).type() != fs::file_type::not_found; }

bool is_file(const fs::path& path) { return fs::is_regular_file(status_of(path)); }

bool is_seen_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(path, error);
  if (status.type() == fs::file_type::not_found) return false;
  if (!fs::status_known(status))
    throw Error("cannot look at '" + shown_path(path) + "': " + error.message(),
                "it would be taken if it is there",
                ExitCode::failed);
  if (fs::is_symlink(status) && !path_exists(path))
    throw Error("'" + shown_path(path) + "' is a link that leads nowhere",
                "it would be taken if its file were there: remove the link, or bring the file back",
                ExitCode::failed);
  return is_file(path);
}

bool is_folder(const fs::path& path) { return fs::is_directory(status_of(path)); }

bool is_same_path(const fs::path& a, const fs::path& b) {
  std::error_code unreachable;
  return fs::equivalent(a, b, unreachable);
}

std::vector<fs::path> folder_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(entry->path());
  require_answered("list", folder, error);
  std::sort(entries.begin(), entries.end());
  return entries;
}

FileDescriptor open_regular_file(const fs::path& path) {
  FileDescriptor file = open_if_exists(path);
  if (!file) throw system_error("read '" + path.string() + "'", ENOENT);
  return file;
}

FileDescriptor open_if_exists(const fs::path& path) {
  // Without O_NONBLOCK the opening of a pipe waits for its writer.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return file;
  struct stat status {};
  if (!file) throw system_error("read '" + path.string() + "'", errno);
  if (::fstat(file.get(), &status) != 0) throw system_error("read '" + path.string() + "'", errno);
  if (S_ISREG(status.st_mode)) return file;
  throw Error(
      "cannot read '" + path.string() + "': it is " + kind_of_file(status.st_mode) + ", not a file",
      ExitCode::failed);
}

FileDescriptor open_own_file(const fs::path& path, int flags, const char* purpose) {
  // Without O_NONBLOCK the opening of a pipe waits for its reader.
  // Nothing is cut before it is known to be forge's.
  const int opening = (flags & ~O_TRUNC) | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
  FileDescriptor file(::open(path.c_str(), opening, 0666));
  const int reason = errno;
  struct stat status {};
  if (file && ::fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode)) {
    if (status.st_nlink > 1) throw several_names(path);
    if ((flags & O_TRUNC) && ::ftruncate(file.get(), 0) != 0)
      throw system_error(std::string(purpose) + " '" + path.string() + "'", errno);
    ::fcntl(file.get(), F_SETFL, flags);
    return file;
  }
  require_own_file(path);
  throw system_error(std::string(purpose) + " '" + path.string() + "'", reason);
}

void require_own_file(const fs::path& path) {
  const mode_t mode = mode_of_entry(path);
  if (mode == 0) return;
  if (!S_ISREG(mode)) throw not_own(path, mode, "a file");
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && status.st_nlink > 1) throw several_names(path);
}

int64_t file_bytes(const FileDescriptor& file) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw system_error("ask for the size of a file", errno);
  return status.st_size;
}

std::string read_file(const fs::path& path) {
  const FileDescriptor file = open_regular_file(path);
  std::string content(static_cast<size_t>(file_bytes(file)), '\0');
  size_t filled = 0;
  while (true) {
    if (filled == content.size()) content.resize(content.size() + 4096);
    const ssize_t got = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw system_error("read '" + path.string() + "'", errno);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  content.resize(filled);
  return content;
}

void make_directories(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw system_error("create folder '" + folder.string() + "'", error.value());
}

void require_own_folder(const fs::path& folder) {
  const mode_t mode = mode_of_entry(folder);
  if (mode != 0 && !S_ISDIR(mode)) throw not_own(folder, mode, "a folder");
}

void make_own_folders(const fs::path& root, const fs::path& inner) {
  if (!is_folder(root)) throw system_error("create a folder in '" + root.string() + "'", ENOENT);
  fs::path folder = root;
  for (const fs::path& name : inner) {
    folder /= name;
    const bool made = ::mkdir(folder.c_str(), 0777) == 0;
    if (!made && errno != EEXIST)
      throw system_error("create folder '" + folder.string() + "'", errno);
    require_own_folder(folder);
  }
}

void sync_path(const fs::path& path) {
  const FileDescriptor file = open_file(path, O_RDONLY, "open");
  sync_descriptor(file.get(), path);
}

void remove_tree(const fs::path& path, std::error_code& error) {
  // Not std::filesystem::remove_all: Python's libtorch exports a copy of it that crashes in
  // programs of another C++ library.
  error.clear();
  const fs::path whole = path.has_filename() ? path : path.parent_path();
  const fs::path parent = whole.has_parent_path() ? whole.parent_path() : fs::path(".");
  const FileDescriptor folder(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const int reason = folder ? remove_below(folder.get(), whole.filename().string()) : errno;
  if (reason != 0 && reason != ENOENT) error.assign(reason, std::generic_category());
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  remove_tree(path, error);
  if (error) throw system_error("remove '" + path.string() + "'", error.value());
}

void rename_path(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw system_error("rename '" + from.string() + "' to '" + to.string() + "'", errno);
  }
}

namespace {

constexpr size_t random_digit_count = 12;

}  // namespace

std::string random_digits() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    throw system_error("get a random number", errno);
  std::string digits(random_digit_count, '0');
  for (char& digit : digits) {
    digit = static_cast<char>('0' + number % 10);
    number /= 10;
  }
  return digits;
}

std::string process_digits() {
  static const std::string drawn = random_digits();
  return std::to_string(::getpid()) + drawn;
}

bool is_aside_name(const std::string& name) {
  if (starts_with(name, aside_prefix)) return true;
  const size_t mark = name.rfind(aside_prefix);
  if (mark == std::string::npos) return false;
  const size_t first = mark + std::strlen(aside_prefix), digits = name.size() - first;
  // More than those that are drawn: a run of the config x.tmp may have a key of twelve digits, and
  // a user's own file may end in a day.
  constexpr size_t most_of_pid = 10;
  return digits > random_digit_count && digits <= most_of_pid + random_digit_count &&
         name.find_first_not_of("0123456789", first) == std::string::npos;
}

fs::path aside_path(const fs::path& folder, const std::string& purpose) {
  std::string name = aside_prefix + folder.filename().string() + "-";
  if (!purpose.empty()) name += purpose + "-";
  return folder.parent_path() / (name + process_digits());
}

void replace_folder(const fs::path& aside, const fs::path& folder) {
  if (!fs::exists(folder)) {
    rename_path(aside, folder);
    sync_path(folder.parent_path());
    return;
  }
  // Exchanged in one step where the file system can, so that some whole folder stands there at any
  // moment.
  if (::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, folder.c_str(), RENAME_EXCHANGE) != 0) {
    const fs::path old = aside_path(folder, "old");
    remove_tree(old);
    rename_path(folder, old);
    rename_path(aside, folder);
    remove_tree(old);
  }
  sync_path(folder.parent_path());
  remove_tree(aside);
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

void FileDescriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

AppendFile::AppendFile(const fs::path& path)
    : path_(path), file_(open_own_file(path, O_RDWR | O_CREAT | O_APPEND)) {
  off_t end = ::lseek(file_.get(), 0, SEEK_END);
  const off_t written = end;
  char last = '\n';
  while (end > 0) {
    if (::pread(file_.get(), &last, 1, end - 1) != 1)
      throw system_error("read '" + path.string() + "'", errno);
    if (last == '\n') break;
    --end;
  }
  if (end != written && ::ftruncate(file_.get(), end) != 0) {
    throw system_error("cut the torn last line of '" + path.string() + "'", errno);
  }
}

void AppendFile::append(std::string_view text) {
  cut_torn_text();
  const off_t before = ::lseek(file_.get(), 0, SEEK_END);
  try {
    write_all(file_.get(), text, path_);
  } catch (const Error&) {
    torn_from_ = before;
    try {
      cut_torn_text();
    } catch (const Error&) {
      // Should nothing more be appended, the next opener cuts it.
    }
    throw;
  }
}

/// Half a line must not be read as a line.
void AppendFile::cut_torn_text() {
  if (!torn_from_) return;
  if (::ftruncate(file_.get(), *torn_from_) != 0)
    throw system_error("cut the torn last line of '" + path_.string() + "'", errno);
  torn_from_.reset();
}

bool AppendFile::is_in_place() const { return is_same_file(file_, path_); }

void AppendFile::sync() { sync_descriptor(file_.get(), path_); }

std::optional<FileLock> FileLock::try_acquire(const fs::path& path) {
  FileDescriptor file = open_own_file(path, O_RDWR | O_CREAT, "lock");
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return FileLock(std::move(file));
  if (errno == EWOULDBLOCK) return std::nullopt;
  throw system_error("lock '" + path.string() + "'", errno);
}

std::optional<FileLock> FileLock::try_share(const fs::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file || ::flock(file.get(), LOCK_SH | LOCK_NB) != 0) return std::nullopt;
  return FileLock(std::move(file));
}

FileLock FileLock::acquire(const fs::path& path) {
  FileDescriptor file = open_own_file(path, O_RDWR | O_CREAT, "lock");
  const int before = interrupts_so_far();
  while (::flock(file.get(), LOCK_EX) != 0) {
    if (errno != EINTR) throw system_error("lock '" + path.string() + "'", errno);
    require_uninterrupted(before);
  }
  return FileLock(std::move(file));
}

namespace {

/// Whether some process holds the lock; none where the machine does not say, with errno set.
std::optional<bool> look_at_lock(const fs::path& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file) {
    const bool is_not_ours = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
                             errno == EACCES || errno == EPERM || errno == ENXIO;
    return is_not_ours ? std::optional(false) : std::nullopt;
  }
  if (::flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK ? std::optional(true) : std::nullopt;
}

}  // namespace

bool FileLock::is_held(const fs::path& path) {
  constexpr int looks = 5, milliseconds = 200;  // a network's folder may be away for a moment
  for (int look = 1;; ++look) {
    if (const std::optional<bool> held = look_at_lock(path)) return *held;
    if (look == looks) throw system_error("look at the lock '" + path.string() + "'", errno);
    ::poll(nullptr, 0, milliseconds);
  }
}

bool FileLock::is_at(const fs::path& path) const { return is_same_file(file_, path); }

void FileLock::sign(const std::string& host) const {
  const std::string line = "process " + std::to_string(::getpid()) + " on " + host + "\n";
  if (::ftruncate(file_.get(), 0) != 0) return;
  if (::pwrite(file_.get(), line.data(), line.size(), 0) < 0) errno = 0;
}

std::string FileLock::holder(const fs::path& path) {
  // /proc/locks would know, but not on overlay file systems, in containers or of other hosts.
  if (!is_held(path)) return "";
  const FileDescriptor file = open_regular_file(path);
  char line[256];
  const ssize_t size = ::pread(file.get(), line, sizeof(line), 0);
  const std::string_view text(line, size < 0 ? 0 : static_cast<size_t>(size));
  return std::string(text.substr(0, text.find('\n')));
}

MappedFile::MappedFile(const fs::path& path) {
  const FileDescriptor file = open_regular_file(path);
  size_ = static_cast<size_t>(file_bytes(file));
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (address == MAP_FAILED) throw system_error("map '" + path.string() + "'", errno);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::forget() const {
  if (data_) ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

fs::path program_path() { return fs::read_symlink("/proc/self/exe"); }

fs::path user_cache_dir() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (const std::string chosen = variable("FORGE_CACHE_DIR"); !chosen.empty())
    return fs::absolute(chosen);
  const fs::path xdg = variable("XDG_CACHE_HOME");
  if (xdg.is_absolute()) return xdg / "forge";
  if (const std::string home = variable("HOME"); !home.empty())
    return fs::absolute(home) / ".cache" / "forge";
  return temporary_cache_dir();
}

fs::path temporary_cache_dir() {
  return private_folder(temporary_folder() / ("forge-cache-" + std::to_string(::geteuid())));
}

fs::path corpora_dir() { return user_cache_dir() / "corpora"; }

void require_printable_path(const fs::path& path,
                            const std::string& what,
                            const std::string& hint) {
  const std::string& text = path.native();
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : ' ');
    const bool is_second_set = byte == 0xC2 && next >= 0x80 && next <= 0x9F;  // U+0080 to U+009F
    if (byte < ' ' || byte == 0x7f || is_second_set) {
      throw Error("the path of " + what + " '" + tables::printable(text) +
                      "' has a line break or another control character",
                  hint,
                  ExitCode::failed);
    }
  }
}

std::string shown_path(const fs::path& named) {
  const fs::path path = without_pins(named.string());
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (error || !path.is_absolute()) return tables::printable(path.string());
  const fs::path relative = path.lexically_relative(here);
  const bool is_below = !relative.empty() && *relative.begin() != "..";
  return tables::printable(is_below ? relative.string() : path.string());
}

OutputFile::OutputFile(fs::path path, bool follows_links) : path_(std::move(path)) {
  std::error_code ignored;
  const fs::file_status status = fs::symlink_status(path_, ignored);
  const bool is_replaced = !follows_links || !fs::exists(status) || fs::is_regular_file(status);
  if (is_replaced) aside_ = path_.string() + ".tmp-" + process_digits();
  const fs::path& opened = is_replaced ? aside_ : path_;
  // A link that waits there would lead to another file; so would a second name of one.
  if (is_replaced) ::unlink(aside_.c_str());
  // Without O_NONBLOCK the opening of a pipe waits for its reader.
  const int flags =
      O_WRONLY | O_CREAT | O_CLOEXEC | (is_replaced ? O_EXCL : O_TRUNC | O_NONBLOCK | O_NOCTTY);
  file_ = FileDescriptor(::open(opened.c_str(), flags, 0666));
  if (!file_ && errno == ENXIO)
    throw Error("cannot write '" + path_.string() + "': it is a pipe that nobody reads",
                "begin to read it first, or name another file",
                ExitCode::failed);
  if (!file_) throw system_error("write '" + path_.string() + "'", errno);
  ::fcntl(file_.get(), F_SETFL, O_WRONLY);
}

OutputFile::~OutputFile() {
  if (!aside_.empty()) ::unlink(aside_.c_str());
}

void OutputFile::write(std::string_view text) { write_all(file_.get(), text, path_); }

void OutputFile::add_rights(fs::perms rights) {
  struct stat status {};
  const bool is_known = ::fstat(file_.get(), &status) == 0;
  const mode_t all = status.st_mode | static_cast<mode_t>(rights);
  if (!is_known || (all != status.st_mode && ::fchmod(file_.get(), all) != 0))
    throw system_error("change the rights of '" + path_.string() + "'", errno);
}

void OutputFile::finish() {
  if (aside_.empty()) return;
  if (::fsync(file_.get()) != 0 || ::rename(aside_.c_str(), path_.c_str()) != 0)
    throw system_error("write '" + path_.string() + "'", errno);
  aside_.clear();
  sync_path(path_.has_parent_path() ? path_.parent_path() : fs::path("."));
}

void write_file_atomic(const fs::path& path, std::string_view content, fs::perms rights) {
  OutputFile file(path, false);
  file.write(content);
  file.add_rights(rights);
  file.finish();
}

void write_output_file(const fs::path& path, std::string_view text) {
  OutputFile file(path);
  file.write(text);
  file.finish();
}

}  // namespace forge
