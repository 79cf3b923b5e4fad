#include "core/run/supervisor.h"

#include <signal.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include <time.h>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/schema.h"
#include "core/base/staging.h"
#include "core/base/tail.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "core/run/allowed_command.h"
#include "core/run/attempt.h"
#include "core/run/checkpoint_space.h"
#include "core/run/event_log.h"
#include "core/run/group.h"
#include "core/run/host.h"
#include "core/run/inputs_hash.h"
#include "core/run/moved_files.h"
#include "core/run/needed_checkpoints.h"
#include "core/run/open_model.h"
#include "core/run/program_hash.h"
#include "core/run/request.h"
#include "core/run/runs_dir.h"

namespace forge::run {
namespace {

// SIGUSR2 is what a cluster's scheduler can be told to send some time before its SIGTERM.
constexpr std::array<int, 4> stop_signals = {SIGINT, SIGTERM, SIGHUP, SIGUSR2};

// A signal handler can reach nothing but globals.
volatile sig_atomic_t signals_received = 0;

/// A person's second Ctrl-C means more than the first. Other signals may well come in a row, the
/// last one while a checkpoint is being saved.
void count_signal(int signal) {
  if (signal == SIGINT || signals_received == 0) signals_received = signals_received + 1;
}

}  // namespace

struct StopRequests::Handlers {
  std::array<struct sigaction, stop_signals.size()> actions{};
};

StopRequests::StopRequests(fs::path stop_file)
    : stop_file_(std::move(stop_file)), before_(std::make_unique<Handlers>()) {
  signals_received = 0;
  struct sigaction action {};
  action.sa_handler = count_signal;  // without SA_RESTART: a signal ends a wait
  ::sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < stop_signals.size(); ++i) {
    struct sigaction& before = before_->actions[i];
    ::sigaction(stop_signals[i], &action, &before);
    const bool nohup = stop_signals[i] == SIGHUP && before.sa_handler == SIG_IGN;
    if (nohup) ::sigaction(SIGHUP, &before, nullptr);
  }
}

StopRequests::~StopRequests() {
  for (size_t i = 0; i < stop_signals.size(); ++i) {
    ::sigaction(stop_signals[i], &before_->actions[i], nullptr);
  }
}

void sleep_until_signal(double seconds) {
  struct timespec time {};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - static_cast<double>(time.tv_sec)) * 1e9);
  ::nanosleep(&time, nullptr);
}

namespace {

/// What the stop file says; "" where somebody has removed it this moment, or made a folder of that
/// name.
std::string asked_in(const fs::path& stop_file) {
  try {
    return std::string(trim(read_file(stop_file)));
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::optional<StopRequest> StopRequests::requested() {
  if (requested_ == StopRequest::immediately) return requested_;
  const int signals = signals_received;
  if (signals > 0)
    requested_ = signals > 1 ? StopRequest::immediately : StopRequest::after_checkpoint;
  if (path_exists(stop_file_)) {
    // Whatever it says but "now", its presence asks for the gentle stop.
    const std::string asked = asked_in(stop_file_);
    const bool now = asked.substr(0, asked.find(',')) == "now";
    with_all_ = with_all_ || is_stopped_with_all(asked);
    if (now || !requested_)
      requested_ = now ? StopRequest::immediately : StopRequest::after_checkpoint;
  }
  return requested_;
}

namespace {

FileLock take_lock(const RunFolder& folder) {
  folder.require_own_files();
  if (!folder.is_running()) {
    // Old requests. While nobody holds the lock no one can ask this supervisor for a stop.
    remove_tree(folder.stop_file());
    remove_tree(folder.save_file());
    if (auto lock = folder.try_lock()) return std::move(*lock);
  }
  throw Error("run '" + folder.id() + "' is running already",
              "another process holds " + folder.lock_file().string(),
              ExitCode::failed);
}

}  // namespace

RunLock::RunLock(const RunFolder& folder) : folder_(folder), lock_(take_lock(folder)) {}

void RunLock::keep() {
  if (lock_.is_at(folder_.lock_file())) return;
  if (!path_exists(folder_.record_file())) {
    throw Error(
        "the run folder '" + folder_.path().string() + "' was removed while the run went on",
        ExitCode::failed);
  }
  std::optional<FileLock> again = try_lock_signed(folder_.lock_file());
  lost_ = !again;
  if (lost_) {
    throw Error("the file 'lock' of run '" + folder_.id() +
                    "' was removed while the run went on, and another process has taken the run",
                ExitCode::failed);
  }
  lock_ = std::move(*again);
}

namespace {

constexpr size_t stderr_lines = 20;
constexpr size_t stderr_line_bytes = 400;

/// The end of an attempt whose worker could not be started. A limit that is reached, a program that
/// is being written, or forge's own worker that is being installed anew are none of the run's
/// making: all runs that wait would fail of them, one after the other.
AttemptEnd not_started(const Error& problem, bool is_own_worker) {
  AttemptEnd end{RunState::failed, {}, problem.message(), problem.hint()};
  const int cause = problem.cause();
  const bool is_short_of = cause == EAGAIN || cause == ENOMEM || cause == ENFILE;
  end.retryable = cause != 0;
  end.not_started = is_short_of || cause == ETXTBSY || (is_own_worker && cause != 0);
  return end;
}

class Supervisor {
 public:
  Supervisor(const RunFolder& folder,
             RunLock& lock,
             const worker::Backend& backend,
             worker::Launcher& launcher,
             const SupervisorOptions& options)
      : folder_(folder),
        lock_(lock),
        backend_(backend),
        launcher_(launcher),
        options_(options),
        request_(read_request(folder)),
        planned_in_(request_.run_dir),
        initial_checkpoint_(request_.resume_from),
        scorer_(request_, folder.tokenizer_file()),
        log_(folder.events_file()),
        stop_requests_(folder.stop_file()) {
    request_.run_dir = fs::absolute(folder.path()).string();  // wherever it lay
    const nlohmann::json::json_pointer patience("/train/hung_after_seconds");
    if (options_.devices.size() == 1) request_.device = options_.devices[0];
    options_.silence_seconds = request_.experiment.value(patience, options_.silence_seconds);
  }

  AttemptEnd run() {
    const std::vector<double>& waits = options_.retry_waits;
    size_t retried = 0;      // since a worker got further
    size_t not_started = 0;  // since one was started: so often it is tried as it takes
    while (true) {
      const AttemptEnd end = attempt_logging_errors();
      if (end.saved) retried = 0;
      if (!end.not_started) not_started = 0;
      const bool is_left = end.not_started ? !waits.empty() : retried < waits.size();
      const bool retry = end.retryable && is_left && !stop_requests_.requested();
      if (!retry) {
        record_end(end, std::nullopt);
        return end;
      }
      size_t& tried = end.not_started ? not_started : retried;
      const double seconds = waits[std::min(tried++, waits.size() - 1)];
      record_end(end, seconds);
      if (!wait(seconds)) {
        const AttemptEnd stop = stopped("stopped on request while it waited to be tried again");
        record_end(stop, std::nullopt);
        return stop;
      }
    }
  }

 private:
  /// As attempt(); where nothing can be recorded any more, one last try to say so before it throws.
  AttemptEnd attempt_logging_errors() {
    try {
      return attempt();
    } catch (const Error& problem) {
      if (lock_.is_lost()) throw;  // the events are another supervisor's now
      AttemptEnd end{RunState::failed, {}, problem.message(), problem.hint()};
      end.storage = problem.exit_code() == ExitCode::storage;
      if (is_unreadable(problem)) {  // the disk may answer again
        end.retryable = true;
        return end;
      }
      try {
        record_end(end, std::nullopt);
      } catch (const Error&) {
        // The disk is full to the last byte; supervisor.log, or else the missing line, tells.
      }
      throw;
    }
  }

  /// Runs one worker, which resumes from the newest checkpoint.
  AttemptEnd attempt() {
    attempt_ = log_.last_attempt() + ++started_;
    stderr_before_ = folder_.stderr_sizes();
    const FoundCheckpoint checkpoint = folder_.find_checkpoint();
    // A supervisor that did not record a checkpoint may have missed losses before it, too: these
    // steps are trained again. A gap in the losses is only better than damaged checkpoints.
    const bool is_gap = attempt_ > 1 && !checkpoint.recorded && checkpoint.damaged.empty();
    request_.resume_from =
        checkpoint.folder.empty() || is_gap ? initial_checkpoint_ : checkpoint.folder;
    const bool continues_other =
        !initial_checkpoint_.empty() && request_.resume_from == initial_checkpoint_;
    const std::string others = continues_other                ? initial_checkpoint_
                               : request_.resume_from.empty() ? request_.initial_weights
                                                              : "";
    require_there(others);
    if (continues_other) require_own_beginning(folder_, initial_checkpoint_);
    if (continues_other) require_whole_checkpoint(others);
    if (!restore_tokens()) return stopped("stopped on request while its data was prepared anew");
    // Not in request.json: the list is long, and every old run would be slower to read.
    request_.weights.clear();
    request_.stop_after = options_.stop_after;
    const config::Experiment experiment = config::experiment_from_json(request_.experiment);
    if (request_.resume_from.empty() && request_.initial_weights.empty())
      request_.weights = worker::weights_json(experiment.model);
    const RunRecord record = folder_.record();
    const std::string program =
        record.identity.program.empty() ? "" : program_state(experiment.external);
    const InputFiles inputs(experiment.external, request_);  // first: what follows compares them
    require_own_workspace(folder_, record, planned_in_, experiment.external);
    require_same_program(record, experiment);
    require_allowed_command(folder_.id(), record.identity, experiment);  // of what is sent
    check_checkpoint_space(folder_.path(), experiment);
    require_planned_inputs(record, request_);
    require_planned_weights(record, request_, experiment.model);
    remove_tree(folder_.progress_file());  // of the worker before
    scorer_.forget();                      // and what it answered without an evaluation
    const int processes = std::max(1, experiment.parallel.processes.count);
    std::optional<ScratchFolder> meeting_place;
    request_.processes.reset();
    std::unique_ptr<worker::RunningWorker> worker;
    try {
      if (processes > 1) {
        meeting_place.emplace(folder_.meeting_place(), ScratchFolder::Access::own);
        request_.processes = {
            processes,
            "file:" + (meeting_place->path() / "meet").string(),
            experiment.parallel.timeout_seconds,
            options_.devices.size() > 1 ? options_.devices : std::vector<std::string>()};
      }
      GroupOptions group;
      group.clock = options_.clock;
      worker = start_group(launcher_, launches(processes), group);
    } catch (const Error& problem) {
      return not_started(problem, experiment.external.command.empty());
    }
    AttemptStarted started{worker->pid(),
                           host_name(),
                           request_.resume_from,
                           checkpoint.damaged,
                           stderr_before_,
                           stop_after(),
                           schema::name_of(experiment.train.recompute),
                           numerics_variables(),
                           inputs.states()};
    started.devices = options_.devices;
    // Of another host's file times and numbers nothing follows.
    if (const auto killed = unended_attempt(folder_.events_file());
        killed && killed->host == started.host)
      started.changed_inputs = inputs.changed_since(killed->inputs);
    log_.append(started, attempt_);
    const weights::Retention retention{experiment.train.keep_checkpoints,
                                       experiment.train.keep_best,
                                       [this](const fs::path& surplus) {
                                         return is_needed(surplus, folder_.path().parent_path());
                                       }};
    AttemptEnd end = run_attempt({folder_,
                                  record,
                                  lock_,
                                  options_,
                                  attempt_,
                                  retention,
                                  scorer_,
                                  log_,
                                  stop_requests_,
                                  experiment,
                                  request_.evaluation_tokens,
                                  processes,
                                  program,
                                  inputs},
                                 *worker);
    // They may have been removed before the worker had read them.
    const bool names_others = !others.empty() && end.reason.find(others) != std::string::npos;
    if (end.state == RunState::failed && names_others) require_there(others);
    if (end.retryable && end.saved) end.saved = next_begins_elsewhere();
    return end;
  }

  /// Whether what this worker saved is whole, so that the next one begins with it.
  bool next_begins_elsewhere() const {
    try {
      return folder_.find_checkpoint().folder != request_.resume_from;
    } catch (const Error&) {
      return false;  // the next attempt says what is wrong
    }
  }

  /// Of each process of the worker, by rank.
  std::vector<worker::Launch> launches(int processes) const {
    const worker::Launch alone{backend_.command(request_),
                               worker::to_line(request_),
                               folder_.path(),
                               folder_.stderr_file(),
                               /*keep_stdin_open=*/false,
                               options_.leases.empty() ? -1 : options_.leases[0]};
    std::vector<worker::Launch> all = launches_of_group(alone, processes);
    for (int rank = 1; rank < processes; ++rank) {
      worker::Launch& launch = all[static_cast<size_t>(rank)];
      launch.stderr_file = folder_.stderr_file(rank);
      if (options_.leases.size() > 1) launch.inherited = options_.leases.at(size_t(rank));
    }
    return all;
  }

  /// Somebody may have emptied the cache since. False when a stop was requested meanwhile.
  bool restore_tokens() {
    struct Stopped {};
    try {
      request_ = run::restore_tokens(folder_, request_, [&](double, const std::string&) {
        lock_.keep();
        if (stop_requests_.requested()) throw Stopped();
      });
    } catch (const Stopped&) {
      return false;
    }
    return true;
  }

  /// Of a checkpoint of another run, which may have been removed while this one waited, or never
  /// came to the machine that this one was brought to.
  void require_there(const fs::path& checkpoint) const {
    const fs::path other = run_of_checkpoint(checkpoint);
    if (other.empty() || is_folder(checkpoint)) return;
    const std::string id = other.filename().string();
    const std::string then =
        quoted_command("forge runs resume " + shell_quoted(folder_.id())) + " starts this run";
    if (path_exists(other))
      throw Error("checkpoint " + checkpoint.filename().string() + " of run '" + id +
                      "', from which it starts, is gone",
                  "restore '" + shown_path(checkpoint) +
                      "', or ask for the run again with --force: it then starts from the newest "
                      "checkpoint of that run",
                  ExitCode::failed);
    if (is_in_trash(other))
      throw Error("run '" + id + "', from whose weights it starts, was removed",
                  undo_command(other.parent_path()) + " brings it back, " +
                      "'forge runs undo --list' lists what was removed; then " + then,
                  ExitCode::failed);
    const fs::path here = folder_.path().parent_path() / id;
    throw Error("run '" + id + "', from whose weights it starts, is not there: neither '" +
                    shown_path(other) + "' nor '" + shown_path(here) + "'",
                quoted_command("forge pack " + shell_quoted(id) + " --checkpoints") +
                    " packs it where it is, 'forge import FILE' brings it here; then " + then,
                ExitCode::failed);
  }

  static bool is_in_trash(const fs::path& run) {
    const std::vector<fs::path> removals = folder_entries(trash_folder(run.parent_path()));
    return std::any_of(removals.begin(), removals.end(), [&](const fs::path& removal) {
      return path_exists(removal / run.filename());
    });
  }

  /// The command by which the last removal of a runs folder is undone.
  std::string undo_command(const fs::path& runs_dir) const {
    const bool is_here = is_same_path(runs_dir, folder_.path().parent_path());
    const std::string where =
        is_here ? "" : "FORGE_RUNS_DIR=" + shell_quoted(shown_path(runs_dir)) + " ";
    return quoted_command(where + "forge runs undo");
  }

  /// Of another run, which may have been damaged while this one waited.
  void require_whole_checkpoint(const fs::path& checkpoint) const {
    try {
      weights::read_checkpoint_state(checkpoint);
      require_optimizer_state(checkpoint, folder_.record().identity.backend);
    } catch (const Error& problem) {
      throw Error("the checkpoint that the run goes on from cannot be used: " + problem.message(),
                  "begin it again from another run: 'forge run CONFIG --continue RUN --force'",
                  problem.exit_code())
          .with_cause(problem.cause());
    }
  }

  /// False when a stop was requested meanwhile.
  bool wait(double seconds) {
    const double until = options_.clock() + seconds;
    double periodic_task_at = options_.clock();
    while (!stop_requests_.requested()) {
      lock_.keep();
      const double now = options_.clock();
      if (now >= until) return true;
      if (options_.periodic_task && now - periodic_task_at >= options_.periodic_task_seconds) {
        periodic_task_at = now;
        options_.periodic_task();
      }
      options_.sleep(std::min(options_.poll_seconds, until - now));
    }
    return false;
  }

  static AttemptEnd stopped(const std::string& reason) {
    AttemptEnd end;
    end.state = RunState::stopped;
    end.reason = reason;
    return end;
  }

  std::optional<int64_t> stop_after() const {
    return options_.stop_after > 0 ? std::optional<int64_t>(options_.stop_after) : std::nullopt;
  }

  /// `retry_after`: seconds until a fresh worker is started; none: the run has ended.
  void record_end(const AttemptEnd& end, std::optional<double> retry_after) {
    AttemptEnded ended{end.state, end.exit.code, end.exit.signal, end.reason, end.hint};
    ended.rank = end.rank;
    ended.stderr_lines = last_lines(folder_.stderr_file(end.rank),
                                    stderr_before_.of(end.rank),
                                    stderr_lines,
                                    stderr_line_bytes);
    ended.retry = retry_after.has_value();
    ended.wait_seconds = retry_after;
    ended.storage = end.storage;
    ended.diverged = end.diverged;
    ended.busy_elsewhere = end.other_process_load;
    ended.stopped_seconds = end.stopped_seconds;
    ended.changed_inputs = end.changed_inputs;
    ended.stderr_sizes = folder_.stderr_sizes();
    if (end.halved) ended.stop_after = stop_after();
    log_.append(ended, attempt_);
    log_.sync();
  }

  const RunFolder& folder_;
  RunLock& lock_;
  const worker::Backend& backend_;
  worker::Launcher& launcher_;
  SupervisorOptions options_;
  worker::Request request_;
  const std::string planned_in_;  ///< where the run's folder lay
  const std::string
      initial_checkpoint_;  ///< another run's checkpoint that this one goes on from, ""
  Scorer scorer_;
  EventLog log_;
  StopRequests stop_requests_;
  int started_ = 0;
  int attempt_ = 0;
  StderrSizes stderr_before_;  ///< the attempt
};

/// Whether the run is completed its events say: one whose disk is full since then is completed,
/// too.
void write_done(const RunFolder& folder) {
  try {
    write_file_atomic(folder.done_file(), utc_timestamp() + "\n");
  } catch (const Error&) {
    // The disk has no room, or something stands in its place.
  }
}

/// The exit code of a run whose lock is held.
int run_until_done(const RunFolder& folder,
                   RunLock& lock,
                   const worker::Backend& backend,
                   worker::Launcher& launcher,
                   const SupervisorOptions& options) {
  const AttemptEnd end = Supervisor(folder, lock, backend, launcher, options).run();
  // The request stays while this process holds the run, so that who waits for the end of a run that
  // is stopping does not take it for one that goes on. The next supervisor removes it.
  if (end.state == RunState::stopped) return supervised_stopped;
  remove_tree(folder.stop_file());
  if (end.state == RunState::failed) return end.storage ? supervised_storage : supervised_failed;
  write_done(folder);
  remove_marks(folder);  // it begins from nothing any more
  return supervised_completed;
}

}  // namespace

std::vector<double> retry_waits_from_text(const std::string& text) {
  std::vector<double> waits;
  if (trim(text).empty()) return waits;
  for (const std::string& part : split(text, ',')) {
    const std::string number(trim(part));
    char* end = nullptr;
    const double seconds = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != '\0' || !(seconds >= 0 && seconds <= 86400)) {
      throw Error("'" + part + "' is no time to wait before a retry",
                  "seconds, at most a day, such as 2,10,60");
    }
    waits.push_back(seconds);
  }
  return waits;
}

std::vector<double> chosen_retry_waits() {
  const char* const waits = std::getenv("FORGE_RETRY_WAITS");
  return waits ? retry_waits_from_text(waits) : SupervisorOptions().retry_waits;
}

int supervise(const RunFolder& folder,
              const worker::Backend& backend,
              worker::Launcher& launcher,
              const SupervisorOptions& options) {
  RunLock lock(folder);  // first: the starter waits for it, and a long log takes its time
  const auto notify_end = [&](int exit_code) {
    if (options.at_end) options.at_end(exit_code);
    return exit_code;
  };
  int exit_code = supervised_failed;
  try {
    const RunStatus before = folder.status_before_lock();
    folder.require_undamaged(before);
    if (before.state == RunState::completed) {
      write_done(folder);
      return notify_end(supervised_completed);
    }
    exit_code = run_until_done(folder, lock, backend, launcher, options);
  } catch (const Error& problem) {
    notify_end(static_cast<int>(problem.exit_code()));
    throw;
  }
  return notify_end(exit_code);
}

}  // namespace forge::run
