#pragma once

#include <filesystem>

/// A process that keeps the queue while its runs wait for room on the disk, or for a machine that
/// starts nothing, and none of them is running: a supervisor looks after the queue only as long as
/// it lives.
namespace forge::queue {

/// Starts keep_queue() in a process of its own, which outlives this one. Returns its process id, 0
/// where the machine refuses one.
int start_keeper(const std::filesystem::path& runs_dir, const std::filesystem::path& program);

/// Dispatches every few seconds until no run of this host waits for room or for the machine, or a
/// supervisor looks after those that do. Returns at once where another process does so for this
/// user.
void keep_queue(const std::filesystem::path& runs_dir, const std::filesystem::path& program);

}  // namespace forge::queue
