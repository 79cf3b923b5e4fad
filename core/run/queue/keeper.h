#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/run/queue/queue.h"
#include "core/worker/process_settings.h"

/// A process that keeps the queue while runs wait and no supervisor of this user's looks after
/// them: for room on the disk, for a machine that starts nothing, or for another user's run to end.
/// A supervisor looks after the queue only as long as it lives, and starts only what its user may.
namespace forge::queue {

/// Starts keep_queue() in a process of its own, which outlives this one. Returns its process id, 0
/// where the machine refuses one.
int start_keeper(const std::filesystem::path& runs_dir, const std::filesystem::path& program);

/// Held by the process that keeps the queue for this user in a place (place.h), with the limits of
/// such settings.
std::filesystem::path keeper_file(const std::filesystem::path& runs_dir,
                                  const std::string& place,
                                  worker::ProcessSettings settings);

/// Whether nothing here starts this user's waiting run for its limits: neither this process nor one
/// that supervises a run of the queue may give it those of its command, and no keeper does. The
/// others may not be seen. `entries`: of the queue.
bool lacks_limits(const std::filesystem::path& runs_dir,
                  const std::vector<QueueEntry>& entries,
                  const QueueEntry& entry);

/// What such a run waits for.
std::string limits_text(const std::string& run);

/// Dispatches every few seconds until no run waits here that this user would start, or a supervisor
/// of this user's looks after those that do. Returns at once where another process does so for this
/// user, in the same place with the same limits, and after ten minutes without the program. Where
/// the queue cannot be read it goes on for a day. Throws Error then, and where the runs folder is
/// gone.
void keep_queue(const std::filesystem::path& runs_dir,
                const std::filesystem::path& program,
                double interval_seconds = 5);

}  // namespace forge::queue
