#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/run/queue/environment.h"
#include "core/worker/messages.h"

namespace forge::queue {

/// A device of a machine, divided into units that runs lease: a CPU into its cores, a GPU into
/// gpu_units parts, so that a number of runs may share it.
struct LeaseDevice {
  std::string name;  ///< "cpu", "cuda:0", as the whole machine calls it: gpu_names.h
  int units = 1;
  std::string visible = {};  ///< what the run's command calls it; "": the same
  /// Of a CPU, the numbers of the cores that the command may use, a unit each; none: any cores.
  std::vector<int> cores = {};
};

/// Whether runs with these devices may want the same unit: the names are one and, where each names
/// its cores, they have a core in common.
bool may_share(const LeaseDevice& a, const LeaseDevice& b);

/// The CPU as this process may use it: with as many units as it has cores.
LeaseDevice own_cpu();

constexpr int gpu_units = 24;  ///< divisible by 2, 3, 4, 6, 8 and 12

/// Units of a device that a run uses. A unit is a lock on one byte of the device's file (an open
/// file description lock). Processes that inherit the descriptor hold the lock too; the kernel
/// releases it when the last of them ends. So a device is free only when nobody computes on it.
class Lease {
 public:
  /// `units` of the device (all if it has fewer), or none while too many are taken. Only one
  /// process may call this at a time. `folder` holds the files; it is made if it is missing.
  static std::optional<Lease> try_acquire(const fs::path& folder,
                                          const LeaseDevice& device,
                                          int units);

  const std::string& device() const { return device_; }
  /// For child processes to inherit; closed with this object.
  int descriptor() const { return file_.get(); }

 private:
  Lease(std::string device, FileDescriptor file)
      : device_(std::move(device)), file_(std::move(file)) {}

  std::string device_;
  FileDescriptor file_;
};

/// Leases of `count` of the devices, the first ones with room, `units` of each. All or none: nobody
/// waits with some of them for the others, so that two runs never wait for each other. Empty where
/// there are too few.
std::vector<Lease> try_acquire_all(const fs::path& folder,
                                   const std::vector<LeaseDevice>& devices,
                                   int count,
                                   int units);

/// How many units of the device are taken now.
int used_units(const fs::path& folder, const LeaseDevice& device);

/// The devices that a run may use, any of them, and the units that it needs.
struct ResourceRequest {
  std::vector<LeaseDevice> devices;
  int units = 1;  ///< of each device
  int count = 1;  ///< of devices, at once
};

/// Frees the device of a lease that this process was given, for all who share it, and closes the
/// descriptor: a program that the worker left behind would hold it as long as it lives.
void release_lease(int descriptor);

/// The request of a run that its backend would run on `environment`. On a CPU of `cores` it needs
/// as many as it has threads. It needs a whole GPU, unless `jobs` runs at once (0: no limit) share
/// fewer GPUs evenly. `device` is the user's choice: "cuda:1" is that device, anything else any
/// device of the environment's type. A run of several processes needs a whole GPU for each; throws
/// Error where there are not as many.
ResourceRequest resource_request(const worker::Environment& environment,
                                 const std::string& device,
                                 int jobs,
                                 int cores,
                                 int processes = 1);

/// CPU threads for each of `jobs` runs at once on `cores`: an even share, at least one.
int threads_for(int jobs, int cores);

/// With what a command asks for a run.
struct Asker {
  std::string group;                 ///< of the runs that the command asked for
  int jobs = 0;                      ///< maximum concurrent runs of the group; 0: no limit
  bool fail_fast = false;            ///< if the run fails, the rest of the group is not started
  std::vector<LeaseDevice> devices;  ///< the run may use any of them
  int64_t stop_after = 0;            ///< run::SupervisorOptions::stop_after
  /// run::numerics_variables() of the command, none: not recorded.
  std::optional<Environment> variables = {};
  std::string place = {};  ///< own_place() of the command; "": not recorded
};

/// A run that waits for a device or has one. It is started as the first command that asked for it
/// says, or as the last one that asked for other devices; where that one withdraws it, as the next
/// one says.
struct QueueEntry : Asker {
  std::string run;               ///< id: the name of its folder
  int units = 1;                 ///< that it needs of each device
  int count = 1;                 ///< of devices that it needs at once
  int priority = 0;              ///< larger ones are started first
  std::string submitted;         ///< UTC; at equal priority the earlier ones start first
  int64_t position = 0;          ///< among those of its group
  std::string host;              ///< the machine that runs it
  std::string device;            ///< that it runs on, or several with commas; "": it waits
  int supervisor = 0;            ///< process id of the newest one, 0: none yet
  std::string supervisor_place;  ///< place.h
  int starts = 0;                ///< supervisors that were started for it
  int attempt = 0;               ///< the run's last attempt before the newest start
  /// The other commands that still ask for it. Those of another host are without devices.
  std::vector<Asker> others = {};
  bool goes_on = false;  ///< asked for while it was stopping: it waits again when it has stopped
};

/// The same command, whose devices and place are not of the entry's host.
Asker of_another_host(Asker asker);

/// The step that the run is sent to for all who ask for it; 0: its last one.
int64_t last_step_asked(const QueueEntry& entry);

/// The groups of all commands that ask for the run, with spaces between them.
std::string askers_text(const QueueEntry& entry);

/// Whether the command asks for the run.
bool is_asked_by(const QueueEntry& entry, const std::string& group);

/// The entry once the command asks for its run no longer; none where no other one does.
std::optional<QueueEntry> without(const QueueEntry& entry, const std::string& group);

/// "cuda:0 or cuda:1", or "2 of cuda:0, cuda:1, cuda:2": where the run may be.
std::string devices_text(const QueueEntry& entry);

nlohmann::json to_json(const QueueEntry& entry);
/// Throws Error naming the field that is wrong. Names cannot lead out of the queue's folder.
QueueEntry entry_from_json(const nlohmann::json& json);

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
/// Whether a command of another group asks for the run now.
bool is_asked_by_others(const fs::path& runs_dir, const std::string& run, const std::string& group);
/// The folder of the leases of this machine's devices.
fs::path leases_folder(const fs::path& runs_dir);

}  // namespace forge::queue
