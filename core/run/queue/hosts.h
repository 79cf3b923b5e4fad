#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "core/run/queue/queue.h"

/// Hosts that share a runs folder. A queued run belongs to one of them, which starts it. Where that
/// host is gone (switched off, or a container that came back under another name) another one takes
/// the run over. Why no run is started twice:
///
/// - Whoever takes a run over holds the lock of the queue and has seen that nobody holds the run's
///   own lock. A supervisor on another host would hold it.
/// - A network file system may lose the locks of a host that it cannot reach for a while. So a host
///   must also have been silent for `gone_after_seconds`: forge and every supervisor there give a
///   sign of life each few seconds, before they look at the queue.
/// - Signs are modification times that the file system sets itself, and they are compared only with
///   each other. It does not matter what the clocks of the hosts say.
/// - An entry that was taken over names its new host: the old one, should it come back, leaves the
///   run alone.
namespace forge::queue {

constexpr double gone_after_seconds = 300;

/// Gives this host's sign of life, this user's on it, and that of this process's place (place.h),
/// unless its program is gone from there.
/// One that is new removes those of hosts that have been silent for months, and of places that have
/// been for a day: containers and jobs come under a new name each time. Returns its time, in
/// seconds since 1970 by the file system's clock; none where it cannot be written.
std::optional<double> give_sign_of_life(const fs::path& runs_dir);

/// Sets signs of life of the entry's host that lie behind `now`, as after a clock was set back, to
/// this moment: a living host soon gives the next one, and the silence of another counts from here.
void correct_signs(const fs::path& runs_dir, const QueueEntry& entry, double now);

/// Time of the last sign of life of the entry's host. The entry's own file is one, too. None where
/// the signs cannot be looked at: then nobody knows how long it has been silent.
std::optional<double> last_sign_of_life(const fs::path& runs_dir, const QueueEntry& entry);

/// Whether that host has given no sign of life of its own for half a minute: nothing there looks at
/// the queue.
bool is_silent(const fs::path& runs_dir, const std::string& host);

/// Whether forge has given no sign of life for half a minute there as that user: no process of
/// theirs looks at the queue. Their processes and locks may be hidden from this user.
bool is_silent(const fs::path& runs_dir, const std::string& host, uid_t user);

/// The same of this user's forge on this host in that place.
bool is_place_silent(const fs::path& runs_dir, const std::string& place);

/// The next run of this user's in this host's part of the queue, where nothing here starts it: none
/// of theirs is active, and their forge has given no sign of life for a while. "" where there is
/// none.
std::string unserved_run(const fs::path& runs_dir);

/// "host 'a', last seen 3m ago", `seconds` after its last sign.
std::string host_text(const std::string& host, double seconds);

/// The entry with this host and its devices, if it has such as the run needs and the run's files
/// are where its request says. Nothing is written.
std::optional<QueueEntry> moved_here(const fs::path& runs_dir, QueueEntry entry);

}  // namespace forge::queue
