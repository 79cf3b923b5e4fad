#include "core/run/attempt.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/event_order.h"
#include "core/run/group.h"
#include "core/run/halving.h"
#include "core/run/host.h"
#include "core/run/program_hash.h"

namespace forge::run {
namespace {

/// Why the kernel may have sent the signal; "" of one that a program brings on itself.
std::string kill_hint(int signal) {
  if (signal != SIGKILL && signal != SIGXCPU) return "";
  struct rlimit cpu {};
  if (::getrlimit(RLIMIT_CPU, &cpu) == 0 && cpu.rlim_cur != RLIM_INFINITY) {
    return "this shell allows " + std::to_string(cpu.rlim_cur) +
           " seconds of CPU time, and the kernel kills what uses more: 'ulimit -t unlimited' "
           "allows more";
  }
  return signal == SIGKILL ? "the kernel does this where memory runs out: see dmesg" : "";
}

constexpr double machine_seconds = 1;       // between two samples of the machine's load
constexpr double longest_look_seconds = 5;  // beside a poll: events that are recorded, the queue
constexpr double longest_look_share = 0.1;  // of the patience with a silent worker
constexpr double longer = 2;                // than the longest silence that ended
constexpr double first_step_longer = 10;    // than train.hung_after_seconds
constexpr double stop_look_seconds = 0.2;   // between two looks whether the worker is stopped
constexpr double cpu_window_seconds = 10;
constexpr double least_cpu_share = 0.05;  // of one core

/// Replaces the file without syncing it: a lost progress line is no loss, so no error either.
void rewrite_loosely(const fs::path& path, const std::string& content) {
  const fs::path aside = path.string() + ".tmp";
  try {
    write_all(open_own_file(aside, O_WRONLY | O_CREAT | O_TRUNC).get(), content, aside);
    rename_path(aside, path);
  } catch (const Error&) {
    // The next one may succeed.
  }
}

bool same(const worker::Progress& a, const worker::Progress& b) {
  return a.step == b.step && a.phase == b.phase && a.fraction == b.fraction;
}

AttemptEnd verdict_of(const worker::Finished& finished) {
  AttemptEnd end;
  end.state = finished.completed ? RunState::completed : RunState::stopped;
  if (!finished.completed)
    end.reason = "stopped on request after step " + std::to_string(finished.step);
  return end;
}

std::string process_name(int64_t rank) { return "process " + std::to_string(rank); }

AttemptEnd verdict_of(const worker::Failed& failed) {
  AttemptEnd end;
  end.reason = failed.field.empty() ? failed.message : failed.field + ": " + failed.message;
  // What only noticed that another one is gone names itself. A loss that is no number is none of a
  // process: all have the same numbers, as one would.
  if (failed.rank && !failed.lost && !failed.diverged)
    end.reason = process_name(*failed.rank) + ": " + end.reason;
  end.rank = static_cast<int>(failed.rank.value_or(0));
  end.hint = failed.hint;
  end.retryable = failed.retry;
  end.diverged = failed.diverged;
  return end;
}

/// One worker from its start to its exit.
class Attempt {
 public:
  Attempt(const AttemptContext& context, worker::RunningWorker& worker)
      : run_(context),
        worker_(worker),
        checker_(context.experiment.train, context.evaluation_tokens, context.processes),
        looked_at_(context.options.clock()),
        stderr_before_(context.folder.stderr_sizes()) {}

  AttemptEnd run() {
    try {
      return watch();
    } catch (const Error& problem) {
      kill_without_record();
      throw Error(problem.message(),
                  "fix it and start the run again: it resumes from its newest checkpoint",
                  problem.exit_code());
    }
  }

 private:
  AttemptEnd watch() {
    while (true) {
      run_.lock.keep();
      run_.log.require_in_place();
      pass_on_stop();
      pass_on_save();
      count_watched_time();
      count_stopped_time();
      watch_silence();
      run_periodic_task();
      if (machine_load_at_ && run_.options.clock() - *machine_load_at_ >= machine_seconds)
        sample_machine_load();
      run_.log.sync_if_due(run_.options.clock());
      const worker::Output output = worker_.next(run_.options.poll_seconds);
      if (const auto* line = std::get_if<worker::OutputLine>(&output)) on_line(line->text);
      if (const auto* exit = std::get_if<worker::ExitStatus>(&output)) return finish(*exit);
    }
  }

  void on_line(const std::string& line) {
    if (verdict_) return;
    std::optional<worker::Event> event;
    try {
      event = worker::event_from_line(line);
    } catch (const Error& problem) {
      fail("the worker broke the protocol: " + problem.message(), problem.hint());
      return;
    }
    on_event(*event);
  }

  void on_event(const worker::Event& event) {
    if (const auto* hello = std::get_if<worker::Hello>(&event)) on_hello(*hello);
    // Of several processes one may fail before the first has said a word.
    const bool is_of_group = run_.processes > 1 && std::holds_alternative<worker::Failed>(event);
    if (!hello_ && !is_of_group) {
      fail("the worker's first event was '" + std::string(worker::name_of(event)) +
           "' instead of 'hello'");
    }
    if (verdict_) return;
    try {
      checker_.check(event);
    } catch (const Error& problem) {
      fail("the worker broke the protocol: " + problem.message(), problem.hint());
      return;
    }
    if (const auto* progress = std::get_if<worker::Progress>(&event)) {
      on_progress(*progress);
      return;
    }
    reset_silence_timer();
    if (const auto* said = std::get_if<worker::Environment>(&event)) on_environment(*said);
    if (!verdict_ && std::holds_alternative<worker::Started>(event)) require_unchanged_program();
    if (verdict_) return;
    // Starting up is not done again: how long it took says nothing of a step.
    if (std::holds_alternative<worker::Started>(event)) longest_silence_ = 0;
    // Right where training begins, and while the worker that ends still has its times.
    if (std::holds_alternative<worker::Started>(event) ||
        std::holds_alternative<worker::Finished>(event))
      sample_machine_load();
    if (const auto* answers = std::get_if<worker::Answers>(&event)) {
      on_answers(*answers);
      return;
    }
    if (const auto* evaluation = std::get_if<worker::Evaluation>(&event)) {
      worker::Evaluation scored = *evaluation;
      try {
        scored.scores = run_.scorer.finish(evaluation->step);
      } catch (const Error& problem) {
        fail(problem.message(), "each row is answered once before its evaluation");
        return;
      }
      evaluated_ = scored;
      run_.log.append(with_stderr_sizes(scored), run_.number);
      stop_at_limit(evaluation->step);
      return;
    }
    const auto* saved = std::get_if<worker::CheckpointSaved>(&event);
    if (saved) on_checkpoint(*saved);
    if (verdict_) return;
    run_.log.append(saved ? with_conditions(*saved) : worker::to_json(event), run_.number);
    if (const auto* environment = std::get_if<worker::Environment>(&event)) {
      write_environment(*environment);
    } else if (const auto* finished = std::get_if<worker::Finished>(&event)) {
      verdict_ = verdict_of(*finished);
      last_step_ = finished->step;
    } else if (const auto* failed = std::get_if<worker::Failed>(&event)) {
      verdict_ = verdict_of(*failed);
    }
    if (verdict_ || saved) run_.log.sync();
    if (saved) remove_surplus(saved->step);
  }

  /// A worker that knows `stop_after` of its request is about to stop there by itself. Every other
  /// one can be stopped so; it may do some steps more before it saves.
  void stop_at_limit(int64_t step) {
    const int64_t limit = run_.options.stop_after;
    if (limit == 0 || step < limit || step >= run_.experiment.train.max_steps || stop_passed_on_)
      return;
    reached_limit_ = true;
    last_step_ = step;
    stop_passed_on_ = StopRequest::after_checkpoint;
    worker_.request_stop();
  }

  /// After the event is synced: a worker gets ahead of a supervisor that is suspended, and resuming
  /// from what was not recorded would lose the losses before it.
  void remove_surplus(int64_t step) const {
    try {
      weights::remove_surplus_checkpoints(run_.folder.checkpoints(), run_.retention, step);
    } catch (const Error&) {
      // The run needs them gone as little as it needs them; 'forge gc' finds what stays.
    }
  }

  /// The worker's event, with the sizes of the files of its messages.
  nlohmann::json with_stderr_sizes(const worker::Event& event) const {
    nlohmann::json json = worker::to_json(event);
    json.update(to_json(run_.folder.stderr_sizes()));
    return json;
  }

  /// The same with the load so far: nobody tells it of an attempt whose supervisor is killed.
  nlohmann::json with_conditions(const worker::CheckpointSaved& saved) const {
    nlohmann::json json = with_stderr_sizes(saved);
    if (const std::optional<double> load = other_process_load()) json["busy_elsewhere"] = *load;
    if (const std::optional<double> stopped = stopped_seconds()) json["stopped_seconds"] = *stopped;
    return json;
  }

  std::optional<double> other_process_load() const {
    const std::optional<double> load = machine_load_.other_process_load();
    return load ? std::optional(std::round(*load * 1e4) / 1e4) : std::nullopt;
  }

  std::optional<double> stopped_seconds() const {
    return stopped_ > 0 ? std::optional(std::ceil(stopped_ * 10) / 10) : std::nullopt;
  }

  void on_hello(const worker::Hello& hello) {
    hello_ = hello;
    if (hello.protocol != worker::version) {
      fail("the worker speaks version " + std::to_string(hello.protocol) +
               " of the protocol and forge version " + std::to_string(worker::version),
           "build forge and its worker from the same sources");
      return;
    }
    const RunRecord& record = run_.record;
    const auto text = [](const std::string& backend, int numerics) {
      return "'" + backend + "' with numerics version " + std::to_string(numerics);
    };
    require_planned("is",
                    text(hello.backend, hello.numerics_version),
                    text(record.identity.backend, record.identity.numerics_version));
  }

  /// On a CPU the order of sums depends on the number of threads.
  void on_environment(const worker::Environment& environment) {
    const Identity& identity = run_.record.identity;
    const auto text = [](const std::string& device_type, int threads) {
      return device_type == "cpu" ? counted(static_cast<size_t>(threads), "CPU thread")
                                  : device_type;
    };
    require_planned("computes on",
                    text(environment.device_type, environment.threads),
                    text(identity.device_type, identity.threads));
  }

  /// Fails the run where the worker is not what the plan was told.
  void require_planned(const std::string& verb, const std::string& is, const std::string& was) {
    if (is == was) return;
    if (run_.options.forget_descriptions) run_.options.forget_descriptions();
    fail("the worker " + verb + " " + is + ", and the run is one of " + was,
         quoted_command("forge run " + shell_quoted(run_.record.config)) +
             " asks the worker again and makes a run of what it is now");
  }

  /// Its files were compared with the run's identity before it started, and it read them since.
  void require_unchanged_program() {
    if (run_.program_state.empty()) return;
    const std::string hint = "the run's results must be those of the program in its identity";
    try {
      if (program_state(run_.experiment.external) == run_.program_state) return;
      fail("the files of the command '" + join(run_.experiment.external.command, " ") +
               "' were changed while the worker started",
           hint);
    } catch (const Error& problem) {
      fail(problem.message(), hint);
    }
    verdict_->retryable = true;
  }

  void on_answers(const worker::Answers& answers) {
    try {
      run_.scorer.add(answers);
    } catch (const Error& problem) {
      fail(problem.message(), problem.hint());
    }
  }

  /// What is acknowledged must be found again: under its name, with a manifest.
  void on_checkpoint(const worker::CheckpointSaved& saved) {
    const std::string name = weights::checkpoint_name(saved.step);
    if (saved.path != "checkpoints/" + name) {
      fail("the worker broke the protocol: it saved the checkpoint of step " +
               std::to_string(saved.step) + " as '" + saved.path.substr(0, 120) + "'",
           "it belongs into checkpoints/" + name);
      return;
    }
    weights::CheckpointState state;
    state.step = saved.step;
    state.identity = run_.record.key;
    if (evaluated_ && evaluated_->step == saved.step) state.eval_loss = evaluated_->loss;
    try {
      weights::acknowledge_checkpoint(run_.folder.checkpoints() / name, state);
      saved_ = true;
    } catch (const Error& problem) {
      const std::string hint = problem.hint().empty() ? "" : "; " + problem.hint();
      fail("the worker's checkpoint of step " + std::to_string(saved.step) +
               " cannot be kept: " + problem.message(),
           "the run keeps those before it" + hint);
      verdict_->storage = problem.exit_code() == ExitCode::storage;
    }
  }

  void on_progress(const worker::Progress& progress) {
    if (!progress_ || !same(*progress_, progress)) reset_silence_timer();
    stepped_ = stepped_ || (progress_ && progress.step > progress_->step);
    progress_ = progress;
    const double now = run_.options.clock();
    if (now - progress_written_ < run_.options.progress_seconds) return;
    progress_written_ = now;
    rewrite_loosely(run_.folder.progress_file(),
                    worker::to_line(stamped(worker::to_json(progress), run_.number)) + "\n");
  }

  void write_environment(const worker::Environment& environment) const {
    nlohmann::json json = worker::to_json(environment);
    json.update(worker::to_json(*hello_));
    json.erase("event");
    json["host"] = host_name();
    json["variables"] = numerics_variables();
    json["revision"] = run_.record.revision;
    json["attempt"] = run_.number;
    write_file_atomic(run_.folder.environment_file(), json_text(json, 2) + "\n");
  }

  void pass_on_stop() {
    const std::optional<StopRequest> asked = run_.stop_requests.requested();
    if (!asked || asked == stop_passed_on_) return;
    stop_passed_on_ = asked;
    tell_stop(*asked);
    if (asked == StopRequest::after_checkpoint) {
      worker_.request_stop();
    } else {
      worker_.kill();
      killed_ = true;
    }
  }

  /// Where a signal asked for it: who asks for the run now waits until it has stopped.
  void tell_stop(StopRequest asked) {
    try {
      if (!path_exists(run_.folder.stop_file())) run_.folder.request_stop(asked);
    } catch (const Error&) {
      // On a full disk they take it for a run that goes on.
    }
  }

  /// Only once it is known that the worker listens: the signal ends any other.
  void pass_on_save() {
    if (!hello_ || !path_exists(run_.folder.save_file())) return;
    if (hello_->saves_on_request && !verdict_ && !stop_passed_on_) worker_.request_checkpoint();
    remove_tree(run_.folder.save_file());
  }

  void run_periodic_task() {
    const double now = run_.options.clock();
    if (!run_.options.periodic_task || now - periodic_task_at_ < run_.options.periodic_task_seconds)
      return;
    periodic_task_at_ = now;
    run_.options.periodic_task();
  }

  void sample_machine_load() {
    machine_load_at_ = run_.options.clock();
    std::vector<int> pids;
    for (const worker::Member& member : worker_.members()) {
      if (!member.exit) pids.push_back(member.pid);
    }
    machine_load_.sample(pids.empty() ? std::vector<int>{worker_.pid()} : pids);
  }

  /// Time that passed while this process did not look is no silence: it was suspended, and the
  /// worker most likely with it.
  void count_watched_time() {
    const double now = run_.options.clock();
    watched_ += std::min(now - looked_at_, longest_look());
    looked_at_ = now;
  }

  double longest_look() const {
    return run_.options.poll_seconds +
           std::min(longest_look_seconds, longest_look_share * run_.options.silence_seconds);
  }

  /// While training: the worker's clock goes on, and its speed is not that of its work. A scheduler
  /// stops this process, too.
  void count_stopped_time() {
    const double now = run_.options.clock(), seconds = now - stop_looked_at_;
    if (seconds < stop_look_seconds) return;
    stop_looked_at_ = now;
    const int continued = continued_so_far();
    const bool both_were = continued > std::exchange(continued_, continued);
    if (!machine_load_at_ || verdict_) return;
    if (is_worker_stopped()) {
      stopped_ += seconds;
    } else if (both_were) {
      stopped_ += std::max(0.0, seconds - longest_look());
    }
  }

  bool is_worker_stopped() const {
    const std::vector<worker::Member> members = worker_.members();
    if (members.empty()) return is_stopped(process_state(worker_.pid()));
    return std::any_of(members.begin(), members.end(), [](const worker::Member& member) {
      return !member.exit && is_stopped(process_state(member.pid));
    });
  }

  void watch_silence() {
    const double quiet_seconds = watched_ - last_sign_;
    if (verdict_) {
      if (killed_ || quiet_seconds < run_.options.exit_grace_seconds) return;
      worker_.kill();  // it has said its last word and does not leave
      killed_ = true;
      overstayed_ = true;
    } else if (quiet_seconds >= patience() && !computes_first_step(quiet_seconds)) {
      end_silence(quiet_seconds);
    }
  }

  void end_silence(double quiet_seconds) {
    const std::string key = "train.hung_after_seconds";
    std::string hint = "where a step may take so long, raise " + key + " (now " +
                       std::to_string(std::llround(run_.options.silence_seconds)) + ")";
    if (run_.folder.stderr_sizes().of(0) > stderr_before_.of(0))
      hint = "see " + run_.folder.stderr_file().string() + "; " + hint;
    std::string silence = " made no progress for " + human_duration(quiet_seconds);
    if (patience() > run_.options.silence_seconds)
      silence += ", twice as long as ever before (" + human_duration(longest_silence_) + ")";
    const std::vector<worker::Member> members = worker_.members();
    if (members.empty()) return fail("the worker" + silence + " and was killed", hint);
    const Suspicion suspicion = suspicion_of(members);
    fail(process_name(0) + silence + ", and all " + std::to_string(members.size()) +
             " were killed: " + suspicion.text,
         hint);
    verdict_->retryable = suspicion.is_outside;
  }

  /// A slow model's steps are slow all along: the longest silence that ended shows what is normal.
  double patience() const {
    return std::max(run_.options.silence_seconds, longer * longest_silence_);
  }

  /// Before the first step no silence has shown how long one takes: a worker that computes gets
  /// more time, from one look at its CPU time to the next.
  bool computes_first_step(double quiet_seconds) {
    if (stepped_ || quiet_seconds >= first_step_longer * run_.options.silence_seconds) return false;
    const std::optional<double> used = run_.options.cpu_seconds(worker_.pid());
    if (!used) return false;
    const double window = watched_ - cpu_asked_at_;
    if (cpu_used_ && window < cpu_window_seconds) return true;
    const bool computed = !cpu_used_ || *used - *cpu_used_ >= least_cpu_share * window;
    cpu_used_ = used;
    cpu_asked_at_ = watched_;
    return computed;
  }

  void fail(std::string reason, std::string hint = "") {
    verdict_ = AttemptEnd{};
    verdict_->reason = std::move(reason);
    verdict_->hint = std::move(hint);
    worker_.kill();
    killed_ = true;
  }

  AttemptEnd finish(const worker::ExitStatus& exit) const {
    AttemptEnd end;
    if (verdict_) {
      // A crash in a library's clean-up after the last word changes no number.
      end = *verdict_;
      if (overstayed_) {
        const std::string stayed = "the worker did not exit within " +
                                   human_duration(run_.options.exit_grace_seconds) +
                                   " after its last event and was killed";
        end.reason += (end.reason.empty() ? "" : "; ") + stayed;
      }
    } else if (stop_passed_on_) {
      end.state = RunState::stopped;
      end.reason = "stopped on request before it could save";
    } else if (exit.signal != 0) {
      end.reason = name_of(exit) + " was killed by " + exit.describe();
      end.hint = kill_hint(exit.signal);
      end.retryable = true;
      end.rank = exit.rank;
    } else {
      end.reason = name_of(exit) + " exited without a final event, with " + exit.describe();
      end.hint = "see " + run_.folder.stderr_file(exit.rank).string();
      end.rank = exit.rank;
    }
    if (reached_limit_ && end.state == RunState::stopped && !run_.stop_requests.requested()) {
      end.halved = true;
      end.reason = halved_text(last_step_, run_.experiment.train.max_steps);
    }
    if (end.state == RunState::stopped && !end.halved && run_.stop_requests.are_for_all())
      end.reason += with_all_text;
    end.exit = exit;
    end.saved = saved_;
    end.other_process_load = other_process_load();
    end.stopped_seconds = stopped_seconds();
    end.changed_inputs = run_.inputs.changed();
    if (end.state == RunState::failed && exit.code == worker::exit_storage) end.storage = true;
    return end;
  }

  std::string name_of(const worker::ExitStatus& exit) const {
    return run_.processes == 1 ? "the worker" : process_name(exit.rank);
  }

  /// Events can no longer be recorded. The worker is killed, because no attempt may resume from a
  /// checkpoint that it saves after a gap in the record.
  void kill_without_record() {
    worker_.kill();
    while (!std::holds_alternative<worker::ExitStatus>(worker_.next(run_.options.poll_seconds))) {
    }
  }

  void reset_silence_timer() {
    count_watched_time();
    longest_silence_ = std::max(longest_silence_, watched_ - last_sign_);
    last_sign_ = watched_;
  }

  const AttemptContext& run_;
  worker::RunningWorker& worker_;
  EventChecker checker_;

  std::optional<worker::Hello> hello_;
  std::optional<worker::Progress> progress_;
  std::optional<worker::Evaluation> evaluated_;  ///< the last one
  double progress_written_ = -1e9;
  double watched_ = 0;                  ///< seconds that this process has followed the worker
  double looked_at_;                    ///< by the clock, when it last did
  double stop_looked_at_ = looked_at_;  ///< whether the worker is stopped
  int continued_ = continued_so_far();
  double stopped_ = 0;          ///< seconds of training that the worker was stopped
  double last_sign_ = 0;        ///< of life, in watched seconds
  double longest_silence_ = 0;  ///< that ended since training began
  StderrSizes stderr_before_;   ///< when the worker began
  bool stepped_ = false;
  std::optional<double> cpu_used_;  ///< by the worker when it was last asked, at cpu_asked_at_
  double cpu_asked_at_ = 0;
  double periodic_task_at_ = -1e9;
  std::optional<StopRequest> stop_passed_on_;
  bool reached_limit_ = false;         ///< SupervisorOptions::stop_after
  int64_t last_step_ = 0;              ///< of the last evaluation, or where the worker finished
  std::optional<AttemptEnd> verdict_;  ///< once it is known; later lines of the worker are ignored
  bool killed_ = false;
  bool overstayed_ = false;   ///< was killed because it stayed after its last event
  bool saved_ = false;        ///< a checkpoint
  MachineLoad machine_load_;  ///< since training began
  std::optional<double> machine_load_at_;
};

}  // namespace

AttemptEnd run_attempt(const AttemptContext& context, worker::RunningWorker& worker) {
  return Attempt(context, worker).run();
}

}  // namespace forge::run
