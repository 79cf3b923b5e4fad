#include "core/run/queue/keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/run/host.h"
#include "core/run/queue/dispatch.h"
#include "core/run/supervisor.h"
#include "core/worker/spawn.h"

namespace forge::queue {

int start_keeper(const fs::path& runs_dir, const fs::path& program) {
  try {
    const FileDescriptor nothing = worker::open_file("/dev/null", O_RDWR);
    worker::SpawnOptions options;
    options.arguments = {program.string(), "supervise", "--queue", runs_dir.string()};
    options.streams = {nothing.get(), nothing.get(), nothing.get()};
    options.lifetime = worker::Lifetime::own;
    return worker::spawn(options);
  } catch (const Error&) {
    return 0;  // 'forge status' says that nobody serves the queue
  }
}

void keep_queue(const fs::path& runs_dir, const fs::path& program) {
  constexpr double interval = 5;  // seconds
  const fs::path file =
      runs_dir / ".queue" / ("keeper-" + run::host_name() + "-" + std::to_string(::geteuid()));
  std::optional<FileLock> lock;
  while (true) {
    run::sleep_until_signal(interval);
    try {
      if (!lock) lock = FileLock::try_acquire(file);
      if (!lock) return;  // another one keeps it
      // Who may read the file could lock it, and would pass for a keeper.
      fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    } catch (const Error& problem) {
      if (problem.exit_code() != ExitCode::storage) throw;  // there is no room for the file yet
    }
    try {
      const DispatchResult done = dispatch(runs_dir, program, IfLocked::skip);
      if (!done.needs_keeper && !done.queue_was_locked) return;
    } catch (const Error& problem) {
      if (problem.exit_code() != ExitCode::storage) throw;
    }
  }
}

}  // namespace forge::queue
