#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/fs.h"
#include "core/queue/entry.h"

namespace forge::queue {

/// The queue of a runs folder, in files of its own, so that it outlives every process:
///
///     .queue/lock           held by whoever changes the queue
///     .queue/entries/<run>  an Entry; it is there until the run has ended
///     .queue/leases/<host>/<device>
///
/// While this object lives the queue is nobody else's to change.
class Queue {
 public:
  /// Waits for the lock. Throws Error where the folder cannot be written.
  explicit Queue(const fs::path& runs_dir);

  /// In the order in which they are to be started.
  const std::vector<Entry>& entries() const { return entries_; }
  const Entry* find(const std::string& run) const;
  /// Where the run has an entry already, that one stays, with the larger priority of the two and
  /// all of its starts before it again.
  void add(const Entry& entry);
  /// Adds the entry, or writes it anew.
  void put(const Entry& entry);
  void remove(const std::string& run);

 private:
  fs::path folder_;
  FileLock lock_;
  std::vector<Entry> entries_;
};

/// The entries as they are at some moment, without waiting for anybody. Damaged ones are left out,
/// and named in `problems` where that is given.
std::vector<Entry> read_entries(const fs::path& runs_dir,
                                std::vector<std::string>* problems = nullptr);
/// Whether the run has an entry now.
bool is_queued(const fs::path& runs_dir, const std::string& run);
/// Where the leases of this machine's devices are.
fs::path leases_folder(const fs::path& runs_dir);

}  // namespace forge::queue
