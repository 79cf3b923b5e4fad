#include "core/run/queue/owners.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <map>
#include <vector>

#include "core/base/files.h"

namespace forge::queue {
namespace {

std::string user_name(uid_t user) {
  // A directory server may be asked for each, and a queue may hold thousands of one user's runs.
  thread_local std::map<uid_t, std::string> known;
  const auto [found, is_new] = known.try_emplace(user);
  if (!is_new) return found->second;
  passwd entry{};
  passwd* named = nullptr;
  std::vector<char> names(16 << 10);
  const bool has_name =
      ::getpwuid_r(user, &entry, names.data(), names.size(), &named) == 0 && named != nullptr;
  return found->second = has_name ? entry.pw_name : "user " + std::to_string(user);
}

}  // namespace

std::string owner_name(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? user_name(status.st_uid) : "";
}

bool is_of_other_user(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && status.st_uid != ::geteuid();
}

bool is_closed(const fs::path& path, int wanted) {
  return ::access(path.c_str(), wanted) != 0 && (errno == EACCES || errno == EPERM);
}

std::string owner_of_closed(const run::RunFolder& folder) {
  bool closed = is_closed(folder.path(), R_OK | W_OK | X_OK) ||
                is_closed(folder.checkpoints(), R_OK | W_OK | X_OK);
  for (const fs::path& read : {folder.record_file(), folder.config_file(), folder.request_file()})
    closed = closed || is_closed(read, R_OK);
  for (const fs::path& written :
       {folder.lock_file(), folder.events_file(), folder.supervisor_log(), folder.stderr_file()})
    closed = closed || is_closed(written, R_OK | W_OK);
  return closed ? owner_name(folder.path()) : "";
}

}  // namespace forge::queue
