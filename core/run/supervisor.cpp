#include "core/run/supervisor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/run/attempt.h"
#include "core/run/event_log.h"
#include "core/run/host.h"
#include "core/run/stop.h"
#include "core/run/tail.h"

namespace forge::run {
namespace {

constexpr size_t stderr_lines = 20;
constexpr size_t stderr_line_bytes = 400;

FileLock take_lock(const RunFolder& folder) {
  while (true) {
    if (FileLock::is_held(folder.lock_file())) break;
    // Before the lock is taken, nobody can take this run for running and mean it with a stop.
    remove_tree(folder.stop_file());
    remove_tree(folder.save_file());
    if (auto lock = FileLock::try_acquire(folder.lock_file())) return std::move(*lock);
    // Somebody may only be looking whether it is held, which holds it for a moment.
  }
  throw Error("run '" + folder.id() + "' is running already",
              {},
              "another process holds " + folder.lock_file().string(),
              ExitCode::failed);
}

class Supervisor {
 public:
  Supervisor(const RunFolder& folder,
             const Backend& backend,
             Launcher& launcher,
             const SupervisorOptions& options)
      : folder_(folder),
        backend_(backend),
        launcher_(launcher),
        options_(options),
        request_(protocol::request_from_line(read_file(folder.request_file()))),
        beginning_(request_.resume_from),
        examiner_(request_, folder.tokenizer_file()),
        log_(folder.events_file()),
        stop_watch_(folder.stop_file()) {
    const nlohmann::json::json_pointer patience("/train/hung_after_seconds");
    if (!options_.device.empty()) request_.device = options_.device;
    options_.silence_seconds = request_.experiment.value(patience, options_.silence_seconds);
  }

  AttemptEnd run() {
    size_t retried = 0;  // since a worker got further
    while (true) {
      const AttemptEnd end = recorded_attempt();
      if (end.saved) retried = 0;
      const bool retry =
          end.mendable && retried < options_.retry_waits.size() && !stop_watch_.asked();
      if (!retry) {
        record_end(end, std::nullopt);
        return end;
      }
      const double seconds = options_.retry_waits[retried++];
      record_end(end, seconds);
      if (!wait(seconds)) return stopped_while_waiting();
    }
  }

 private:
  /// As attempt(); where nothing can be recorded any more, one last try to say so before it throws.
  AttemptEnd recorded_attempt() {
    try {
      return attempt();
    } catch (const Error& problem) {
      AttemptEnd end{RunState::failed, {}, problem.message(), problem.hint()};
      end.storage = problem.exit_code() == ExitCode::storage;
      try {
        record_end(end, std::nullopt);
      } catch (const Error&) {
        // The disk is full to the last byte; supervisor.log, or else the missing line, tells.
      }
      throw;
    }
  }

  /// One worker, from the newest checkpoint on.
  AttemptEnd attempt() {
    attempt_ = log_.last_attempt() + ++started_;
    const FoundCheckpoint checkpoint = folder_.find_checkpoint();
    request_.resume_from = checkpoint.folder.empty() ? beginning_ : checkpoint.folder;
    remove_tree(folder_.progress_file());  // of the worker before
    examiner_.finish();                    // and what it answered without an evaluation
    std::error_code missing;
    const auto size = fs::file_size(folder_.stderr_file(), missing);
    stderr_begin_ = missing ? 0 : static_cast<int64_t>(size);
    std::unique_ptr<RunningWorker> worker;
    try {
      worker = launcher_.start({backend_.command(request_),
                                protocol::to_line(request_),
                                folder_.path(),
                                folder_.stderr_file(),
                                /*more_input=*/false,
                                options_.lease});
    } catch (const Error& problem) {
      return {RunState::failed, {}, problem.message(), problem.hint()};
    }
    log_.append({{"event", "attempt"},
                 {"pid", worker->pid()},
                 {"host", host_name()},
                 {"resume_from", request_.resume_from},
                 {"damaged", checkpoint.damaged},
                 {"stderr_bytes", stderr_begin_}},
                attempt_);
    return Attempt(folder_, options_, attempt_, *worker, examiner_, log_, stop_watch_).run();
  }

  /// Whether the time went by without a wish to stop.
  bool wait(double seconds) {
    const double until = options_.clock() + seconds;
    double looked_elsewhere = options_.clock();
    while (!stop_watch_.asked()) {
      const double now = options_.clock();
      if (now >= until) return true;
      if (options_.meanwhile && now - looked_elsewhere >= options_.meanwhile_seconds) {
        looked_elsewhere = now;
        options_.meanwhile();
      }
      options_.sleep(std::min(options_.poll_seconds, until - now));
    }
    return false;
  }

  AttemptEnd stopped_while_waiting() {
    AttemptEnd end;
    end.state = RunState::stopped;
    end.reason = "stopped on request while it waited to be tried again";
    record_end(end, std::nullopt);
    return end;
  }

  /// `retry_after`: seconds until a fresh worker is started; none: the run has ended.
  void record_end(const AttemptEnd& end, std::optional<double> retry_after) {
    nlohmann::json ended = {
        {"event", "ended"},
        {"status", name_of(end.state)},
        {"exit_status", end.exit.code},
        {"signal", end.exit.signal},
        {"reason", end.reason},
        {"hint", end.hint},
        {"stderr",
         last_lines(folder_.stderr_file(), stderr_begin_, stderr_lines, stderr_line_bytes)},
        {"retry", retry_after.has_value()}};
    if (retry_after) ended["wait_seconds"] = *retry_after;
    if (end.storage) ended["storage"] = true;
    if (end.busy_elsewhere) ended["busy_elsewhere"] = std::round(*end.busy_elsewhere * 1e4) / 1e4;
    std::error_code missing;
    const auto prose = fs::file_size(folder_.stderr_file(), missing);
    if (!missing) ended["stderr_bytes"] = prose;
    log_.append(std::move(ended), attempt_);
    log_.sync();
  }

  const RunFolder& folder_;
  const Backend& backend_;
  Launcher& launcher_;
  SupervisorOptions options_;
  protocol::Request request_;
  const std::string beginning_;  ///< another run's checkpoint that this one goes on from, ""
  Examiner examiner_;
  EventLog log_;
  StopWatch stop_watch_;
  int started_ = 0;
  int attempt_ = 0;
  int64_t stderr_begin_ = 0;
};

/// The exit code of a run whose lock is held.
int run_to_its_end(const RunFolder& folder,
                   const Backend& backend,
                   Launcher& launcher,
                   const SupervisorOptions& options) {
  const AttemptEnd end = Supervisor(folder, backend, launcher, options).run();
  remove_tree(folder.stop_file());
  if (end.state == RunState::stopped) return supervised_stopped;
  if (end.state == RunState::failed) return end.storage ? supervised_storage : supervised_failed;
  write_file_atomic(folder.done_file(), utc_timestamp() + "\n");
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
                  {},
                  "seconds, at most a day, such as 2,10,60");
    }
    waits.push_back(seconds);
  }
  return waits;
}

int supervise(const RunFolder& folder,
              const Backend& backend,
              Launcher& launcher,
              const SupervisorOptions& options) {
  const bool completed_before = folder.state() == RunState::completed;
  const FileLock lock = take_lock(folder);
  const auto say_end = [&](int exit_code) {
    if (options.at_end) options.at_end(exit_code);
    return exit_code;
  };
  if (completed_before) {
    write_file_atomic(folder.done_file(), utc_timestamp() + "\n");
    return say_end(supervised_completed);
  }
  int exit_code = supervised_failed;
  try {
    exit_code = run_to_its_end(folder, backend, launcher, options);
  } catch (const Error& problem) {
    say_end(static_cast<int>(problem.exit_code()));
    throw;
  }
  return say_end(exit_code);
}

}  // namespace forge::run
