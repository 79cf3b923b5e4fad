#include "core/run/queue/place.h"

#include <cstdlib>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/text.h"

namespace forge::queue {
namespace {

/// This one, by its path: one that is installed anew there is the same.
std::string own_program() {
  const std::string deleted = " (deleted)";
  const std::string path = program_path().string();
  return ends_with(path, deleted) ? path.substr(0, path.size() - deleted.size()) : path;
}

}  // namespace

std::string own_place() {
  Environment variables;
  for (const char* const name :
       {"FORGE_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}) {
    if (const char* const value = std::getenv(name)) variables[name] = value;
  }
  return place_with(variables);
}

bool is_own_program_there() {
  std::error_code unreachable;
  return fs::exists(own_program(), unreachable);
}

std::string place_with(const Environment& variables) {
  const auto variable = [&](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  };
  // As user_cache_dir() looks for it. A relative one counts as it stands there.
  std::string cache = variable("FORGE_CACHE_DIR");
  if (cache.empty()) cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = variable("HOME") + "/.cache";
  std::error_code hidden;
  const fs::path mounts = fs::read_symlink("/proc/self/ns/mnt", hidden);
  const std::string parts[] = {own_program(),
                               mounts.string(),
                               cache,
                               variable("SLURM_JOB_ID"),
                               variable("PBS_JOBID"),
                               variable("LSB_JOBID")};
  constexpr size_t digits = 8;
  return hash_hex(join({std::begin(parts), std::end(parts)}, "\n")).substr(0, digits);
}

}  // namespace forge::queue
