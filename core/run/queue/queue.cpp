#include "core/run/queue/queue.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/folders.h"
#include "core/base/json.h"
#include "core/base/json_file.h"
#include "core/base/owner.h"
#include "core/base/parallel.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/run/host.h"
#include "core/run/queue/gpu_names.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/owners.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/worker/json_fields.h"
#include "core/worker/messages.h"

namespace forge::queue {
namespace {

struct flock lock_of(int unit, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = unit;
  lock.l_len = 1;
  return lock;
}

fs::path file_of(const fs::path& folder, const LeaseDevice& device) { return folder / device.name; }

/// The machine's number of a unit: commands that are bound to other cores lease other ones.
int number_of(const LeaseDevice& device, int unit) {
  return device.cores.empty() ? unit : device.cores.at(static_cast<size_t>(unit));
}

}  // namespace

bool may_share(const LeaseDevice& a, const LeaseDevice& b) {
  if (a.name != b.name) return false;
  if (a.cores.empty() || b.cores.empty()) return true;
  return std::any_of(a.cores.begin(), a.cores.end(), [&](int core) {
    return std::find(b.cores.begin(), b.cores.end(), core) != b.cores.end();
  });
}

LeaseDevice own_cpu() { return {"cpu", usable_cores(), "", own_cores()}; }

std::optional<Lease> Lease::try_acquire(const fs::path& folder,
                                        const LeaseDevice& device,
                                        int units) {
  make_own_folders(folder.parent_path(), folder.filename());
  const fs::path path = file_of(folder, device);
  FileDescriptor file = open_own_file(path, O_RDWR | O_CREAT);
  const int wanted = std::clamp(units, 1, device.units);
  int taken = 0;
  for (int unit = 0; unit < device.units && taken < wanted; ++unit) {
    struct flock lock = lock_of(number_of(device, unit), F_WRLCK);
    if (::fcntl(file.get(), F_OFD_SETLK, &lock) == 0) {
      ++taken;
    } else if (errno != EAGAIN && errno != EACCES) {
      throw system_error("lock '" + path.string() + "'", errno);
    }
  }
  if (taken < wanted) return std::nullopt;
  return Lease(device.name, std::move(file));
}

std::vector<Lease> try_acquire_all(const fs::path& folder,
                                   const std::vector<LeaseDevice>& devices,
                                   int count,
                                   int units) {
  std::vector<Lease> leases;
  for (const LeaseDevice& device : devices) {
    if (static_cast<int>(leases.size()) >= count) break;
    if (auto lease = Lease::try_acquire(folder, device, units)) leases.push_back(std::move(*lease));
  }
  if (static_cast<int>(leases.size()) < count) leases.clear();
  return leases;
}

int used_units(const fs::path& folder, const LeaseDevice& device) {
  const FileDescriptor file(
      ::open(file_of(folder, device).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return 0;
  int taken = 0;
  for (int unit = 0; unit < device.units; ++unit) {
    struct flock lock = lock_of(number_of(device, unit), F_WRLCK);
    if (::fcntl(file.get(), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) ++taken;
  }
  return taken;
}

void release_lease(int descriptor) {
  struct flock all {};  // from the first unit to the last
  all.l_type = F_UNLCK;
  all.l_whence = SEEK_SET;
  ::fcntl(descriptor, F_OFD_SETLK, &all);
  ::close(descriptor);
}

ResourceRequest resource_request(const worker::Environment& environment,
                                 const std::string& device,
                                 int jobs,
                                 int cores,
                                 int processes) {
  if (environment.device_type == "cpu") {
    LeaseDevice cpu = own_cpu();
    if (cpu.units != cores) cpu = {"cpu", std::max(1, cores)};
    return {{cpu}, std::clamp(environment.threads, 1, cpu.units)};
  }
  ResourceRequest demand;
  for (const std::string& name : environment.devices) {
    const bool chosen = device.find(':') == std::string::npos || device == name;
    if (!chosen || !starts_with(name, environment.device_type)) continue;
    const std::string whole = machine_name(name);
    demand.devices.push_back({whole, gpu_units, whole == name ? "" : name});
  }
  if (demand.devices.empty()) demand.devices.push_back({environment.device_type, gpu_units});
  const int devices = static_cast<int>(demand.devices.size());
  if (processes > devices) {
    throw Error(
        "parallel.processes " + std::to_string(processes) + " needs as many GPUs, and " +
            (device.find(':') == std::string::npos ? "this machine has " : device + " is ") +
            std::to_string(devices),
        "parallel.processes: auto takes as many as there are",
        ExitCode::usage);
  }
  demand.count = processes;
  demand.units = gpu_units;
  if (processes > 1) return demand;
  const int on_each = std::max(1, (jobs + devices - 1) / devices);
  demand.units = std::max(1, gpu_units / on_each);
  return demand;
}

int threads_for(int jobs, int cores) { return std::max(1, cores / std::max(1, jobs)); }

template <class Visitor>
void fields(Visitor& visit, LeaseDevice& device) {
  visit.field("name", device.name);
  visit.field("units", device.units);
  visit.optional("visible", device.visible);
  visit.optional("cores", device.cores);
}

template <class Visitor>
void fields(Visitor& visit, Asker& asker) {
  visit.field("group", asker.group);
  visit.field("jobs", asker.jobs);
  visit.field("fail_fast", asker.fail_fast);
  visit.optional("devices", asker.devices);
  visit.optional("stop_after", asker.stop_after);
  visit.optional("variables", asker.variables);
  visit.optional("place", asker.place);
}

template <class Visitor>
void fields(Visitor& visit, QueueEntry& entry) {
  visit.field("run", entry.run);
  fields(visit, static_cast<Asker&>(entry));
  visit.field("units", entry.units);
  visit.optional("count", entry.count);
  double priority = entry.priority;  // the reader takes every integer for a count
  visit.field("priority", priority);
  entry.priority = static_cast<int>(priority);
  visit.field("submitted", entry.submitted);
  visit.field("position", entry.position);
  visit.field("host", entry.host);
  visit.optional("device", entry.device);
  visit.optional("supervisor", entry.supervisor);
  visit.optional("supervisor_place", entry.supervisor_place);
  visit.field("starts", entry.starts);
  visit.field("attempt", entry.attempt);
  visit.optional("others", entry.others);
  visit.optional("goes_on", entry.goes_on);
}

std::string askers_text(const QueueEntry& entry) {
  return entry.group + " " + join(texts_of(entry.others, &Asker::group), " ");
}

bool is_asked_by(const QueueEntry& entry, const std::string& group) {
  return entry.group == group ||
         std::any_of(entry.others.begin(), entry.others.end(), [&](const Asker& other) {
           return other.group == group;
         });
}

std::optional<QueueEntry> without(const QueueEntry& entry, const std::string& group) {
  QueueEntry left = entry;
  const auto is_it = [&](const Asker& other) { return other.group == group; };
  left.others.erase(std::remove_if(left.others.begin(), left.others.end(), is_it),
                    left.others.end());
  if (entry.group != group) return left;
  if (left.others.empty()) return std::nullopt;
  Asker next = std::move(left.others[0]);
  left.others.erase(left.others.begin());
  if (next.devices.size() < static_cast<size_t>(left.count)) next.devices = left.devices;
  static_cast<Asker&>(left) = std::move(next);
  return left;
}

namespace {

/// The later one of two steps to stop after.
int64_t later_step(int64_t a, int64_t b) { return a == 0 || b == 0 ? 0 : std::max(a, b); }

}  // namespace

Asker of_another_host(Asker asker) {
  asker.devices.clear();
  asker.place.clear();
  return asker;
}

int64_t last_step_asked(const QueueEntry& entry) {
  int64_t last = entry.stop_after;
  for (const Asker& other : entry.others) last = later_step(last, other.stop_after);
  return last;
}

std::string devices_text(const QueueEntry& entry) {
  const std::vector<std::string> names = texts_of(entry.devices, &LeaseDevice::name);
  if (entry.count == 1) return join(names, " or ");
  return std::to_string(entry.count) + " of " + join(names, ", ");
}

/// Of an entry's fields. One who knew fewer would drop the others when it writes the entry.
constexpr int entry_version = 3;

nlohmann::json to_json(const QueueEntry& entry) {
  nlohmann::json json = worker::write_fields(entry);
  json["version"] = entry_version;
  return json;
}

namespace {

/// Names become names of files; units are locked one by one.
void require_sound(const QueueEntry& entry) {
  constexpr int most_units = 1 << 16;
  const auto require = [](bool sound, const std::string& field) {
    if (!sound) throw Error("an entry of the queue has no sound '" + field + "'");
  };
  const auto is_name = [](const std::string& name) {
    return name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
           name != "." && name != "..";
  };
  const auto is_count = [](int units) { return units >= 1 && units <= most_units; };
  const auto is_core = [](int core) { return core >= 0 && core < most_units; };
  require(is_name(entry.host), "host");
  require(is_count(entry.units), "units");
  require(is_count(entry.count), "count");
  require(entry.position >= 0, "position");
  const auto require_sound_devices = [&](const Asker& asker) {
    for (const LeaseDevice& device : asker.devices) {
      require(!device.name.empty() && is_name(device.name) && is_count(device.units), "devices");
      const bool are_counted =
          device.cores.empty() || device.cores.size() == static_cast<size_t>(device.units);
      require(are_counted && std::all_of(device.cores.begin(), device.cores.end(), is_core),
              "devices");
    }
  };
  require_sound_devices(entry);
  for (const Asker& other : entry.others) require_sound_devices(other);
  // It would wait for ever.
  require(entry.devices.size() >= static_cast<size_t>(entry.count), "devices");
}

}  // namespace

QueueEntry entry_from_json(const nlohmann::json& json) {
  const nlohmann::json version = json.value("version", nlohmann::json(1));
  if (!version.is_number_integer() || version > entry_version)
    throw Error("a newer version of forge has queued it, and starts it");
  QueueEntry entry = worker::read_fields<QueueEntry>(json, "entry of the queue");
  require_sound(entry);
  return entry;
}

namespace {

/// Whether `left` is started before `right`.
bool starts_before(const QueueEntry& left, const QueueEntry& right) {
  const auto rank = [](const QueueEntry& entry) {
    return std::tie(entry.submitted, entry.group, entry.position, entry.run);
  };
  if (left.priority != right.priority) return left.priority > right.priority;
  return rank(left) < rank(right);
}

fs::path entries_folder(const fs::path& folder) { return folder / "entries"; }

QueueEntry read_entry(const fs::path& file) {
  return entry_from_json(worker::object_from_line(read_file_within(file, max_json_file_bytes)));
}

}  // namespace

fs::path queue_folder(const fs::path& runs_dir) { return runs_dir / ".queue"; }

fs::path entry_file(const fs::path& runs_dir, const std::string& run) {
  return entries_folder(queue_folder(runs_dir)) / run;
}

fs::path lock_file(const fs::path& runs_dir) {
  run::require_runs_dir(runs_dir);
  make_own_folders(runs_dir, fs::path(".queue") / "entries");
  make_own_folders(runs_dir, fs::path(".queue") / "leases");
  return queue_folder(runs_dir) / "lock";
}

struct Queue::DelayedStop {
  DelayedStop() {
    sigset_t stop;
    ::sigemptyset(&stop);
    ::sigaddset(&stop, SIGTSTP);
    ::pthread_sigmask(SIG_BLOCK, &stop, &before);
  }
  ~DelayedStop() { ::pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  sigset_t before{};
};

namespace {

/// Whether a run's folder has no record. Of one that cannot be looked into that is not known.
bool is_no_run(const run::RunFolder& folder) {
  try {
    return !run::is_run_name(folder.id()) || !folder.has_record();
  } catch (const Error&) {
    return false;
  }
}

/// What to do about an entry that cannot be read.
std::string unread_text(const fs::path& runs_dir, const fs::path& file) {
  const std::string run = file.filename().string();
  if (is_closed(file, R_OK)) {
    return "it belongs to " + owner_name(file) +
           ", whose forge alone starts the run; chmod g+r lets others see it";
  }
  if (is_no_run(run::RunFolder(runs_dir / run))) return "there is no such run: remove the file";
  const auto command = [&](const std::string& word) {
    return quoted_command("forge runs " + word + " " + shell_quoted(run));
  };
  return "nothing starts the run: " + command("resume") + " queues it anew, " + command("stop") +
         " removes the entry";
}

}  // namespace

std::vector<QueueEntry> read_entries(const fs::path& runs_dir, std::vector<std::string>* problems) {
  std::vector<fs::path> files;
  try {
    files = required_entries(entries_folder(queue_folder(runs_dir)));
  } catch (const Error& problem) {
    if (!problems) throw;
    problems->push_back("the queue is not shown: " + problem.message());
  }
  std::vector<QueueEntry> entries;
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (is_aside_name(name)) continue;
    try {
      QueueEntry entry = read_entry(file);
      if (entry.run != name) throw Error("it is of run '" + entry.run + "'");
      entries.push_back(std::move(entry));
    } catch (const Error& problem) {
      // It may have been removed since the folder was read.
      if (problems && path_exists(file))
        problems->push_back(file.string() + ": " + problem.message() + "; " +
                            unread_text(runs_dir, file));
    }
  }
  std::sort(entries.begin(), entries.end(), starts_before);
  return entries;
}

fs::path leases_folder(const fs::path& runs_dir) {
  return queue_folder(runs_dir) / "leases" / run::host_name();
}

bool is_queued(const fs::path& runs_dir, const std::string& run) {
  const fs::path file = entry_file(runs_dir, run);
  if (!path_exists(file)) return false;
  if (is_closed(file, R_OK)) return true;
  try {
    read_entry(file);
    return true;
  } catch (const Error&) {
    return false;  // started by nobody, as read_entries leaves it out
  }
}

bool is_asked_by_others(const fs::path& runs_dir,
                        const std::string& run,
                        const std::string& group) {
  const fs::path file = entry_file(runs_dir, run);
  try {
    return without(read_entry(file), group).has_value();
  } catch (const Error&) {
    return false;  // it has ended, or nobody else can have it started
  }
}

Queue::Queue(const fs::path& runs_dir, std::unique_ptr<DelayedStop> delayed_stop, FileLock lock)
    : folder_(queue_folder(runs_dir)),
      delayed_stop_(std::move(delayed_stop)),
      lock_(std::move(lock)),
      entries_(read_entries(runs_dir)) {}

Queue::Queue(const fs::path& runs_dir)
    : Queue(runs_dir,
            std::make_unique<DelayedStop>(),
            lock_signed(lock_file(runs_dir), "the queue of '" + shown_path(runs_dir) + "'")) {}

std::optional<Queue> Queue::try_open(const fs::path& runs_dir, double seconds) {
  auto delayed_stop = std::make_unique<DelayedStop>();
  auto lock = try_lock_signed(lock_file(runs_dir), seconds);
  if (!lock) return std::nullopt;
  return Queue(runs_dir, std::move(delayed_stop), std::move(*lock));
}

Queue::Queue(Queue&&) noexcept = default;
Queue::~Queue() = default;

const QueueEntry* Queue::find(const std::string& run) const {
  for (const QueueEntry& entry : entries_) {
    if (entry.run == run) return &entry;
  }
  return nullptr;
}

bool Queue::holds(const std::string& run) const {
  return path_exists(entries_folder(folder_) / run);
}

bool Queue::may_wait(const std::string& run) const {
  return find(run) || is_closed(entries_folder(folder_) / run, R_OK);
}

namespace {

bool are_same(const std::vector<LeaseDevice>& left, const std::vector<LeaseDevice>& right) {
  return std::equal(left.begin(),
                    left.end(),
                    right.begin(),
                    right.end(),
                    [](const LeaseDevice& a, const LeaseDevice& b) {
                      return a.name == b.name && a.visible == b.visible && a.cores == b.cores;
                    });
}

/// The entry of a run that waits and is asked for again.
QueueEntry merged(const QueueEntry& waiting, const QueueEntry& entry, const fs::path& runs_dir) {
  const bool moves = waiting.host != entry.host && is_silent(runs_dir, waiting.host) &&
                     !run::RunFolder(runs_dir / entry.run).is_running();
  QueueEntry kept = moves ? entry : waiting;
  if (moves) {  // those who asked for it there still do
    std::vector<Asker> there = waiting.others;
    there.insert(there.begin(), waiting);
    for (const Asker& other : there)
      if (!is_asked_by(kept, other.group)) kept.others.push_back(of_another_host(other));
  }
  // The request of the last command stands in the run's folder, and says how many devices it needs.
  // It waits for those of its own host: what another one calls so is something else.
  const bool is_there = kept.host != entry.host;
  const bool changes =
      !is_there && (!are_same(kept.devices, entry.devices) || kept.count != entry.count);
  kept.units = entry.units;
  kept.count = entry.count;
  if (is_there && !kept.devices.empty())
    kept.units = std::min(kept.units, kept.devices.front().units);
  if (!is_asked_by(kept, entry.group)) {
    const Asker before = kept, asked = is_there ? of_another_host(entry) : Asker(entry);
    if (changes) static_cast<Asker&>(kept) = asked;
    kept.others.insert(changes ? kept.others.begin() : kept.others.end(), changes ? before : asked);
  }
  // A search sends its runs on.
  const auto ask = [&](Asker& asker) {
    if (asker.group == entry.group)
      asker.stop_after = later_step(asker.stop_after, entry.stop_after);
  };
  ask(kept);
  for (Asker& other : kept.others) ask(other);
  kept.priority = entry.priority;
  kept.starts = 0;
  return kept;
}

std::string text_of(const QueueEntry& entry) { return json_text(to_json(entry), 2) + "\n"; }

}  // namespace

void Queue::add(const std::vector<QueueEntry>& entries) {
  for (const QueueEntry& entry : entries) require_sound(entry);
  std::set<std::string> of_others;
  for (const QueueEntry& entry : entries)
    if (is_served_by_another_user(entry.run)) of_others.insert(entry.run);
  std::map<std::string, QueueEntry> all;
  for (QueueEntry& entry : entries_) all[entry.run] = std::move(entry);
  std::map<std::string, std::string> files;  // a run may be asked for twice
  for (const QueueEntry& entry : entries) {
    const auto [known, is_new] = all.try_emplace(entry.run, entry);
    if (!is_new && of_others.count(entry.run) > 0) continue;
    if (!is_new) known->second = merged(known->second, entry, folder_.parent_path());
    files[entry.run] = text_of(known->second);
  }
  entries_.clear();
  for (auto& [run, entry] : all) entries_.push_back(std::move(entry));
  std::sort(entries_.begin(), entries_.end(), starts_before);
  for (const QueueEntry& entry : entries) keep_own_environment(folder_, entry.group);
  write_own_files(entries_folder(folder_), {files.begin(), files.end()});
  forget_other_environments();  // all of these runs may wait already, for another command
}

void Queue::put(const QueueEntry& entry) {
  require_sound(entry);
  const QueueEntry added = entry;  // may be one of entries_
  write_own_files(entries_folder(folder_), {{added.run, text_of(added)}});
  forget(added.run);
  entries_.insert(std::upper_bound(entries_.begin(), entries_.end(), added, starts_before), added);
}

void Queue::remove(const std::string& run) {
  remove_tree(entries_folder(folder_) / run);
  forget(run);
  forget_other_environments();
}

void Queue::forget_other_environments() const {
  forget_environments(folder_, [&](const std::string& group) {
    return std::any_of(entries_.begin(), entries_.end(), [&](const QueueEntry& entry) {
      return is_asked_by(entry, group);
    });
  });
}

void Queue::ask_for_active(const QueueEntry& entry) {
  const QueueEntry* const found = find(entry.run);
  if (!found || is_of_other_user(entries_folder(folder_) / entry.run)) return;
  QueueEntry active = entry;  // it has its devices
  active.devices = found->devices;
  active.units = found->units;
  active.count = found->count;
  QueueEntry asked = merged(*found, active, folder_.parent_path());
  asked.starts = found->starts;
  asked.goes_on = path_exists(run::RunFolder(runs_dir() / entry.run).stop_file());
  keep_own_environment(folder_, entry.group);
  try {
    put(asked);
  } catch (const Error& problem) {
    // On a full disk the command follows the run without being recorded.
    if (problem.exit_code() != ExitCode::storage) throw;
  }
}

bool Queue::leave_to_others(const std::string& run, const std::string& group) {
  const QueueEntry* const entry = find(run);
  const std::optional<QueueEntry> left = entry ? without(*entry, group) : std::nullopt;
  if (left && is_asked_by(*entry, group)) put(*left);
  return left.has_value();
}

bool Queue::is_served_by_another_user(const std::string& run) const {
  const fs::path file = entries_folder(folder_) / run;
  struct stat status {};
  const QueueEntry* const entry = find(run);
  if (!entry || !is_of_other_user(file) || ::lstat(file.c_str(), &status) != 0) return false;
  if (!is_silent(runs_dir(), entry->host, status.st_uid)) return true;
  // It would stay there, where this user may have no process to start it.
  if (entry->host != run::host_name() && !is_silent(runs_dir(), entry->host)) return true;
  // One that is suspended gives no sign, and goes on when it is continued.
  return std::any_of(entries_.begin(), entries_.end(), [&](const QueueEntry& other) {
    struct stat owned {};
    const fs::path path = entries_folder(folder_) / other.run;
    return !other.device.empty() && other.host == entry->host &&
           ::lstat(path.c_str(), &owned) == 0 && owned.st_uid == status.st_uid &&
           run::RunFolder(runs_dir() / other.run).is_running();
  });
}

void Queue::forget(const std::string& run) {
  const auto is_it = [&](const QueueEntry& entry) { return entry.run == run; };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), is_it), entries_.end());
}

std::optional<KeptEnvironment> environment_of(const fs::path& runs_dir, const QueueEntry& entry) {
  const fs::path folder = queue_folder(runs_dir);
  std::optional<KeptEnvironment> first = kept_environment(folder, entry.group);
  if (!first || worker::may_start_with(first->settings, ::getpid())) return first;
  for (const Asker& other : entry.others) {
    if (!are_same(other.devices, entry.devices)) continue;  // it may not see that device
    std::optional<KeptEnvironment> kept = kept_environment(folder, other.group);
    if (kept && worker::may_start_with(kept->settings, ::getpid())) return kept;
  }
  return first;
}

}  // namespace forge::queue
