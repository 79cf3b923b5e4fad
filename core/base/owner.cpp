#include "core/base/owner.h"

#include <pwd.h>
#include <sys/stat.h>

#include <map>
#include <vector>

namespace forge {
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

std::string owner_name(const std::filesystem::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? user_name(status.st_uid) : "";
}

}  // namespace forge
