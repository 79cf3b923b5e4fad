#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/run/queue/environment.h"
#include "core/run/queue/leases.h"

/// What the queue knows of a run that waits, or has been started.
namespace forge::queue {

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

/// Throws Error for an entry that nobody could start, such as one without a device, and for names
/// that lead out of the queue's folder.
void require_sound(const QueueEntry& entry);

/// Whether `left` is started before `right`.
bool starts_before(const QueueEntry& left, const QueueEntry& right);

/// The later one of two steps to stop after, of which 0 is a run's last one.
int64_t later_step(int64_t a, int64_t b);

}  // namespace forge::queue
