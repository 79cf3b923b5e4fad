#include "core/run/queue/owners.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "core/base/files.h"
#include "core/base/owner.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/run/queue/queue.h"

namespace forge::queue {
namespace {

/// Owner and rights that a file is shown with.
struct Shown {
  uid_t owner = 0;
  mode_t rights = 0;
};

/// Those of a file that this user makes in a folder for itself alone; none where that cannot be.
std::optional<Shown> shown_of_new_file(const fs::path& folder) {
  const fs::path path = aside_path(folder / "owner");
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return std::nullopt;
  struct stat status {};
  const bool is_seen = ::fstat(file.get(), &status) == 0;
  ::unlink(path.c_str());
  return is_seen ? std::optional<Shown>({status.st_uid, status.st_mode}) : std::nullopt;
}

/// The same; a folder is asked once.
std::optional<Shown> shown_in(const fs::path& folder) {
  thread_local std::map<std::pair<std::string, uid_t>, Shown> known;
  const std::pair<std::string, uid_t> key = {folder.string(), ::geteuid()};
  if (const auto found = known.find(key); found != known.end()) return found->second;
  const std::optional<Shown> shown = shown_of_new_file(folder);
  if (shown) known.emplace(key, *shown);
  return shown;
}

}  // namespace

bool is_only_own(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return false;
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) return false;
  const auto is_it = [&](uid_t owner, mode_t always_given) {
    return status.st_uid == owner && (status.st_mode & ~always_given & (S_IWGRP | S_IWOTH)) == 0;
  };
  if (is_it(::geteuid(), 0)) return true;
  const std::optional<Shown> shown = shown_in(path.parent_path());
  return shown && is_it(shown->owner, shown->rights);
}

void write_own_files(const fs::path& folder,
                     const std::vector<std::pair<std::string, std::string>>& contents,
                     fs::perms readers) {
  // Where nobody else can open them before their rights are what they are to be.
  const ScratchFolder aside(aside_path(folder / "own"), ScratchFolder::Access::own);
  write_files_atomic(aside.path(), contents);
  for (const auto& [name, content] : contents) {
    const fs::path file = aside.path() / name;
    std::error_code has_no_rights;  // the file system
    fs::permissions(file,
                    fs::perms::group_write | fs::perms::others_write,
                    fs::perm_options::remove,
                    has_no_rights);
    constexpr auto reading = fs::perms::group_read | fs::perms::others_read;
    fs::permissions(file, readers & reading, fs::perm_options::add, has_no_rights);
    rename_path(file, folder / name);
  }
  sync_path(folder);
}

bool is_of_other_user(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
}

bool is_closed(const fs::path& path, int wanted) {
  return ::access(path.c_str(), wanted) != 0 && (errno == EACCES || errno == EPERM);
}

std::optional<ClosedPath> closed_path(const run::RunFolder& folder) {
  constexpr int any = R_OK | W_OK | X_OK, written = R_OK | W_OK;
  const std::pair<fs::path, int> needed[] = {{folder.path(), any},
                                             {folder.checkpoints(), any},
                                             {folder.record_file(), R_OK},
                                             {folder.config_file(), R_OK},
                                             {folder.request_file(), R_OK},
                                             {folder.lock_file(), written},
                                             {folder.events_file(), written},
                                             {folder.supervisor_log(), written},
                                             {folder.stderr_file(), written}};
  const auto found = std::find_if(std::begin(needed), std::end(needed), [](const auto& path) {
    return is_closed(path.first, path.second);
  });
  if (found == std::end(needed)) return std::nullopt;
  ClosedPath closed;
  closed.path = found->first;
  closed.owner = owner_name(found->first);
  closed.is_own = !is_of_other_user(found->first);
  closed.what = is_closed(found->first, found->second & ~W_OK) ? "read" : "write to";
  closed.hides_lock = is_closed(folder.lock_file(), R_OK);
  return closed;
}

Error closed_error(const ClosedPath& closed) {
  const std::string path = "'" + shown_path(closed.path) + "'";
  const std::string rights = is_folder(closed.path) ? "rwx " : "rw ";
  const std::string file = shell_quoted(closed.path.string());
  if (closed.is_own)
    return Error("you may not " + closed.what + " " + path + ", though it is yours",
                 quoted_command("chmod u+" + rights + file) + " lets the run go on",
                 ExitCode::failed);
  return Error("you may not " + closed.what + " " + path + ": it belongs to " + closed.owner,
               closed.owner + " can go on with the run, or let you: " +
                   quoted_command("chmod a+" + rights + file),
               ExitCode::failed);
}

std::string closed_text(const ClosedPath& closed, const run::RunFolder& folder) {
  const std::string path = "'" + shown_path(closed.path) + "'";
  if (closed.is_own) return "your right to " + closed.what + " " + path + ", which is yours";
  const bool is_whole = closed.path == folder.path();
  return is_whole
             ? "its owner, " + closed.owner + ": this user may not " + closed.what + " its folder"
             : closed.owner + ", to whom " + path + " belongs: this user may not " + closed.what +
                   " it";
}

std::string foreign_entry_text(const fs::path& runs_dir, const std::string& run) {
  const fs::path entry = entry_file(runs_dir, run);
  if (is_only_own(entry)) return "";
  if (is_of_other_user(entry)) return "its owner, " + owner_name(entry) + ", who queued it";
  return "its entry in the queue, which others may have written: " +
         quoted_command("forge runs resume " + shell_quoted(run)) + " queues it anew";
}

bool is_own_entry(const fs::path& runs_dir, const std::string& run) {
  const fs::path entry = entry_file(runs_dir, run);
  return path_exists(entry) && !is_of_other_user(entry);
}

bool is_queued_by_other_user(const fs::path& runs_dir, const std::string& run) {
  return is_of_other_user(entry_file(runs_dir, run));
}

}  // namespace forge::queue
