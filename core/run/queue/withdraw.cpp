#include "core/run/queue/withdraw.h"

#include <sys/stat.h>
#include <cstdio>
#include <optional>

#include "core/base/error.h"
#include "core/base/tail.h"
#include "core/run/event_log.h"
#include "core/run/queue/owners.h"

namespace forge::queue {

std::string request_stamp(const run::RunFolder& folder) {
  struct stat found {};
  if (::stat(folder.request_file().c_str(), &found) != 0) return "none";
  return std::to_string(found.st_ino) + "-" + std::to_string(found.st_mtim.tv_sec) + "-" +
         std::to_string(found.st_mtim.tv_nsec);
}

bool is_to_go_on(const QueueEntry& entry, const run::RunFolder& folder) {
  try {
    const run::StoredEvent last = run::stored_event_from_line(last_line(folder.events_file()));
    const bool is_stopped = last.ended && last.ended->status == run::RunState::stopped;
    if (is_stopped && entry.goes_on) return true;
    const int64_t rung = is_stopped ? last.ended->stop_after.value_or(0) : 0;
    const int64_t asked = last_step_asked(entry);
    return rung > 0 && (asked == 0 || asked > rung);
  } catch (const Error&) {
    return false;  // what its supervisor said of its end counts
  }
}

namespace {

/// Of a run that nobody runs. Nobody sees a part of its folder, which comes back where another
/// command has prepared the run just now.
void remove_if_never_begun(const run::RunFolder& folder, const std::string& made) {
  const bool holds_nothing =
      folder.state() == run::RunState::not_started && !path_exists(folder.annotations_file());
  if (!holds_nothing || request_stamp(folder) != made) return;
  const run::RunFolder aside(aside_path(folder.path()));
  rename_path(folder.path(), aside.path());
  const bool is_prepared = request_stamp(aside) != made;
  if (is_prepared && ::rename(aside.path().c_str(), folder.path().c_str()) == 0) return;
  remove_tree(aside.path());
}

QueueEntry waiting_again(QueueEntry entry) {
  entry.device.clear();
  entry.supervisor = 0;
  entry.starts = 0;
  entry.goes_on = false;
  return entry;
}

/// What is left of a command's runs is not begun, and what runs of it saves and stops.
std::set<std::string> give_up_group(Queue& queue, const std::string& group) {
  std::set<std::string> withdrawn;
  const std::vector<QueueEntry> entries = queue.entries();
  for (const QueueEntry& entry : entries) {
    if (!is_asked_by(entry, group)) continue;
    if (const std::optional<QueueEntry> left = without(entry, group)) {
      queue.put(*left);
      continue;
    }
    const run::RunFolder folder(queue.runs_dir() / entry.run);
    if (folder.is_running()) {
      folder.request_stop(run::StopRequest::after_checkpoint);
    } else {
      queue.remove(entry.run);
      withdrawn.insert(entry.run);
    }
  }
  return withdrawn;
}

}  // namespace

void finish_queued_run(const fs::path& runs_dir, const std::string& run, bool failed) {
  Queue queue(runs_dir);
  const QueueEntry* found = queue.find(run);
  if (!found && queue.holds(run)) queue.remove(run);  // it cannot be read
  if (!found) return;
  const QueueEntry entry = *found;
  if (is_to_go_on(entry, run::RunFolder(runs_dir / run))) return queue.put(waiting_again(entry));
  queue.remove(run);
  if (failed) give_up_after(queue, entry);
}

std::set<std::string> give_up_after(Queue& queue, const QueueEntry& failed) {
  std::set<std::string> withdrawn;
  if (failed.fail_fast) withdrawn.merge(give_up_group(queue, failed.group));
  for (const Asker& other : failed.others)
    if (other.fail_fast) withdrawn.merge(give_up_group(queue, other.group));
  return withdrawn;
}

namespace {

/// Whether it took the run out of the queue.
bool cancel(Queue& queue, const std::string& run, const MadeRuns& made, const std::string& group) {
  const run::RunFolder folder(queue.runs_dir() / run);
  if (!queue.holds(run)) return false;
  if (!group.empty() && queue.leave_to_others(run, group)) return false;
  if (folder.is_running()) {
    if (const QueueEntry* const active = queue.find(run); active && active->goes_on) {
      QueueEntry stopping = *active;
      stopping.goes_on = false;
      queue.put(stopping);
    }
    return false;
  }
  const bool is_closed = closed_path(folder).has_value();
  if (is_closed && !is_own_entry(queue.runs_dir(), run)) return false;
  queue.remove(run);
  const auto own = made.find(run);
  if (own == made.end() || is_closed) return true;
  try {
    remove_if_never_begun(folder, own->second);
  } catch (const Error&) {
    // Somebody removed or moved it.
  }
  return true;
}

}  // namespace

std::vector<std::string> cancel_queued(Queue& queue,
                                       const std::vector<std::string>& runs,
                                       const MadeRuns& made,
                                       const std::string& group) {
  std::vector<std::string> withdrawn;
  for (const std::string& run : runs) {
    try {
      if (cancel(queue, run, made, group)) withdrawn.push_back(run);
    } catch (const Error& problem) {
      if (problem.exit_code() != ExitCode::storage) throw;
    }
  }
  return withdrawn;
}

void remove_unqueued(const Queue& queue, const MadeRuns& runs) {
  for (const auto& [run, made] : runs) {
    const run::RunFolder folder(queue.runs_dir() / run);
    if (queue.may_wait(run) || folder.is_running() || !path_exists(folder.record_file())) continue;
    if (closed_path(folder)) continue;
    remove_if_never_begun(folder, made);
  }
}

}  // namespace forge::queue
