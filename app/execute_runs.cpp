#include "app/execute_runs.h"

#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/owner.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/results/store/result_store.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/keeper.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/withdraw.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

/// Whether a line of the worker's stderr says no more than the reason that it gave.
bool repeats_reason(const std::string& line, const std::string& reason) {
  const std::string prefix = "error: ";
  const std::string text(trim(starts_with(line, prefix) ? line.substr(prefix.size()) : line));
  constexpr size_t cut_off = 300;  // of a longer line only so much may be kept
  for (const std::string& said : split(reason, '\n')) {
    if (text == trim(said) || (text.size() > cut_off && starts_with(said, text))) return true;
  }
  return false;
}

void report_failure(const std::string& label,
                    const run::RunFolder& folder,
                    const run::RunStatus& status) {
  std::cerr << "error: " << label << " failed: " << status.reason << "\n";
  for (const std::string& line : status.stderr_lines) {
    if (!repeats_reason(line, status.reason)) std::cerr << "    " << line << "\n";
  }
  if (!status.hint.empty()) std::cerr << "hint: " << status.hint << "\n";
  const fs::path log = folder.stderr_file(status.rank);
  const bool is_named = status.hint.find(log.string()) != std::string::npos;
  const bool is_there = path_exists(folder.record_file()) && path_exists(log);
  if (!is_named && is_there) std::cerr << "full log: " << shown_path(log) << "\n";
}

/// As the supervisor's own: a stop and a full disk have a code each.
int run_exit_code(const run::RunStatus& status) {
  if (status.state == run::RunState::completed) return run::supervised_completed;
  if (status.state == run::RunState::stopped) return run::supervised_stopped;
  return status.storage ? run::supervised_storage : run::supervised_failed;
}

/// Of two exit codes of runs the one to tell: a failure, which may be why others were stopped, goes
/// before a stop, and a full disk before all.
int worse(int a, int b) {
  const auto weight = [](int code) { return code == run::supervised_stopped ? 0.5 : code; };
  return weight(a) < weight(b) ? b : a;
}

void print_queued(const std::vector<PendingRun>& runs, bool json) {
  if (json) {
    print_json(json_list(runs, [](const PendingRun& run) -> nlohmann::json {
      return {{"run", run.planned.record.id},
              {"label", run.label},
              {"action", name_of(run.planned.action)}};
    }));
    return;
  }
  for (const PendingRun& run : runs) std::cout << tables::printable(run.planned.record.id) << "\n";
  std::cerr << "'forge status' shows their progress, 'forge runs stop' stops them\n";
}

/// Whose a run is that waits or trains for another user alone; "" of one that this command asks
/// for.
std::string other_owner(const PendingRun& run, const std::set<std::string>& own) {
  const std::string& id = run.planned.record.id;
  const std::filesystem::path runs_dir = run.planned.folder.path().parent_path();
  const std::filesystem::path entry = queue::entry_file(runs_dir, id);
  const bool is_others = own.count(id) == 0 && queue::is_of_other_user(entry);
  return is_others ? tables::printable(owner_name(entry)) : "";
}

/// The runs that could be queued, `own` for this command; of the others a line says why not.
std::vector<PendingRun> without_refused(const std::vector<PendingRun>& runs,
                                        const std::set<std::string>& own) {
  std::vector<PendingRun> queued;
  for (const PendingRun& run : runs) {
    if (const std::optional<Error> problem = refusal(run)) {
      std::cerr << "error: " << run.label << " is not queued: " << problem->message() << "\n"
                << "hint: " << problem->hint() << "\n";
    } else if (run.planned.action != run::Action::cached &&
               !path_exists(run.planned.folder.record_file())) {
      std::cerr << "error: " << run.label
                << " is not queued: another command has withdrawn it meanwhile\n"
                << "hint: the same command queues it\n";
    } else if (const std::string owner = other_owner(run, own); !owner.empty()) {
      std::cerr << "error: " << run.label << " is not queued for you: it is " << owner
                << "'s, whose commands may stop it\n"
                << "hint: the same command without --detach waits for its end\n";
    } else {
      queued.push_back(run);
    }
  }
  return queued;
}

/// What the user can do about a run that was left as it is.
std::string left_text(const run::RunFolder& folder) {
  const std::optional<queue::ClosedPath> closed = queue::closed_path(folder);
  if (closed && !closed->is_own)
    return "left " + folder.id() + " to its owner, " + tables::printable(closed->owner);
  const std::string stop = quoted_command("forge runs stop " + shell_quoted(folder.id())) + " ";
  return folder.is_running() ? "left " + folder.id() + " running; " + stop + "stops it"
                             : "left " + folder.id() + " in the queue; " + stop + "removes it";
}

/// What goes on without a command that fails while it follows its runs.
void tell_unfollowed(const Context& context, const std::vector<PendingRun>& runs) {
  for (const PendingRun& run : runs) {
    const run::RunFolder& folder = run.planned.folder;
    if (folder.is_running() || queue::is_queued(context.runs_dir(), folder.id()))
      std::cerr << left_text(folder) << "\n";
  }
}

/// The store, kept up to date while runs are followed. Where no disk has room for it, it is left
/// alone: the runs need none, and what they found is in their folders.
class FollowedStore {
 public:
  FollowedStore(const Context& context, const Interrupts& interrupts)
      : runs_dir_(context.runs_dir()), interrupts_(interrupts) {
    attempt([&] { store_.emplace(open_store(context)); });
  }
  void update() {
    if (store_) attempt([&] { print_warnings(store_->sync(runs_dir_).warnings); });
  }

 private:
  template <class Action>
  void attempt(const Action& action) {
    try {
      action();
    } catch (const Error& problem) {
      const bool interrupted = interrupts_.count() > 0;  // while it waited for another process
      if (problem.exit_code() != ExitCode::storage && !interrupted) throw;
      store_.reset();
      if (!interrupted) print_warnings({problem.message() + "; the runs go on without it"});
    }
  }

  std::filesystem::path runs_dir_;
  const Interrupts& interrupts_;
  std::optional<store::ResultStore> store_;
};

/// The last end of each run, in the order in which they began.
std::vector<EndedRun> last_ends(std::vector<EndedRun> ended) {
  std::vector<EndedRun> last;
  for (EndedRun& end : ended) {
    const auto same = [&](const EndedRun& other) {
      return other.run.planned.record.id == end.run.planned.record.id;
    };
    const auto before = std::find_if(last.begin(), last.end(), same);
    if (before == last.end()) {
      last.push_back(std::move(end));
    } else {
      *before = std::move(end);
    }
  }
  return last;
}

/// Another command's process may have tried, and not been allowed: ": would start a program …".
std::string why_not_started(const run::RunFolder& folder) {
  if (!path_exists(folder.supervisor_log())) return "";
  for (const std::string& line : last_lines(folder.supervisor_log(), 0, 10, 400))
    if (starts_with(line, "error: ")) return ": " + tables::printable(line.substr(7));
  return "";
}

/// `halves`: whether a run that halving stopped has ended as it should.
ExecutedRuns report_ends(const std::vector<EndedRun>& all, bool halves) {
  std::vector<std::string> ended;
  int worst = run::supervised_completed;
  bool some_are_open = false;  // not started, or left
  bool all_told = true;        // completed, or diverged
  std::vector<std::string> stopped, halved;
  for (const auto& [run, outcome] : last_ends(all)) {
    const std::string& id = run.planned.record.id;
    const bool is_completed = outcome.status.state == run::RunState::completed;
    all_told =
        all_told && outcome.ending == Ending::ended && (is_completed || outcome.status.diverged);
    if (outcome.ending != Ending::ended) {
      some_are_open = true;
      std::cerr << (outcome.ending == Ending::left
                        ? left_text(run.planned.folder)
                        : run.label + ": not started" + why_not_started(run.planned.folder) +
                              "; the same command starts it")
                << "\n";
      continue;
    }
    ended.push_back(id);
    if (halves && outcome.status.halved) continue;
    if (outcome.status.state == run::RunState::failed)
      report_failure(run.label, run.planned.folder, outcome.status);
    if (outcome.status.halved) {
      halved.push_back(id);
      std::cerr << run.label << ": " << outcome.status.reason
                << ": the search of another command compares its runs there and goes on with the "
                   "best alone\n";
    } else if (outcome.status.state == run::RunState::stopped) {
      stopped.push_back(id);
    }
    worst = worse(worst, run_exit_code(outcome.status));
  }
  if (!halved.empty())
    std::cerr << quoted_command("forge runs resume " + shell_quoted(halved))
              << (halved.size() == 1 ? " completes it" : " completes them") << " in any case\n";
  if (!stopped.empty())
    std::cerr << quoted_command("forge runs resume " + shell_quoted(stopped))
              << (stopped.size() == 1 ? " continues it from its" : " continues them from their")
              << " newest checkpoint\n";
  if (worst == run::supervised_completed && some_are_open) worst = run::supervised_stopped;
  return {worst, false, std::move(ended), all_told && worst != run::supervised_completed};
}

ExecutedRuns follow_and_report(const Context& context,
                               const std::vector<PendingRun>& runs,
                               std::set<std::string> own,
                               const Interrupts& interrupts,
                               const QueueOptions& queue,
                               RunSource* source) {
  FollowedStore store(context, interrupts);
  const std::vector<EndedRun> ended = follow_runs(
      context, runs, own, interrupts, [&] { store.update(); }, queue, source);
  const bool some_wait = std::any_of(ended.begin(), ended.end(), [](const EndedRun& end) {
    return end.outcome.ending == Ending::left && !end.run.planned.folder.is_running();
  });
  // Supervisors of other users may not start them, and others may ask for what this command gave
  // up. A keeper ends where it is not needed.
  if (some_wait) queue::start_keeper(context.runs_dir(), context.program());
  return report_ends(ended, source != nullptr);
}

/// What another process that keeps the queue locked does not let this command withdraw.
void tell_left(const std::vector<PendingRun>& runs, const std::set<std::string>& own) {
  std::vector<std::string> made;
  for (const PendingRun& run : runs) {
    const std::string& id = run.planned.record.id;
    if (own.count(id) > 0) {
      std::cerr << left_text(run.planned.folder) << "\n";
    } else if (!run.made.empty()) {
      made.push_back(id);
    }
  }
  if (made.empty()) return;
  std::cerr << "another process keeps the queue locked, so the folders of runs that were not "
               "started stay; "
            << quoted_command("forge runs rm " + shell_quoted(made)) << " removes them\n";
}

enum class Withdrawal { done, left, started };

/// Takes runs out of the queue and removes the folders that this command made for them, but for
/// those that somebody has started. Where another process keeps the queue locked, they are left as
/// they are, and a line says so.
Withdrawal withdraw(const Context& context,
                    const std::vector<PendingRun>& runs,
                    const std::set<std::string>& own,
                    const QueueGroup& group) {
  const std::filesystem::path runs_dir = context.runs_dir();
  queue::MadeRuns made;
  for (const PendingRun& run : runs) {
    if (!run.made.empty()) made[run.planned.record.id] = run.made;
  }
  if (own.empty() && made.empty()) return Withdrawal::done;
  std::optional<queue::Queue> queue = queue::Queue::try_open(runs_dir, lock_patience);
  if (!queue) {
    tell_left(runs, own);
    return Withdrawal::left;
  }
  queue::cancel_queued(*queue, {own.begin(), own.end()}, made, group.name);
  queue::remove_unqueued(*queue, made);
  const bool none_runs = std::none_of(own.begin(), own.end(), [&](const std::string& run) {
    return run::RunFolder(runs_dir / run).is_running();
  });
  return none_runs ? Withdrawal::done : Withdrawal::started;
}

ExecutedRuns tell_interrupted(Withdrawal withdrawal) {
  if (withdrawal == Withdrawal::done)
    std::cerr << "interrupted before these runs were started: they are out of the queue, and the "
                 "folders made for them are removed\n";
  return {run::supervised_stopped, false, {}};
}

}  // namespace

void withdraw_unqueued(const Context& context, const std::vector<PendingRun>& runs) {
  withdraw(context, runs, {}, {});
}

ExecutedRuns withdraw_interrupted(const Context& context, const std::vector<PendingRun>& runs) {
  return tell_interrupted(withdraw(context, runs, {}, {}));
}

void add_queue_options(const Command& command, QueueOptions& queue) {
  command
      .add_option(
          "--jobs",
          queue.jobs,
          "Run at most N of these runs at once: on a CPU each gets an equal share of the "
          "cores; more runs than GPUs share the GPUs [default: one per GPU; on a CPU one, or as "
          "many as there is room for with --threads]")
      .at_least(1);
  command.add_option(
      "--priority",
      queue.priority,
      "Higher priority starts first; a run that waits already gets it too [default: 0]");
  command.add_flag("--detach",
                   queue.detach,
                   "Queue and return; 'forge status' shows the progress. Ctrl-\\ does so later");
}

ExecutedRuns execute_runs(const Context& context,
                          const std::vector<PendingRun>& runs,
                          const QueueOptions& options,
                          Interrupts& interrupts,
                          bool json,
                          RunSource* source) {
  QueueOptions queue = options;
  if (queue.group.name.empty()) queue.group = new_group();
  interrupts.let_second_end_program(true);
  const std::set<std::string> own = enqueue(context, runs, queue, interrupts);
  if (interrupts.count() > 0) {
    const Withdrawal withdrawal = withdraw(context, runs, own, queue.group);
    if (withdrawal != Withdrawal::started) return tell_interrupted(withdrawal);
  }
  interrupts.let_second_end_program(false);
  try {
    if (!queue.detach && !detach_requested())
      return follow_and_report(context, runs, own, interrupts, queue, source);
    const queue::DispatchResult done =
        queue::dispatch(context.runs_dir(), context.program(), queue::IfLocked::wait);
    if (done.no_room)
      print_warnings({done.no_room->message() + "; runs that wait start when there is room"});
    if (done.no_process)
      print_warnings({done.no_process->message() + "; runs that wait start when that is mended"});
  } catch (const std::exception&) {
    tell_unfollowed(context, runs);
    throw;
  }
  const std::vector<PendingRun> queued = without_refused(runs, own);
  if (!queue.detach) allow_lost_output("forge status");  // the terminal or its reader is gone
  print_queued(queued, json);
  if (queued.size() < runs.size()) return {run::supervised_failed, true, {}};
  return {queue.detach ? run::supervised_completed : run::supervised_stopped, true, {}};
}

}  // namespace forge::app
