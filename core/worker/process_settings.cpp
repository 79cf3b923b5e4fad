#include "core/worker/process_settings.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/base/json.h"

namespace forge::worker {
namespace {

constexpr int limited_resources[] = {RLIMIT_AS,
                                     RLIMIT_CORE,
                                     RLIMIT_CPU,
                                     RLIMIT_DATA,
                                     RLIMIT_FSIZE,
                                     RLIMIT_LOCKS,
                                     RLIMIT_MEMLOCK,
                                     RLIMIT_MSGQUEUE,
                                     RLIMIT_NICE,
                                     RLIMIT_NOFILE,
                                     RLIMIT_NPROC,
                                     RLIMIT_RSS,
                                     RLIMIT_RTPRIO,
                                     RLIMIT_RTTIME,
                                     RLIMIT_SIGPENDING,
                                     RLIMIT_STACK};

/// What /proc/PID/status has behind a name; "" where it does not say.
std::string status_line(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, name.size() + 1, name + ":") == 0) return line.substr(name.size() + 1);
  }
  return "";
}

/// Whether this process is in the machine's own user namespace. In another one, as of a container
/// without root, capabilities raise no limit and no priority.
bool is_in_first_user_namespace() {
  std::ifstream file("/proc/self/uid_map");
  uint64_t inside = 1, outside = 1, count = 0;
  file >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count == 4294967295;
}

bool has_capability(pid_t pid, int capability) {
  return is_in_first_user_namespace() &&
         (std::strtoull(status_line(pid, "CapEff").c_str(), nullptr, 16) >> capability & 1) != 0;
}

rlimit limit_of(pid_t pid, int resource) {
  rlimit limit = {0, 0};
  ::prlimit(pid, static_cast<__rlimit_resource>(resource), nullptr, &limit);
  return limit;
}

std::vector<int> own_cores() {
  cpu_set_t set;
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;  // of more than a thousand cores
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

/// In order; of a process that is gone none.
std::vector<gid_t> groups_of(pid_t pid) {
  std::vector<gid_t> groups;
  for (const char* const name : {"Gid", "Groups"}) {
    std::istringstream numbers(status_line(pid, name));
    for (gid_t group = 0; numbers >> group;) groups.push_back(group);
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

bool is_realtime(int policy) { return policy == SCHED_FIFO || policy == SCHED_RR; }

}  // namespace

bool operator==(const ResourceLimit& left, const ResourceLimit& right) {
  return left.resource == right.resource && left.soft == right.soft && left.hard == right.hard;
}

bool operator==(const ProcessSettings& left, const ProcessSettings& right) {
  return left.umask == right.umask && left.nice == right.nice && left.policy == right.policy &&
         left.realtime_priority == right.realtime_priority && left.cores == right.cores &&
         left.limits == right.limits && left.groups == right.groups && left.folder == right.folder;
}

ProcessSettings own_settings() {
  ProcessSettings own;
  const std::string umask = status_line(::getpid(), "Umask");
  if (!umask.empty()) own.umask = static_cast<mode_t>(std::strtoul(umask.c_str(), nullptr, 8));
  own.nice = ::getpriority(PRIO_PROCESS, 0);
  own.policy = ::sched_getscheduler(0);
  sched_param param{};
  if (::sched_getparam(0, &param) == 0) own.realtime_priority = param.sched_priority;
  // Of these a process that is started has the usual one.
  constexpr int reset_on_fork = 0x40000000, deadline = 6;
  if ((own.policy & reset_on_fork) != 0 || own.policy == deadline) own.policy = SCHED_OTHER;
  own.cores = own_cores();
  for (const int resource : limited_resources) {
    const rlimit limit = limit_of(0, resource);
    own.limits.push_back({resource, limit.rlim_cur, limit.rlim_max});
  }
  own.groups = groups_of(::getpid());
  std::error_code gone;
  own.folder = std::filesystem::current_path(gone);
  return own;
}

bool may_start_with(const ProcessSettings& settings, pid_t pid) {
  const std::vector<gid_t> groups = groups_of(pid);
  if (!std::includes(groups.begin(), groups.end(), settings.groups.begin(), settings.groups.end()))
    return false;
  if (!has_capability(pid, CAP_SYS_RESOURCE)) {
    for (const ResourceLimit& wanted : settings.limits)
      if (wanted.hard > limit_of(pid, wanted.resource).rlim_max) return false;
  }
  if (has_capability(pid, CAP_SYS_NICE)) return true;
  constexpr int lowest = 20;  // of the nice values that RLIMIT_NICE counts from
  const int nice = ::getpriority(PRIO_PROCESS, static_cast<id_t>(pid));
  const rlim_t allowed = limit_of(pid, RLIMIT_NICE).rlim_cur;
  const bool may_be_as_nice =
      settings.nice >= nice ||
      (allowed != RLIM_INFINITY && settings.nice >= lowest - static_cast<int>(allowed)) ||
      allowed == RLIM_INFINITY;
  const int policy = ::sched_getscheduler(pid);
  const bool may_have_policy =
      settings.policy == policy || (!is_realtime(settings.policy) && policy != SCHED_IDLE);
  return may_be_as_nice && may_have_policy;
}

int take_settings(const ProcessSettings& settings) {
  ::umask(settings.umask);
  if (!settings.cores.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int core : settings.cores) CPU_SET(core, &set);
    // A container may have fewer cores by now: it decides.
    if (::sched_setaffinity(0, sizeof set, &set) != 0 && errno != EINVAL) return errno;
  }
  if (::sched_getscheduler(0) != settings.policy) {
    sched_param param{};
    param.sched_priority = is_realtime(settings.policy) ? settings.realtime_priority : 0;
    if (::sched_setscheduler(0, settings.policy, &param) != 0) return errno;
  }
  if (::getpriority(PRIO_PROCESS, 0) != settings.nice &&
      ::setpriority(PRIO_PROCESS, 0, settings.nice) != 0)
    return errno;
  for (const ResourceLimit& wanted : settings.limits) {
    const rlimit limit = {wanted.soft, wanted.hard};
    if (::setrlimit(static_cast<__rlimit_resource>(wanted.resource), &limit) != 0) return errno;
  }
  return 0;
}

std::filesystem::path folder_to_start_in(const std::filesystem::path& folder) {
  const bool is_usable = folder.is_absolute() && ::access((folder / "").c_str(), X_OK) == 0;
  return is_usable ? folder : "/";
}

std::string to_text(const ProcessSettings& settings) {
  nlohmann::json limits = nlohmann::json::array();
  for (const ResourceLimit& limit : settings.limits)
    limits.push_back({limit.resource, limit.soft, limit.hard});
  const nlohmann::json json = {{"umask", settings.umask},
                               {"nice", settings.nice},
                               {"policy", settings.policy},
                               {"realtime_priority", settings.realtime_priority},
                               {"cores", settings.cores},
                               {"limits", limits},
                               {"groups", settings.groups}};
  return json_text(json);
}

std::optional<ProcessSettings> settings_from_text(const std::string& text) try {
  const nlohmann::json json = parse_json(text);
  ProcessSettings settings;
  settings.umask = json.at("umask").get<mode_t>() & 0777;
  settings.nice = json.at("nice");
  settings.policy = json.at("policy");
  settings.realtime_priority = json.at("realtime_priority");
  settings.cores = json.at("cores").get<std::vector<int>>();
  const bool are_cores = std::all_of(settings.cores.begin(), settings.cores.end(), [](int core) {
    return core >= 0 && core < CPU_SETSIZE;
  });
  if (!are_cores) return std::nullopt;
  for (const nlohmann::json& limit : json.at("limits"))
    settings.limits.push_back({limit.at(0), limit.at(1), limit.at(2)});
  settings.groups = json.at("groups").get<std::vector<gid_t>>();
  return settings;
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

}  // namespace forge::worker
