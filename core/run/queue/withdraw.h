#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/run/queue/queue.h"
#include "core/run/run_folder.h"

/// How runs leave the queue: when they have ended, and when a command takes its wish back.
namespace forge::queue {

/// Takes a run out of the queue that has ended. To be called while its lock is held. One that
/// stopped at a rung stays where a command has asked for more of it meanwhile. Where it failed and
/// its group is to fail fast, what is left of the group is not begun, and what runs of it saves and
/// stops, but for what other commands ask for.
void finish_queued_run(const fs::path& runs_dir, const std::string& run, bool failed);

/// Whether a run that has ended is to wait again: it stopped at the end of a rung, and a command
/// has asked for more since it was begun, or one has asked for it while it was stopping.
bool is_to_go_on(const QueueEntry& entry, const run::RunFolder& folder);

/// Of the commands that asked for a run which failed, and for their others not to be begun then:
/// takes these out of the queue, but for what other commands ask for, and lets those that run save
/// and stop. Returns the runs that it took out.
std::set<std::string> give_up_after(Queue& queue, const QueueEntry& failed);

/// Tells the request of a run folder from one that another command writes in its place later.
std::string request_stamp(const run::RunFolder& folder);

/// Runs whose folders a command made, by their ids, with the request_stamp of then: where it is
/// another one now, another command has prepared the run, too.
using MadeRuns = std::map<std::string, std::string>;

/// Takes those of these runs out of the queue that do not run, and returns them. One whose files
/// this user may not read and write (owners.h) stays, unless they have queued it. Of `made` also
/// the folder is removed, unless the run has begun before, somebody has added a note or a tag, or
/// another command has prepared it.
/// With `group` that command asks for them no longer; those that another one asks for stay, and so
/// does one whose entry cannot be changed, as on a full disk.
std::vector<std::string> cancel_queued(Queue& queue,
                                       const std::vector<std::string>& runs,
                                       const MadeRuns& made = {},
                                       const std::string& group = "");

/// Removes the folders of these runs that are neither queued nor have begun, as cancel_queued does.
void remove_unqueued(const Queue& queue, const MadeRuns& runs);

}  // namespace forge::queue
