#include "core/base/pinned_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "core/base/error.h"

namespace forge {
namespace {

constexpr std::string_view pin_prefix = "/proc/self/fd/";

/// Opened to look things up in it, which asks for no right to read its names.
FileDescriptor open_folder(int from, const fs::path& path, int flags) {
  return FileDescriptor(::openat(from, path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | flags));
}

}  // namespace

PinnedFolder::PinnedFolder(const fs::path& root, const fs::path& inner)
    : folder_(open_folder(AT_FDCWD, root, 0)) {
  if (!folder_) throw system_error("open the folder '" + root.string() + "'", errno);
  fs::path called = root;
  for (const fs::path& name : inner) {
    called /= name;
    FileDescriptor next = open_folder(folder_.get(), name, O_NOFOLLOW);
    const int reason = errno;
    if (!next) {
      require_own_folder(called);
      throw system_error("open the folder '" + called.string() + "'", reason);
    }
    folder_ = std::move(next);
  }
  path_ = std::string(pin_prefix) + std::to_string(folder_.get());
}

void PinnedFolder::require_at(const fs::path& name) const {
  struct stat open {};
  struct stat named {};
  const bool is_same = ::fstat(folder_.get(), &open) == 0 && ::lstat(name.c_str(), &named) == 0 &&
                       open.st_dev == named.st_dev && open.st_ino == named.st_ino;
  if (is_same) return;
  require_own_folder(name);
  throw Error("the folder '" + shown_path(name) + "' was moved away while forge worked in it",
              ExitCode::failed);
}

PinnedFolder pinned_below(const fs::path& folder, int depth) {
  fs::path root = fs::absolute(folder);
  fs::path inner;
  for (; depth > 0; --depth) {
    inner = inner.empty() ? root.filename() : root.filename() / inner;
    root = root.parent_path();
  }
  return {root, inner};
}

std::string without_pins(std::string text) {
  for (size_t at = text.find(pin_prefix); at != std::string::npos; at = text.find(pin_prefix, at)) {
    const size_t digits = at + pin_prefix.size();
    const size_t end = std::min(text.find_first_not_of("0123456789", digits), text.size());
    char called[PATH_MAX];
    const ssize_t size = ::readlink(text.substr(at, end - at).c_str(), called, sizeof called);
    const bool is_path = end > digits && size > 0 && called[0] == '/';
    if (is_path) text.replace(at, end - at, called, static_cast<size_t>(size));
    at = is_path ? at + static_cast<size_t>(size) : end;
  }
  return text;
}

}  // namespace forge
