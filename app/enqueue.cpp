#include "app/enqueue.h"

#include <algorithm>
#include <iostream>
#include <iterator>

#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/files.h"
#include "core/run/host.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/place.h"
#include "core/run/run_folder.h"

namespace forge::app {
namespace {

/// The queue, once no other process changes it; nullopt after a Ctrl-C.
std::optional<queue::Queue> open_queue(const std::filesystem::path& runs_dir,
                                       const Interrupts& interrupts) {
  if (interrupts.count() > 0) return std::nullopt;
  try {
    return queue::Queue(runs_dir);
  } catch (const Error&) {
    if (interrupts.count() == 0) throw;
    return std::nullopt;
  }
}

}  // namespace

std::optional<Error> refusal(const PendingRun& run) {
  const run::Action action = run.planned.action;
  if (action != run::Action::start && action != run::Action::resume) return std::nullopt;
  const std::optional<queue::ClosedPath> closed = queue::closed_path(run.planned.folder);
  return closed ? std::optional(queue::closed_error(*closed)) : std::nullopt;
}

QueueGroup new_group() {
  const std::string submitted = utc_timestamp();
  return {submitted + "-" + process_digits(), submitted};
}

std::set<std::string> enqueue(const Context& context,
                              const std::vector<PendingRun>& runs,
                              const QueueOptions& options,
                              const Interrupts& interrupts) {
  const QueueGroup& group = options.group;
  std::vector<queue::QueueEntry> entries, active;
  std::vector<PendingRun> in_order = runs;
  std::stable_sort(in_order.begin(), in_order.end(), [](const auto& left, const auto& right) {
    return left.place < right.place;
  });
  for (const PendingRun& run : in_order) {
    const run::Action action = run.planned.action;
    const bool is_new = action == run::Action::start || action == run::Action::resume;
    if ((!is_new && action != run::Action::running) || refusal(run)) continue;
    queue::QueueEntry& entry = (is_new ? entries : active).emplace_back();
    entry.run = run.planned.record.id;
    entry.group = group.name;
    entry.priority = options.priority.value_or(0);
    entry.submitted = group.submitted;
    entry.position = &run - in_order.data();
    entry.host = run::host_name();
    entry.devices = run.demand.devices;
    entry.units = run.demand.units;
    entry.count = run.demand.count;
    entry.jobs = options.jobs;
    entry.fail_fast = options.fail_fast;
    entry.stop_after = run.stop_after;
    entry.variables = run::numerics_variables();
    entry.place = queue::own_place();
  }
  std::optional<queue::Queue> queue = open_queue(context.runs_dir(), interrupts);
  if (!queue || interrupts.count() > 0) return {};
  // The command that made a folder may have withdrawn the run since it was found.
  const auto is_withdrawn = [&](const queue::QueueEntry& entry) {
    if (path_exists(run::RunFolder(context.runs_dir() / entry.run).record_file())) return false;
    std::cerr << tables::printable(entry.run)
              << ": another command has withdrawn or removed it meanwhile\n";
    return true;
  };
  entries.erase(std::remove_if(entries.begin(), entries.end(), is_withdrawn), entries.end());
  for (std::vector<queue::QueueEntry>* const asked : {&entries, &active}) {
    for (queue::QueueEntry& entry : *asked) {
      const queue::QueueEntry* waiting = queue->find(entry.run);
      if (waiting && !options.priority) entry.priority = waiting->priority;
    }
  }
  // What was active when it was looked for may have been stopped since.
  const auto has_stopped = [&](const queue::QueueEntry& entry) {
    const run::RunFolder folder(context.runs_dir() / entry.run);
    const bool has_ended = !queue->find(entry.run) && !folder.is_running() &&
                           folder.state() != run::RunState::completed;
    if (has_ended && entry.devices.empty())
      std::cerr << tables::printable(entry.run)
                << ": it has ended meanwhile; the same command continues it\n";
    return has_ended && !entry.devices.empty();
  };
  std::copy_if(active.begin(), active.end(), std::back_inserter(entries), has_stopped);
  active.erase(std::remove_if(active.begin(), active.end(), has_stopped), active.end());
  queue->add(entries);
  for (const queue::QueueEntry& entry : active) queue->ask_for_active(entry);
  std::set<std::string> own;
  for (const queue::QueueEntry& entry : queue->entries())
    if (queue::is_asked_by(entry, group.name)) own.insert(entry.run);
  return own;
}

}  // namespace forge::app
