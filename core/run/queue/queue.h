#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/worker/messages.h"

namespace forge::queue {

/// A device of a machine, divided into units that runs lease: a CPU into its cores, a GPU into
/// gpu_units parts, so that a number of runs may share it.
struct LeaseDevice {
  std::string name;  ///< "cpu", "cuda:0"
  int units = 1;
};

constexpr int gpu_units = 24;  ///< divisible by 2, 3, 4, 6, 8 and 12

/// Units of a device that a run uses. A unit is a lock on one byte of the device's file (an open
/// file description lock). Processes that inherit the descriptor hold the lock too; the kernel
/// releases it when the last of them ends. So a device is free only when nobody computes on it.
class Lease {
 public:
  /// `units` of the device (all of it, where it has fewer), or nothing while too many are taken. To
  /// be called by one process at a time. `folder` holds the files; it is made where it is missing.
  static std::optional<Lease> try_acquire(const fs::path& folder,
                                          const LeaseDevice& device,
                                          int units);

  const std::string& device() const { return device_; }
  /// To be inherited; closed when this object goes.
  int descriptor() const { return file_.get(); }

 private:
  Lease(std::string device, FileDescriptor file)
      : device_(std::move(device)), file_(std::move(file)) {}

  std::string device_;
  FileDescriptor file_;
};

/// How many units of the device are taken now.
int used_units(const fs::path& folder, const LeaseDevice& device);

/// Which devices a run may have, any of them, and how many units of it.
struct ResourceRequest {
  std::vector<LeaseDevice> devices;
  int units = 1;
};

/// Of a run that its backend would run on `environment`. On a CPU of `cores` it needs as many as it
/// has threads. A GPU it has for itself, unless `jobs` runs at once are asked for where there are
/// fewer GPUs (0: not asked for): then they share them evenly. `device` is what the user chose:
/// "cuda:1" is that one alone, anything else any device of the environment's type.
ResourceRequest resource_request(const worker::Environment& environment,
                                 const std::string& device,
                                 int jobs,
                                 int cores);

/// CPU threads for each of `jobs` runs at once on `cores`: an even share, at least one.
int threads_for(int jobs, int cores);

/// A run that waits for a device, or has one: what its start depends on. All else is in its folder.
struct QueueEntry {
  std::string run;        ///< id: the name of its folder
  std::string group;      ///< the command that asked for it, the same for all of its runs
  int priority = 0;       ///< larger ones are started first
  std::string submitted;  ///< UTC; of one priority the earlier ones are started first
  int64_t position = 0;   ///< among those of its group
  std::string host;       ///< machine whose devices are meant
  std::vector<LeaseDevice> devices;  ///< any of which will do
  int units = 1;                     ///< of that device
  int jobs = 0;            ///< so many of its group may run at once; 0: as many as find room
  bool fail_fast = false;  ///< when it fails, what is left of its group is not begun
  std::string device;      ///< on which it runs, "": it waits
  int starts = 0;          ///< supervisors that were started for it
  int attempt = 0;         ///< number of the run's last attempt before the newest of these
};

nlohmann::json to_json(const QueueEntry& entry);
/// Throws Error naming the field that is wrong.
QueueEntry entry_from_json(const nlohmann::json& json);

/// Whether `left` is started before `right`.
bool starts_before(const QueueEntry& left, const QueueEntry& right);

/// The queue of a runs folder, in files of its own, so that it outlives every process:
///
///     .queue/lock           held by whoever changes the queue
///     .queue/entries/<run>  an QueueEntry; it is there until the run has ended
///     .queue/leases/<host>/<device>
///
/// While this object lives the queue is nobody else's to change.
class Queue {
 public:
  /// Waits for the lock. Throws Error where the folder cannot be written.
  explicit Queue(const fs::path& runs_dir);

  /// In the order in which they are to be started.
  const std::vector<QueueEntry>& entries() const { return entries_; }
  const QueueEntry* find(const std::string& run) const;
  /// Where the run has an entry already, that one stays, with the larger priority of the two and
  /// all of its starts before it again.
  void add(const QueueEntry& entry);
  /// Adds the entry, or writes it anew.
  void put(const QueueEntry& entry);
  void remove(const std::string& run);

 private:
  void forget(const std::string& run);

  fs::path folder_;
  FileLock lock_;
  std::vector<QueueEntry> entries_;
};

/// The entries as they are at some moment, without waiting for anybody. Damaged ones are left out,
/// and named in `problems` where that is given.
std::vector<QueueEntry> read_entries(const fs::path& runs_dir,
                                     std::vector<std::string>* problems = nullptr);
/// Whether the run has an entry now.
bool is_queued(const fs::path& runs_dir, const std::string& run);
/// Where the leases of this machine's devices are.
fs::path leases_folder(const fs::path& runs_dir);

}  // namespace forge::queue
