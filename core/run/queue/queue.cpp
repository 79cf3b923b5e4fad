#include "core/run/queue/queue.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <map>
#include <set>
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
#include "core/run/queue/hosts.h"
#include "core/run/queue/owners.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"
#include "core/worker/messages.h"

namespace forge::queue {
namespace {

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

bool waits_elsewhere(const fs::path& runs_dir, const std::string& run) {
  try {
    const QueueEntry entry = read_entry(entry_file(runs_dir, run));
    return entry.host != run::host_name() && !is_silent(runs_dir, entry.host);
  } catch (const Error&) {
    return false;  // it waits nowhere, or nobody can have it started
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
  // The request of the last command stands in the run's folder, and says how many devices it needs;
  // but for one that waits on another host (waits_elsewhere), for devices of that one.
  const bool is_there = kept.host != entry.host;
  const bool changes =
      !is_there && (!are_same(kept.devices, entry.devices) || kept.count != entry.count);
  if (!is_there) {
    kept.units = entry.units;
    kept.count = entry.count;
  }
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
