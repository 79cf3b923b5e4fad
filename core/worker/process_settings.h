#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>

namespace forge::worker {

/// A limit of a process, as `ulimit` sets it.
struct ResourceLimit {
  int resource = 0;  ///< RLIMIT_FSIZE, …
  rlim_t soft = RLIM_INFINITY;
  rlim_t hard = RLIM_INFINITY;  ///< the soft one may be raised to it
};
bool operator==(const ResourceLimit& left, const ResourceLimit& right);

/// What a process passes on to those that it starts, other than variables: `taskset`, `nice`,
/// `chrt`, `umask` and `ulimit` set it, and `cd`.
struct ProcessSettings {
  mode_t umask = 022;
  int nice = 0;
  int policy = 0;  ///< SCHED_OTHER, …
  int realtime_priority = 0;
  std::vector<int> cores;  ///< that it may run on; none: not known
  std::vector<ResourceLimit> limits;
  std::vector<gid_t> groups;     ///< whose files it may read, in order; none can be taken
  std::filesystem::path folder;  ///< that it works in; "": it is gone
};
bool operator==(const ProcessSettings& left, const ProcessSettings& right);

ProcessSettings own_settings();

/// Whether process `pid` of this user could start another one with these settings: few can raise
/// limits and priorities, or take a group.
bool may_start_with(const ProcessSettings& settings, pid_t pid);

/// Gives this process the settings other than groups and the folder. Returns 0, or errno where it
/// may not have them. Calls only what may be called between fork and exec.
int take_settings(const ProcessSettings& settings);

/// The folder, or "/" where a process cannot work in it: a branch of git without it was checked
/// out.
std::filesystem::path folder_to_start_in(const std::filesystem::path& folder);

/// In one line. The folder's bytes may be of any encoding, and are left out.
std::string to_text(const ProcessSettings& settings);
/// None where it is no such text.
std::optional<ProcessSettings> settings_from_text(const std::string& text);

}  // namespace forge::worker
