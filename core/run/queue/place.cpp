#include "core/run/queue/place.h"

#include <cstdlib>
#include <functional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace forge::queue {
namespace {

using Variable = std::function<std::string(const std::string& name)>;

/// Of a folder of /proc and the process's variables.
std::string place(const fs::path& process, const Variable& variable) {
  std::error_code hidden;
  const fs::path mounts = fs::read_symlink(process / "ns" / "mnt", hidden);
  if (hidden) return "";
  // As user_cache_dir() looks for it. A relative one counts as it stands there.
  std::string cache = variable("FORGE_CACHE_DIR");
  if (cache.empty()) cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = variable("HOME") + "/.cache";
  constexpr size_t digits = 8;
  return hash_hex(mounts.string() + "\n" + cache).substr(0, digits);
}

}  // namespace

std::string own_place() {
  return place("/proc/self", [](const std::string& name) {
    const char* const value = std::getenv(name.c_str());
    return std::string(value ? value : "");
  });
}

std::string place_of(pid_t process) try {
  const fs::path folder = fs::path("/proc") / std::to_string(process);
  const std::vector<std::string> variables = split(read_file(folder / "environ"), '\0');
  return place(folder, [&](const std::string& name) -> std::string {
    const std::string begin = name + "=";
    for (const std::string& variable : variables)
      if (starts_with(variable, begin)) return variable.substr(begin.size());
    return "";
  });
} catch (const Error&) {
  return "";
}

}  // namespace forge::queue
