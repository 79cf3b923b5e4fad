#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/files.h"
#include "core/run/queue/entry.h"
#include "core/run/queue/environment.h"

namespace forge::queue {

/// Of a runs folder; it need not exist.
fs::path queue_folder(const fs::path& runs_dir);

/// The file of a run's entry, whose owner has queued the run.
fs::path entry_file(const fs::path& runs_dir, const std::string& run);

/// The file that a process locks while it changes the queue of a runs folder, in a folder that is
/// made where it is missing.
fs::path lock_file(const fs::path& runs_dir);

/// The queue of a runs folder. Its files outlive every process:
///
///     .queue/lock           held by whoever changes the queue
///     .queue/entries/<run>  a QueueEntry, until the run has ended. The user who owns the file has
///                           queued the run, and their processes alone start it: owners.h
///     .queue/leases/<host>/<device>
///     .queue/id             of the runs folder: folder_id.h
///     .queue/hosts/<host>, <user>@<host>, <user>@<host>@<place>  last signs of life: hosts.h
///     .queue/keeper-<host>-<user>-<place>-<limits>  held by who keeps the queue: keeper.h
///
/// While this object lives, nobody else can change the queue. Ctrl-Z waits that long: everybody
/// would have to wait for a process that is stopped.
class Queue {
 public:
  /// Waits for the lock. Throws Error if the folder cannot be written, or read.
  explicit Queue(const fs::path& runs_dir);
  /// None where another process has locked the queue for so many seconds.
  static std::optional<Queue> try_open(const fs::path& runs_dir, double seconds = 0);
  Queue(Queue&&) noexcept;
  ~Queue();

  fs::path runs_dir() const { return folder_.parent_path(); }
  /// In the order in which they are to be started.
  const std::vector<QueueEntry>& entries() const { return entries_; }
  const QueueEntry* find(const std::string& run) const;
  /// Whether the run has an entry, also one that cannot be read.
  bool holds(const std::string& run) const;
  /// Whether the run waits, or has an entry that this user is not allowed to read: who wrote it
  /// may. One that is damaged makes no run wait.
  bool may_wait(const std::string& run) const;
  /// An existing entry of the run stays, with the new one's priority, no starts counted, and this
  /// command among those that ask for it.
  /// One of another host comes to this one where nobody runs it and that host is silent. One of
  /// another user's stays as it is while a process of theirs serves the queue. Throws Error for an
  /// entry that nobody could start, such as one without a device.
  void add(const std::vector<QueueEntry>& entries);
  void add(const QueueEntry& entry) { add(std::vector<QueueEntry>{entry}); }
  /// Adds the entry, or writes it anew.
  void put(const QueueEntry& entry);
  void remove(const std::string& run);
  /// Adds a command to those that ask for a run which is active. Without effect where it has no
  /// entry, or one of another user's.
  void ask_for_active(const QueueEntry& entry);
  /// The command asks for the run no longer, if another one does. Returns whether another one does.
  bool leave_to_others(const std::string& run, const std::string& group);

 private:
  struct DelayedStop;
  Queue(const fs::path& runs_dir, std::unique_ptr<DelayedStop> delayed_stop, FileLock lock);
  void forget(const std::string& run);
  /// Whether the entry is another user's, of whom a process on its host looks after the queue, or
  /// waits on a host that others serve.
  bool is_served_by_another_user(const std::string& run) const;
  /// Variables may be secrets: those of a command stay only while it has entries.
  void forget_other_environments() const;

  fs::path folder_;
  std::unique_ptr<DelayedStop> delayed_stop_;  // outlives the lock
  FileLock lock_;
  std::vector<QueueEntry> entries_;
};

/// The entries at some moment, without waiting. Those that cannot be read, or that nobody could
/// start, are left out and named in `problems`, and so is a folder of entries that cannot be read:
/// without `problems` that throws Error.
std::vector<QueueEntry> read_entries(const fs::path& runs_dir,
                                     std::vector<std::string>* problems = nullptr);
/// The environment of the command that asked for the run here, or of the first one whose settings
/// this process may give. It is started in that, whoever starts it: another one's might change what
/// it computes, or how fast. None where none is in this user's cache.
std::optional<KeptEnvironment> environment_of(const fs::path& runs_dir, const QueueEntry& entry);
/// Whether the run waits now, as Queue::may_wait.
bool is_queued(const fs::path& runs_dir, const std::string& run);
/// Whether the run waits on another host that somebody serves: it begins there as it was asked for
/// there, whose files and number of devices its request names.
bool waits_elsewhere(const fs::path& runs_dir, const std::string& run);
/// Whether a command of another group asks for the run now.
bool is_asked_by_others(const fs::path& runs_dir, const std::string& run, const std::string& group);
/// The folder of the leases of this machine's devices.
fs::path leases_folder(const fs::path& runs_dir);

}  // namespace forge::queue
