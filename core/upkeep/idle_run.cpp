#include "core/upkeep/idle_run.h"

#include <sys/stat.h>

namespace forge::upkeep {

Idle hold_idle(const queue::Queue& queue, const run::RunFolder& folder) {
  Idle idle;
  // Somebody may only be looking whether the lock is held, which holds it for a moment.
  while (!FileLock::is_held(folder.lock_file())) {
    if (queue.find(folder.id())) {
      idle.obstacle = "waits in the queue";
      return idle;
    }
    idle.lock = FileLock::try_acquire(folder.lock_file());
    if (idle.lock) return idle;
  }
  idle.obstacle = "is running";
  return idle;
}

int64_t tree_bytes(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return 0;
  if (!S_ISDIR(status.st_mode)) return status.st_size;
  int64_t bytes = 0;
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    bytes += tree_bytes(entry->path());
  return bytes;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.size() < 256 &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

}  // namespace forge::upkeep
