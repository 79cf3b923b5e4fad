#include "core/run/queue/keeper.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

#include <optional>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/folders.h"
#include "core/base/hash.h"
#include "core/base/text.h"
#include "core/run/host.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/place.h"
#include "core/run/supervisor.h"
#include "core/worker/spawn.h"

namespace forge::queue {

int start_keeper(const fs::path& runs_dir, const fs::path& program) {
  try {
    const FileDescriptor nothing = worker::open_file("/dev/null", O_RDWR);
    worker::SpawnOptions options;
    options.arguments = {program.string(), "supervise", "--queue", fs::absolute(runs_dir).string()};
    options.streams = {nothing.get(), nothing.get(), nothing.get()};
    options.lifetime = worker::Lifetime::own;
    options.environment[run::host_name_variable] = run::host_name();
    options.working_folder = worker::folder_to_start_in(worker::own_settings().folder);
    return worker::spawn(options);
  } catch (const Error&) {
    return 0;  // 'forge status' says that nobody serves the queue
  }
}

namespace {

/// How the names of such files begin.
std::string keepers_in(const std::string& place) {
  return "keeper-" + run::host_name() + "-" + std::to_string(::geteuid()) + "-" + place + "-";
}

}  // namespace

fs::path keeper_file(const fs::path& runs_dir,
                     const std::string& place,
                     worker::ProcessSettings settings) {
  settings.cores.clear();  // any process may have any of them
  settings.umask = 0;
  for (worker::ResourceLimit& limit : settings.limits) limit.soft = 0;
  const std::string limits = hash_hex(worker::to_text(settings)).substr(0, 8);
  return runs_dir / ".queue" / (keepers_in(place) + limits);
}

bool is_kept(const fs::path& runs_dir, const std::string& place) {
  const std::string begin = keepers_in(place);
  for (const fs::path& file : folder_entries(runs_dir / ".queue"))
    if (starts_with(file.filename().string(), begin) && FileLock::is_held(file)) return true;
  return false;
}

void keep_queue(const fs::path& runs_dir, const fs::path& program, double interval_seconds) {
  constexpr double patience_seconds = 86400;
  constexpr int most_refusals = 3;
  int refusals = 0;
  double failing_since = 0;  // 0: the last look at the queue was one
  const fs::path file = keeper_file(runs_dir, own_place(), worker::own_settings());
  std::optional<FileLock> lock;
  while (true) {
    run::sleep_until_signal(interval_seconds);
    try {
      if (!lock) lock = FileLock::try_acquire(file);
      // Another one keeps it, where it was not somebody's look whether it is held.
      if (!lock && ++refusals == most_refusals) return;
      if (!lock) continue;
      // Who may read the file could lock it, and would pass for a keeper.
      fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    } catch (const Error&) {
      // There is no room for the file yet, or the folder is away for a while.
    }
    try {
      const DispatchResult done = dispatch(runs_dir, program, IfLocked::skip);
      if (!done.needs_keeper && !done.queue_was_locked) return;
      failing_since = 0;
    } catch (const Error&) {
      if (failing_since == 0) failing_since = steady_seconds();
      const bool is_gone = ::access(runs_dir.c_str(), F_OK) != 0 && errno == ENOENT;
      if (is_gone || steady_seconds() - failing_since > patience_seconds) throw;
    }
  }
}

}  // namespace forge::queue
