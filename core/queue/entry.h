#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/queue/lease.h"

namespace forge::queue {

/// A run that waits for a device, or has one: what its start depends on. All else is in its folder.
struct Entry {
  std::string run;              ///< id: the name of its folder
  std::string group;            ///< the command that asked for it, the same for all of its runs
  int priority = 0;             ///< larger ones are started first
  std::string submitted;        ///< UTC; of one priority the earlier ones are started first
  int64_t position = 0;         ///< among those of its group
  std::string host;             ///< machine whose devices are meant
  std::vector<Device> devices;  ///< any of which will do
  int units = 1;                ///< of that device
  int jobs = 0;                 ///< so many of its group may run at once; 0: as many as find room
  bool fail_fast = false;       ///< when it fails, what is left of its group is not begun
  std::string device;           ///< on which it runs, "": it waits
  int starts = 0;               ///< supervisors that were started for it
  int attempt = 0;              ///< number of the run's last attempt before the newest of these
};

nlohmann::json to_json(const Entry& entry);
/// Throws Error naming the field that is wrong.
Entry entry_from_json(const nlohmann::json& json);

/// Whether `left` is started before `right`.
bool before(const Entry& left, const Entry& right);

}  // namespace forge::queue
