#include "core/run/queue/dispatch.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/base/owner.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/run/allowed_command.h"
#include "core/run/checkpoint_space.h"
#include "core/run/event_log.h"
#include "core/run/host.h"
#include "core/run/queue/gpu_names.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/keeper.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/place.h"
#include "core/run/queue/withdraw.h"
#include "core/run/request.h"
#include "core/run/start.h"

namespace forge::queue {
namespace {

/// Whether a run that nobody supervises needs nothing more: its supervisor died after the end and
/// before it could say so to the queue.
bool needs_no_more(const QueueEntry& entry, const run::RunFolder& folder) {
  if (!folder.has_record()) return true;  // removed by hand
  const run::RunStatus status = folder.status();
  if (status.state == run::RunState::completed || status.damaged) return true;
  const bool ended =
      status.state == run::RunState::stopped || status.state == run::RunState::failed;
  return entry.starts > 0 && ended && status.attempt > entry.attempt && !status.interrupted &&
         !is_to_go_on(entry, folder);
}

/// Says in the run's own words that it was given up, as far as that can still be written.
void record_failure(const run::RunFolder& folder, const std::string& reason) {
  try {
    folder.require_own_files();
    const auto lock = FileLock::try_acquire(folder.lock_file());
    if (!lock) return;
    run::EventLog log(folder.events_file());
    log.append(run::AttemptEnded{run::RunState::failed, {}, {}, reason}, log.last_attempt());
    log.sync();
  } catch (const Error&) {
    // A full disk: who called us has the problem.
  }
}

/// Whether this user would start what the run starts: another user, or the same one with another
/// cache, may have queued it.
bool is_allowed(const run::RunFolder& folder) {
  try {
    const nlohmann::json experiment = run::read_request(folder).experiment;
    return run::is_command_allowed(folder.record().identity,
                                   config::experiment_from_json(experiment));
  } catch (const Error&) {
    return true;  // its supervisor says what is wrong
  }
}

/// Whether a process of this machine is this user's.
bool is_of_this_user(int process) {
  const fs::path folder = fs::path("/proc") / std::to_string(process);
  return process > 0 && path_exists(folder) && !is_of_other_user(folder);
}

/// What the disk has no room for; none where it has, and where the supervisor has to say what is
/// wrong with the run.
std::optional<Error> room_problem(const run::RunFolder& folder) {
  try {
    run::require_room(folder);
  } catch (const Error& problem) {
    if (problem.exit_code() == ExitCode::storage) return problem;
  }
  return std::nullopt;
}

/// Whether a supervisor was started for it. Of others nothing is looked at until they find room: a
/// queue may hold thousands, and every supervisor that ends looks at all of it.
bool has_begun(const QueueEntry& entry) { return entry.starts > 0 || !entry.device.empty(); }

class Dispatcher {
 public:
  Dispatcher(const fs::path& runs_dir,
             const fs::path& program,
             Queue queue,
             const std::set<std::string>& impatient)
      : runs_dir_(runs_dir),
        program_(program),
        impatient_(impatient),
        queue_(std::move(queue)),
        host_(run::host_name()),
        sign_of_life_(give_sign_of_life(runs_dir)) {}

  DispatchResult run() {
    std::vector<QueueEntry> idle;
    for (const QueueEntry& entry : queue_.entries()) {
      if (has_begun(entry) && folder_of(entry).is_running()) {
        count_running(entry);
      } else {
        idle.push_back(entry);
      }
    }
    for (QueueEntry& entry : idle) {
      if (given_up_.count(entry.run) == 0 && is_ours(entry)) consider(entry);
    }
    done_.needs_keeper = needs_keeper();
    return std::move(done_);
  }

 private:
  /// Whether runs wait that this process would start, and no supervisor of this user's here does so
  /// when it ends. Another user's may not be allowed to, nor one with other limits or another
  /// cache.
  bool needs_keeper() {
    const worker::ProcessSettings own = worker::own_settings();
    const bool is_looked_after =
        std::any_of(running_.begin(), running_.end(), [&](const QueueEntry& entry) {
          return entry.host == host_ && is_of_this_user(entry.supervisor) &&
                 entry.supervisor_place == place_ && worker::may_start_with(own, entry.supervisor);
        });
    if (is_looked_after) return false;
    if (done_.no_room || done_.no_process || was_refused_ || !waiting_.empty()) return true;
    return std::any_of(of_full_groups_.begin(), of_full_groups_.end(), [&](const auto& waiting) {
      return !is_left_to_others(*waiting.second);
    });
  }

  run::RunFolder folder_of(const QueueEntry& entry) const {
    return run::RunFolder(runs_dir_ / entry.run);
  }

  /// Whether the only command that asks for it is there to be told.
  bool is_impatient(const QueueEntry& entry) const {
    return impatient_.count(entry.run) > 0 && entry.others.empty();
  }

  void count_running(const QueueEntry& entry) {
    ++running_of_group_[entry.group];
    running_.push_back(entry);
  }

  void wait_for(const QueueEntry& entry, const std::string& what) {
    done_.waiting[entry.run] = what;
  }

  /// Of a run that is started once there is room.
  void wait_for_room(const QueueEntry& entry, const Error& problem) {
    // One is enough to tell its command of.
    if (is_impatient(entry) && done_.failed.empty()) return fail(entry, problem);
    wait_for(entry, "room: " + problem.message());
    if (!done_.no_room) done_.no_room = problem;
    ++without_room_;
  }

  /// Of a run that is started once the machine starts forge again. It would start no other run now.
  void wait_for_process(const QueueEntry& entry, const Error& problem) {
    wait_for(entry, "this machine to start forge: " + problem.message());
    done_.no_process = problem;
  }

  /// Of a run that could not be begun for a cause of its own that may pass. Others may be begun.
  void wait_for_another_try(const QueueEntry& entry, const Error& problem) {
    wait_for(entry, "another try: " + problem.message());
    was_refused_ = true;
  }

  /// Whether this host is to start a run that nobody runs. Takes over those of hosts that are gone.
  bool is_ours(QueueEntry& entry) {
    if (entry.host == host_) return true;
    if (sign_of_life_) correct_signs(runs_dir_, entry, *sign_of_life_);
    const std::optional<double> last_sign = last_sign_of_life(runs_dir_, entry);
    const double silence = sign_of_life_ && last_sign ? *sign_of_life_ - *last_sign : 0;
    const bool is_gone = silence >= gone_after_seconds && !folder_of(entry).is_running();
    if (is_gone && (is_left_to_owner(entry) || leaves_if_over(entry) || is_foreign(entry)))
      return false;
    if (is_gone && take_over(entry)) return true;
    wait_for(entry, host_text(entry.host, silence));
    return false;
  }

  /// The run of a host that is gone.
  bool take_over(QueueEntry& entry) {
    std::optional<QueueEntry> moved = moved_here(runs_dir_, entry);
    if (!moved) return false;
    try {
      queue_.put(*moved);
    } catch (const Error&) {
      return false;  // no room, or no right, to write the entry: it stays as it is
    }
    entry = std::move(*moved);
    return true;
  }

  /// Whether it waits for who owns its files, which this user may not read and write. Nothing here
  /// can tell then whether it has ended. Its own command gets an error where it does not run.
  bool is_left_to_owner(const QueueEntry& entry) {
    const run::RunFolder folder = folder_of(entry);
    const std::optional<ClosedPath> closed = closed_path(folder);
    if (!closed) return false;
    if (is_impatient(entry) && !closed->hides_lock && !folder.is_running()) {
      fail(entry, closed_error(*closed));
    } else {
      wait_for(entry, closed_text(*closed, folder));
    }
    return true;
  }

  /// Whether it waits for the user who has queued it.
  bool is_foreign(const QueueEntry& entry) {
    const std::string text = foreign_entry_text(runs_dir_, entry.run);
    if (!text.empty()) wait_for(entry, text);
    return !text.empty();
  }

  /// Whether it waits for another user, or for one who allows its program.
  bool is_left_to_others(const QueueEntry& entry) {
    if (is_left_to_owner(entry) || is_beyond_own_limits(entry)) return true;
    if (is_allowed(folder_of(entry))) return false;
    wait_for(
        entry,
        "one who has allowed its program: " +
            quoted_command("forge runs resume " + shell_quoted(entry.run) + " --allow-command"));
    return true;
  }

  /// Whether it waits for a process that may give it the limits of its command, which has left a
  /// keeper behind that does.
  bool is_beyond_own_limits(const QueueEntry& entry) {
    if (!beyond_own_limits(entry)) return false;
    wait_for(entry, limits_text(entry.run));
    return true;
  }

  /// The environment that this process may not give the run; none where it may.
  const std::optional<KeptEnvironment>& beyond_own_limits(const QueueEntry& entry) {
    const auto [known, is_new] = beyond_.try_emplace(askers_text(entry));
    if (is_new) known->second = environment_of(runs_dir_, entry);
    if (is_new && known->second && worker::may_start_with(known->second->settings, ::getpid()))
      known->second.reset();
    return known->second;
  }

  /// Takes a run out of the queue that needs nothing more. Also says true where that cannot be
  /// known, or the entry cannot be removed: it stays.
  bool leaves_if_over(const QueueEntry& entry) {
    try {
      if (!needs_no_more(entry, folder_of(entry))) return false;
      queue_.remove(entry.run);
    } catch (const Error& problem) {
      wait_for(entry, problem.message());
    }
    return true;
  }

  void consider(const QueueEntry& entry) {
    const run::RunFolder folder = folder_of(entry);
    if (has_begun(entry) && (is_left_to_owner(entry) || leaves_if_over(entry))) return;
    if (is_foreign(entry)) return;
    if (done_.no_process) return wait_for_process(entry, *done_.no_process);
    if (without_room_ >= most_without_room) {
      return wait_for(entry,
                      "room: " + std::to_string(without_room_) + " runs before it wait for that");
    }
    if (entry.jobs > 0 && running_of_group_[entry.group] >= entry.jobs) {
      of_full_groups_.try_emplace(entry.group, &entry);
      return wait_for(entry,
                      "a run of its command to end (--jobs " + std::to_string(entry.jobs) + ")");
    }
    if (entry.starts >= max_starts) {
      return fail(entry,
                  Error("its supervisor was killed " + std::to_string(entry.starts) + " times",
                        "see " + folder.supervisor_log().string(),
                        ExitCode::failed));
    }
    std::vector<Lease> leases;
    try {
      leases = leases_for(entry);
    } catch (const Error& problem) {
      if (problem.exit_code() != ExitCode::storage) throw;
      return wait_for_room(entry, problem);  // for the file of a lease
    }
    if (leases.empty()) return;
    if (folder.is_running()) return count_running(entry);  // by other means than the queue
    if (is_left_to_others(entry) || leaves_if_over(entry)) return;
    if (const auto problem = room_problem(folder)) return wait_for_room(entry, *problem);
    start(entry, folder, leases);
  }

  /// Whether a process that has the limits of its command, or works where it did, starts it.
  bool is_left_to_keeper(const QueueEntry& entry) {
    const std::optional<KeptEnvironment>& beyond = beyond_own_limits(entry);
    if (beyond && FileLock::is_held(keeper_file(runs_dir_, entry.place, beyond->settings)))
      return true;
    if (entry.place.empty() || entry.place == place_) return false;
    const auto [known, is_new] = is_served_.try_emplace(entry.place);
    if (is_new) known->second = !is_place_silent(runs_dir_, entry.place);
    return known->second;
  }

  /// Leases of the first devices with room. If too few have room, all are reserved for this run:
  /// runs behind it in the queue may not overtake it there, or a large run would never start.
  std::vector<Lease> leases_for(const QueueEntry& entry) {
    std::vector<LeaseDevice> free;
    for (const LeaseDevice& device : entry.devices) {
      if (!is_reserved(device)) free.push_back(device);
    }
    std::vector<Lease> leases;
    if (free.size() >= static_cast<size_t>(entry.count))
      leases = try_acquire_all(leases_folder(runs_dir_), free, entry.count, entry.units);
    // What nobody here starts reserves nothing, but what a keeper of its command is about to start.
    if (is_left_to_keeper(entry)) {
      wait_for_devices(entry);
      wait_for(entry, "a process of its command's shell, container or job, which starts it");
      return {};
    }
    if (leases.empty() && (free.empty() || !is_left_to_others(entry))) wait_for_devices(entry);
    return leases;
  }

  /// Runs that wait for the same devices, which are reserved for them.
  struct Waiting {
    std::vector<LeaseDevice> devices;
    std::string holders;  ///< ": held by A (pid 12), B (pid 34)", "" where nobody is known
    const QueueEntry* first = nullptr;
    size_t count = 0;

    bool is_for(const LeaseDevice& wanted) const {
      return std::any_of(devices.begin(), devices.end(), [&](const LeaseDevice& device) {
        return may_share(device, wanted);
      });
    }

    bool is_for_the_same(const std::vector<LeaseDevice>& wanted) const {
      return std::equal(devices.begin(),
                        devices.end(),
                        wanted.begin(),
                        wanted.end(),
                        [](const LeaseDevice& a, const LeaseDevice& b) {
                          return a.name == b.name && a.cores == b.cores;
                        });
    }
  };

  bool is_reserved(const LeaseDevice& device) const {
    return std::any_of(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
      return waiting.is_for(device);
    });
  }

  void wait_for_devices(const QueueEntry& entry) {
    const std::vector<LeaseDevice>& devices = entry.devices;
    const Waiting* ahead = nullptr;  // the first one
    size_t ahead_count = 0;
    for (const Waiting& waiting : waiting_) {
      const auto is_awaited = [&](const LeaseDevice& device) { return waiting.is_for(device); };
      if (std::none_of(devices.begin(), devices.end(), is_awaited)) continue;
      if (!ahead) ahead = &waiting;
      ahead_count += waiting.count;
    }
    const auto same = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& waiting) {
      return waiting.is_for_the_same(devices);
    });
    // Nobody starts on devices that are reserved, so their holders stay the same.
    const std::string holders =
        same == waiting_.end() ? holders_text(entry.host, devices) : same->holders;
    wait_for(entry, devices_text(entry) + holders + ahead_text(entry, ahead, ahead_count));
    if (same == waiting_.end()) {
      waiting_.push_back({devices, holders, &entry, 1});
    } else {
      ++same->count;
    }
  }

  std::string holders_text(const std::string& host, const std::vector<LeaseDevice>& devices) const {
    std::vector<std::string> holders;
    for (const LeaseDevice& device : devices) {
      for (const QueueEntry& holder : running_) {
        const std::vector<std::string> held = split(holder.device, ',');
        const bool is_held = std::find(held.begin(), held.end(), device.name) != held.end();
        const bool is_other =
            std::any_of(holder.devices.begin(), holder.devices.end(), [&](const LeaseDevice& its) {
              return its.name == device.name && !may_share(its, device);
            });
        const bool holds = is_held && !is_other;
        if (holder.host != host || !holds) continue;
        const std::string name = holder.run + " (pid " + std::to_string(holder.supervisor) + ")";
        if (std::find(holders.begin(), holders.end(), name) == holders.end())
          holders.push_back(name);
      }
    }
    return holders.empty() ? "" : ": held by " + join(holders, ", ");
  }

  /// "; C starts first (priority 5)", "; 12 runs start first"
  static std::string ahead_text(const QueueEntry& entry, const Waiting* ahead, size_t count) {
    if (count == 0) return "";
    if (count > 1) return "; " + std::to_string(count) + " runs start first";
    const QueueEntry& first = *ahead->first;
    const std::string text = "; " + first.run + " starts first";
    const bool urgent = first.priority > entry.priority;
    return urgent ? text + " (priority " + std::to_string(first.priority) + ")" : text;
  }

  /// Whether another process, which does not run it, shares the run's lock: who may read the file
  /// can. Who only looks whether it is held does so for an instant.
  static bool is_locked_by_others(const run::RunFolder& folder) {
    try {
      return !folder.is_running() && !FileLock::try_acquire(folder.lock_file());
    } catch (const Error&) {
      return false;  // its supervisor says what is wrong
    }
  }

  /// What the run's command calls a device of its entry.
  static std::optional<std::string> visible_device(const QueueEntry& entry,
                                                   const std::string& name) {
    for (const LeaseDevice& device : entry.devices)
      if (device.name == name && !device.visible.empty()) return device.visible;
    return name;
  }

  /// The cache was emptied since the run was queued.
  static void note_lost_environment(const run::RunFolder& folder) try {
    AppendFile(folder.supervisor_log())
        .append("the environment and limits of the command that queued this run are gone from '" +
                shown_path(user_cache_dir()) + "': it was started in those of another process\n");
  } catch (const Error&) {
    // The supervisor says what is wrong with the file.
  }

  void start(const QueueEntry& waiting,
             const run::RunFolder& folder,
             const std::vector<Lease>& leases) {
    if (is_locked_by_others(folder)) {
      was_refused_ = true;  // whoever has it may only look at it
      return wait_for(waiting, "its file 'lock', which another process has locked");
    }
    run::SupervisorStart supervision;
    std::optional<KeptEnvironment> kept = environment_of(runs_dir_, waiting);
    std::vector<std::string> devices;
    for (const Lease& lease : leases) {
      const std::optional<std::string> visible =
          kept ? visible_device(waiting, lease.device()) : visible_name(lease.device());
      if (!visible) return wait_for(waiting, "a process that sees " + lease.device());
      supervision.leases.push_back(lease.descriptor());
      supervision.devices.push_back(*visible);
      devices.push_back(lease.device());
    }
    supervision.stop_after = last_step_asked(waiting);
    bool lost_environment = false;
    if (kept) {
      supervision.environment = std::move(kept->variables);
      supervision.settings = std::move(kept->settings);
    } else if (waiting.variables) {
      supervision.environment = own_environment_with(*waiting.variables);
      lost_environment = waiting.place == place_;
    }
    QueueEntry entry = waiting;
    entry.supervisor_place =
        supervision.environment ? place_with(*supervision.environment) : place_;
    ++entry.starts;
    entry.device = join(devices, ",");
    entry.attempt = folder.status().attempt;
    try {
      queue_.put(entry);
    } catch (const Error& problem) {
      // Of the queue and not of the run, which is as it was.
      if (problem.exit_code() == ExitCode::storage) return wait_for_room(waiting, problem);
      return wait_for(waiting, problem.message());
    }
    try {
      entry.supervisor = run::start_supervisor(folder, program_, supervision);
    } catch (const run::NoProcess& problem) {
      put_back(waiting);
      return wait_for_process(waiting, problem);
    } catch (const Error& problem) {
      return answer_refusal(waiting, folder, problem);
    }
    if (lost_environment) note_lost_environment(folder);
    count_running(entry);
    done_.started.push_back({entry.run, entry.supervisor, entry.device});
    try {
      queue_.put(entry);
    } catch (const Error&) {
      // A full disk. The process id is only shown.
    }
  }

  /// Of a run whose supervisor did not start.
  void answer_refusal(const QueueEntry& waiting,
                      const run::RunFolder& folder,
                      const Error& problem) {
    const bool is_full =
        problem.exit_code() == ExitCode::storage && room_problem(folder).has_value();
    const bool is_others = is_of_other_user(folder.path()) && !is_impatient(waiting);
    const bool is_locked = is_locked_by_others(folder);
    const bool is_refused = may_pass(problem);
    if (!is_full && !is_others && !is_locked && !is_refused) return fail(waiting, problem);
    put_back(waiting);
    if (is_refused) return wait_for_another_try(waiting, problem);
    if (is_full) return wait_for_room(waiting, problem);
    if (is_locked) return wait_for(waiting, problem.message());
    wait_for(waiting, "its owner, " + owner_name(folder.path()) + ": " + problem.message());
  }

  /// The start does not count.
  void put_back(const QueueEntry& waiting) {
    try {
      queue_.put(waiting);
    } catch (const Error&) {
      // The disk is full, and one start more is on record.
    }
  }

  void fail(const QueueEntry& entry, const Error& problem) {
    try {
      queue_.remove(entry.run);
    } catch (const Error& kept) {
      return wait_for(entry, kept.message());
    }
    record_failure(folder_of(entry), problem.message());
    done_.failed.push_back({entry.run, problem});
    try {
      given_up_.merge(give_up_after(queue_, entry));
    } catch (const Error&) {
      // A full disk: what is left of the command's runs stays in the queue.
    }
  }

  /// A queue may hold thousands, and each is looked at when it might be started.
  static constexpr int most_without_room = 100;

  const fs::path& runs_dir_;
  const fs::path& program_;
  const std::set<std::string>& impatient_;
  Queue queue_;
  const std::string host_;
  const std::string place_ = own_place();
  const std::optional<double> sign_of_life_;
  std::vector<QueueEntry> running_;
  std::map<std::string, int> running_of_group_;
  std::vector<Waiting> waiting_;  ///< in the order of the queue
  /// The first run of each group that waits for another one of it to end.
  std::map<std::string, const QueueEntry*> of_full_groups_;
  /// By the commands that ask for a run: the environment that this process may not give it.
  std::map<std::string, std::optional<KeptEnvironment>> beyond_;
  /// By the places of commands: whether a process there looks after the queue.
  std::map<std::string, bool> is_served_;
  int without_room_ = 0;            ///< runs that wait for room
  std::set<std::string> given_up_;  ///< runs of commands of which one failed
  bool was_refused_ = false;        ///< a run could not be begun, and may be the next time
  DispatchResult done_;
};

}  // namespace

DispatchResult dispatch(const fs::path& runs_dir,
                        const fs::path& program,
                        IfLocked if_locked,
                        const std::set<std::string>& impatient) {
  if (if_locked == IfLocked::wait) {
    DispatchResult done = Dispatcher(runs_dir, program, Queue(runs_dir), impatient).run();
    if (done.needs_keeper) done.keeper = start_keeper(runs_dir, program);
    return done;
  }
  if (auto queue = Queue::try_open(runs_dir))
    return Dispatcher(runs_dir, program, std::move(*queue), impatient).run();
  DispatchResult nothing;
  nothing.queue_was_locked = true;
  return nothing;
}

}  // namespace forge::queue
