#include "core/run/queue/keeper.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
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

fs::path keeper_file(const fs::path& runs_dir,
                     const std::string& place,
                     worker::ProcessSettings settings) {
  settings.cores.clear();  // any process may have any of them
  settings.umask = 0;
  for (worker::ResourceLimit& limit : settings.limits) limit.soft = 0;
  const std::string name =
      "keeper-" + run::host_name() + "-" + std::to_string(::geteuid()) + "-" + place + "-";
  return runs_dir / ".queue" / (name + hash_hex(worker::to_text(settings)).substr(0, 8));
}

bool lacks_limits(const fs::path& runs_dir,
                  const std::vector<QueueEntry>& entries,
                  const QueueEntry& entry) {
  const std::optional<KeptEnvironment> kept = environment_of(runs_dir, entry);
  if (!kept || worker::may_start_with(kept->settings, ::getpid())) return false;
  const auto supervisor_may = [&](const QueueEntry& other) {
    return !other.device.empty() && other.host == run::host_name() && other.supervisor > 0 &&
           worker::may_start_with(kept->settings, other.supervisor);
  };
  return std::none_of(entries.begin(), entries.end(), supervisor_may) &&
         !FileLock::is_held(keeper_file(runs_dir, entry.place, kept->settings));
}

std::string limits_text(const std::string& run) {
  return "a forge with the limits of its command ('ulimit', 'nice', groups): " +
         quoted_command("forge runs resume " + shell_quoted(run)) +
         " starts it with those of the shell";
}

void keep_queue(const fs::path& runs_dir, const fs::path& program, double interval_seconds) {
  constexpr double patience_seconds = 86400;
  constexpr double patience_without_program = 600;  // it may be installed anew
  constexpr int most_refusals = 3;
  int refusals = 0;
  double failing_since = 0;  // 0: the last look at the queue was one
  double program_seen = steady_seconds();
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
    if (path_exists(program)) program_seen = steady_seconds();
    // It could start nothing, and another program of forge leaves runs to it as long as it lives.
    if (steady_seconds() - program_seen > patience_without_program) return;
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
