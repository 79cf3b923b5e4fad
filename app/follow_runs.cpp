#include "app/follow_runs.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "app/run_view.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/manage/run_log.h"
#include "core/run/event_log.h"
#include "core/run/input_files.h"
#include "core/run/queue/dispatch.h"
#include "core/run/queue/owners.h"
#include "core/run/queue/withdraw.h"
#include "core/run/start.h"
#include "core/run/supervisor.h"

namespace forge::app {
namespace {

constexpr auto follow_poll_interval = std::chrono::milliseconds(100);
constexpr double dispatch_seconds = 0.5;
constexpr double idle_share = 20;  ///< so many times as long as a dispatch took none is done

/// What is wrong with the checkpoints that an attempt skipped.
std::vector<std::string> skipped_checkpoints(const run::StoredEvent& stored) {
  if (stored.name != "attempt" || !stored.json.contains("damaged")) return {};
  return stored.json.at("damaged").get<std::vector<std::string>>();
}

/// A warning for an event: memory ran out, the worker is restarted, its files changed.
std::string warning_text(const run::StoredEvent& stored) {
  const bool tried_again =
      stored.name == "ended" && stored.json.value("retry", nlohmann::json()) == true;
  if (tried_again || stored.name == "micro_batch") return manage::event_text(stored);
  const std::vector<std::string> changed = stored.ended     ? stored.ended->changed_inputs
                                           : stored.started ? stored.started->changed_inputs
                                                            : std::vector<std::string>();
  return changed.empty() ? "" : run::changed_inputs_text(join(changed, ", "));
}

/// A run while it is followed.
struct Followed {
  explicit Followed(const PendingRun& pending)
      : run(pending),
        follower(pending.planned.folder),
        line(pending.label),
        attempt_before(pending.planned.attempt) {}

  const PendingRun& run;
  run::Follower follower;
  RunView view;
  ProgressLine line;
  int attempt_before;  ///< it may have begun and ended since the run was planned
  int supervisor = 0;  ///< process id, if it is our child
  bool announced = false;
  bool running = false;
  bool reported = false;  ///< its end
  int stops_asked = 0;    ///< by so many times Ctrl-C
  std::string stopped;    ///< what was said last about processes of it that are stopped
  std::optional<double> ended_since = {};  ///< when its log told the end; none: it has not, or that
                                           ///< its supervisor is held up was said
  std::optional<Outcome> outcome;
};

class RunFollower {
 public:
  RunFollower(const Context& context,
              const std::vector<PendingRun>& runs,
              std::set<std::string>& own,
              const Interrupts& interrupts,
              const std::function<void()>& at_end,
              const QueueOptions& queue,
              RunSource* source)
      : context_(context),
        runs_dir_(context.runs_dir()),
        own_(own),
        at_end_(at_end),
        interrupts_(interrupts),
        queue_(queue),
        source_(source),
        together_(std::to_string(source ? source->size() : runs.size()) + " runs"),
        live_(is_terminal(STDERR_FILENO) && (source ? source->size() : runs.size()) > 1) {
    for (const PendingRun& run : runs) add(run);
  }

  std::vector<EndedRun> run() {
    answer_interrupts();  // that came before anything was started
    while (true) {
      dispatch_queue();
      for (size_t i = 0; i < followed_.size(); ++i) update(i);
      follow_more();
      ask_again();
      if (ended_ == followed_.size()) break;
      if (detach_requested()) {
        is_detached_ = true;
        leave_runs(true);
      }
      answer_interrupts();
      if (withdrawing_since_) withdraw_queued();
      if (take_save_request()) request_saves();
      warn_of_stopped();
      show();
      std::this_thread::sleep_for(follow_poll_interval);
    }
    together_.clear();
    std::vector<EndedRun> ended;
    for (const auto& followed : followed_) ended.push_back({followed->run, *followed->outcome});
    return ended;
  }

 private:
  void add(const PendingRun& run) {
    runs_.push_back(run);
    followed_.push_back(std::make_unique<Followed>(runs_.back()));
    // It was not queued, and fails alone.
    if (const std::optional<Error> problem = refusal(run)) fail(*followed_.back(), *problem);
  }

  static void fail(Followed& followed, const Error& problem) {
    run::RunStatus& status = followed.outcome.emplace().status;
    status.state = run::RunState::failed;
    status.reason = problem.message();
    status.hint = problem.hint();
    status.storage = problem.exit_code() == ExitCode::storage;
  }

  Following following() const {
    Following now;
    for (const auto& followed : followed_) {
      if (followed->outcome) continue;
      ++(followed->running ? now.running : now.waiting);
    }
    return now;
  }

  bool has_failure() const {
    return std::any_of(followed_.begin(), followed_.end(), [](const auto& followed) {
      return followed->outcome && followed->outcome->status.state == run::RunState::failed;
    });
  }

  void follow_more() {
    if (!source_ || is_detached_ || interrupts_.count() > 0) return;
    if (queue_.fail_fast && has_failure()) return;
    const std::vector<PendingRun> more = source_->next(following());
    if (more.empty()) return;
    ask_for(more);
    for (const PendingRun& run : more) add(run);
  }

  /// Of them this command asks for some from now on; false: for none.
  bool ask_for(const std::vector<PendingRun>& runs) {
    const std::set<std::string> own = enqueue(context_, runs, queue_, interrupts_);
    own_.insert(own.begin(), own.end());
    dispatch_at_ = 0;
    return !own.empty();
  }

  /// For runs that wait by another user's word. Where their forge has left, they are started for
  /// this command.
  void ask_again() {
    constexpr double interval = 5;  // seconds
    const double now = steady_seconds();
    if (is_detached_ || interrupts_.count() > 0 || withdrawing_since_ || now < ask_again_at_)
      return;
    ask_again_at_ = now + interval;
    std::vector<PendingRun> theirs;
    for (const auto& followed : followed_) {
      const std::string& id = followed->run.planned.record.id;
      if (!followed->outcome && !followed->running && !is_own(*followed) &&
          queue::is_queued_by_other_user(runs_dir_, id))
        theirs.push_back(followed->run);
    }
    if (theirs.empty() || FileLock::is_held(queue::lock_file(runs_dir_))) return;
    ask_for(theirs);
  }

  void dispatch_queue() {
    const double now = steady_seconds();
    if (now < dispatch_at_) return;
    const queue::DispatchResult done =
        queue::dispatch(runs_dir_, context_.program(), queue::IfLocked::skip, own_);
    // Looking at a queue of ten thousands takes a while, and the cores are for training.
    const double looked_seconds = done.started.empty() ? steady_seconds() - now : 0;
    dispatch_at_ = now + std::max(dispatch_seconds, idle_share * looked_seconds);
    if (done.queue_was_locked) return wait_for_queue(now);
    queue_locked_since_.reset();
    for (const queue::StartedRun& started : done.started) {
      if (Followed* followed = find(started.run)) {
        if (followed->supervisor != 0)
          print_line(*followed, followed->run.label + ": its supervisor was killed, restarting it");
        followed->supervisor = started.supervisor;
        announce(*followed);
      }
    }
    waiting_ = done.waiting;
    for (const queue::NotStarted& failed : done.failed) {
      Followed* followed = find(failed.run);
      if (!followed) continue;
      fail(*followed, failed.problem);
      // Those behind it would find no room either.
      if (followed->outcome->status.storage) begin_to_withdraw();
    }
  }

  /// Another process has locked the queue. It usually does so for a moment.
  void wait_for_queue(double now) {
    constexpr double moment = 5;  // seconds
    if (!queue_locked_since_) queue_locked_since_ = now;
    if (now - *queue_locked_since_ < moment) return;
    for (const auto& followed : followed_)
      waiting_[followed->run.planned.record.id] = "the queue, which another process has locked";
  }

  Followed* find(const std::string& run) {
    for (const auto& followed : followed_) {
      if (followed->run.planned.record.id == run && !followed->reported) return followed.get();
    }
    return nullptr;
  }

  /// A line that stays.
  void print_line(Followed& followed, const std::string& text) {
    (live_ ? together_ : followed.line).print_line(text);
  }

  void announce(Followed& followed) {
    if (!followed.announced && !followed.run.what.empty())
      print_line(followed, followed.run.label + ": " + followed.run.what);
    followed.announced = true;
  }

  void update(size_t index) {
    Followed& followed = *followed_[index];
    if (followed.reported || is_waiting(followed)) return;
    if (!followed.outcome) {
      follow(followed);
      if (!followed.outcome) return;
    }
    followed.reported = true;
    followed.line.clear();
    ++ended_;
    dispatch_at_ = 0;
    at_end_();
    if (source_) source_->on_end(index, *followed.outcome);
  }

  /// Whether it was in the queue at the last dispatch, and nobody ran it: its files are as they
  /// were, and there may be thousands.
  bool is_waiting(const Followed& followed) const {
    return !followed.outcome && !followed.running && !queue_locked_since_ &&
           waiting_.count(followed.run.planned.record.id) > 0;
  }

  void follow(Followed& followed) {
    // Poll before asking the queue: a run leaves the queue before it releases its lock.
    const run::Update update = followed.follower.poll();
    for (const run::StoredEvent& stored : update.events) {
      if (stored.event) followed.view.take(*stored.event, stored.time);
      if (stored.ended) followed.ended_since = steady_seconds();
      if (stored.started) followed.ended_since.reset();
      for (const std::string& problem : skipped_checkpoints(stored))
        print_line(
            followed,
            "warning: " + followed.run.label + ": " + problem + "; using the checkpoint before it");
      const std::string notice = warning_text(stored);
      if (!notice.empty() && stored.attempt > followed.attempt_before)
        print_line(followed, "warning: " + followed.run.label + ": " + tables::printable(notice));
    }
    if (update.progress) followed.view.take(*update.progress, unix_time());
    followed.running = !update.over;
    if (followed.running) announce(followed);
    if (followed.running) tell_if_held_up(followed);
    if (!update.over || queue::is_queued(runs_dir_, followed.run.planned.record.id)) return;
    Outcome outcome = read_outcome(followed);
    if (!asks_for_rest(followed, outcome)) followed.outcome = std::move(outcome);
  }

  /// Whether the run goes on. Another user's search has stopped it before the step up to which it
  /// was asked for here: this command asks for the rest, unless that one has just sent it on.
  bool asks_for_rest(Followed& followed, const Outcome& outcome) {
    if (!outcome.status.halved || followed.run.stop_after != 0 || is_own(followed) ||
        is_detached_ || interrupts_.count() > 0)
      return false;
    const run::RunFolder& folder = followed.run.planned.folder;
    if (!ask_for({followed.run}))
      return queue::is_queued(runs_dir_, folder.id()) || folder.is_running();
    print_line(followed,
               followed.run.label + ": another user's search left it (" +
                   tables::printable(outcome.status.reason) + "), and it goes on for this command");
    return true;
  }

  /// Of a run that has ended and cannot leave the queue.
  void tell_if_held_up(Followed& followed) {
    constexpr double moment = 5;  // seconds
    const bool is_long = followed.ended_since && steady_seconds() - *followed.ended_since > moment;
    if (!is_long) return;
    const fs::path lock = queue::lock_file(runs_dir_);
    if (!FileLock::is_held(lock)) return;
    followed.ended_since.reset();
    print_line(followed,
               followed.run.label +
                   ": it has ended, and waits for the queue, which another process has locked; " +
                   quoted_command("fuser -v " + shell_quoted(lock.string())) +
                   " tells which, if it is on this machine");
  }

  static Outcome read_outcome(const Followed& followed) {
    const run::RunFolder& folder = followed.run.planned.folder;
    Outcome outcome{folder.patient_status()};
    if (followed.supervisor != 0) {
      // On a completely full disk only the exit code can report it.
      constexpr double patience = 5;  // seconds, while it starts what is next
      const std::optional<int> code = run::wait_for_supervisor(followed.supervisor, patience);
      if (code == run::supervised_storage) outcome.status.storage = true;
      const bool ended_well =
          !code || *code == run::supervised_completed || *code == run::supervised_stopped;
      if (!ended_well && outcome.status.attempt == followed.attempt_before) {
        // It failed before it could record anything.
        outcome.status.state = run::RunState::failed;
        outcome.status.halved = false;
        outcome.status.reason = run::supervisor_error(folder);
        outcome.status.hint.clear();
      }
    }
    const bool started = followed.supervisor != 0 || followed.announced ||
                         outcome.status.state == run::RunState::completed ||
                         outcome.status.attempt > followed.attempt_before;
    if (!started) outcome.ending = Ending::not_started;
    return outcome;
  }

  bool is_own(const Followed& followed) const {
    return own_.count(followed.run.planned.record.id) > 0;
  }

  void begin_to_withdraw() {
    if (!withdrawing_since_) withdrawing_since_ = steady_seconds();
    withdraw_queued();
  }

  /// Takes what waits of this command out of the queue. Where another process keeps the queue
  /// locked, it is tried again while a run is active; then the rest stays there.
  void withdraw_queued() {
    std::optional<queue::Queue> queue = queue::Queue::try_open(runs_dir_);
    if (!queue) return leave_locked();
    withdrawing_since_.reset();
    std::vector<std::string> runs;
    queue::MadeRuns made;
    for (const auto& followed : followed_) {
      const bool is_left = followed->outcome && followed->outcome->ending == Ending::left;
      if ((followed->outcome && !is_left) || !is_own(*followed)) continue;
      runs.push_back(followed->run.planned.record.id);
      if (!followed->run.made.empty()) made[runs.back()] = followed->run.made;
    }
    queue::cancel_queued(*queue, runs, made, queue_.group.name);
    stop_active(&*queue);  // those that another process has started meanwhile
    // What cannot be withdrawn would be waited for without end.
    for (const auto& followed : followed_) {
      const run::RunFolder& folder = followed->run.planned.folder;
      if (!followed->outcome && queue->holds(folder.id()) && !folder.is_running()) leave(*followed);
    }
  }

  void leave_locked() {
    if (steady_seconds() - *withdrawing_since_ < lock_patience) return;
    if (following().running == 0) leave_runs(true);
  }

  /// Follows them no longer: all, or those of other commands.
  void leave_runs(bool own_too) {
    for (const auto& followed : followed_) {
      if (followed->outcome || (is_own(*followed) && !own_too)) continue;
      leave(*followed);
    }
  }

  void leave(Followed& followed) const {
    const run::RunFolder& folder = followed.run.planned.folder;
    const bool goes_on = folder.is_running() || queue::is_queued(runs_dir_, folder.id());
    followed.outcome = Outcome{{}, Ending::left};
    try {
      // One that was withdrawn, or has ended this moment, is left nowhere.
      followed.outcome = goes_on ? Outcome{folder.status(), Ending::left} : read_outcome(followed);
    } catch (const Error&) {
      // Another user's files, which this one may not read.
    }
  }

  void answer_interrupts() {
    if (interrupts_.count() <= answered_) return;
    answered_ = interrupts_.count();
    leave_runs(false);
    {  // first: the queue may be locked for a while
      std::optional<queue::Queue> queue = queue::Queue::try_open(runs_dir_, moment_seconds);
      stop_active(queue ? &*queue : nullptr);
    }
    begin_to_withdraw();
    constexpr int last = 3;  // one asks to save and stop, and one to stop at once
    if (answered_ >= last) leave_runs(true);
  }

  void request_saves() {
    for (const auto& followed : followed_) {
      const run::RunFolder& folder = followed->run.planned.folder;
      if (followed->outcome || !is_own(*followed) || !folder.is_running()) continue;
      folder.request_save();
      print_line(*followed, "asking " + followed->run.label + " for a checkpoint; it goes on");
    }
  }

  void warn_of_stopped() {
    constexpr double interval = 1;  // seconds
    const double now = steady_seconds();
    if (now < look_for_stopped_at_) return;
    look_for_stopped_at_ = now + interval;
    for (const auto& followed : followed_) {
      if (followed->outcome || !followed->running) continue;
      const std::string text = followed->run.planned.folder.stopped_processes().text();
      if (!text.empty() && text != followed->stopped)
        print_line(*followed, "warning: " + followed->run.label + " waits: " + text);
      followed->stopped = text;
    }
  }

  /// `queue`: locked by this process; null where another one has it locked.
  void stop_active(queue::Queue* queue) {
    for (const auto& followed : followed_) {
      if (followed->outcome || followed->stops_asked == answered_) continue;
      if (!followed->run.planned.folder.is_running()) continue;
      const std::string& id = followed->run.planned.record.id;
      const std::string& group = queue_.group.name;
      // Of two commands that are interrupted at once the second one stops it.
      const bool is_left_to_others = queue ? queue->leave_to_others(id, group)
                                           : queue::is_asked_by_others(runs_dir_, id, group);
      if (is_left_to_others) {
        print_line(*followed, followed->run.label + ": another command asks for it, so it goes on");
        leave(*followed);
        continue;
      }
      followed->stops_asked = answered_;
      try {
        followed->run.planned.folder.request_stop(
            answered_ == 1 ? run::StopRequest::after_checkpoint : run::StopRequest::immediately);
      } catch (const Error& problem) {
        print_line(*followed, "warning: " + followed->run.label + ": " + problem.message());
        leave(*followed);
        continue;
      }
      print_line(*followed,
                 answered_ == 1 ? "stopping " + followed->run.label +
                                      " after saving a checkpoint; Ctrl-C again stops it now"
                                : "stopping " + followed->run.label + " now");
    }
  }

  /// The first run that waits, while none runs.
  Followed* first_waiting() {
    Followed* first = nullptr;
    for (const auto& followed : followed_) {
      if (followed->outcome) continue;
      if (followed->running) return nullptr;
      if (!first && waiting_.count(followed->run.planned.record.id) > 0) first = followed.get();
    }
    return first;
  }

  /// A live line on a terminal, elsewhere a line whenever it waits for something else.
  void show_waiting(Followed& followed) {
    const std::string what =
        "waiting for " + tables::printable(waiting_.at(followed.run.planned.record.id));
    if (what != waiting_said_) (live_ ? together_ : followed.line).show_status(what);
    waiting_said_ = what;
  }

  void show() {
    if (Followed* waiting = first_waiting()) return show_waiting(*waiting);
    waiting_said_.clear();
    double done = 0;
    std::vector<std::string> parts = {std::to_string(ended_) + " done"};
    for (const auto& followed : followed_) {
      done += followed->outcome ? 1 : followed->view.fraction();
      if (followed->outcome || !followed->running || !followed->view.started()) continue;
      if (!live_) followed->line.show(followed->view.fraction(), followed->view.text());
      parts.push_back(followed->run.label + " " + followed->view.short_text());
    }
    if (live_) together_.show(done / double(followed_.size()), join(parts, " · "));
  }

  static constexpr double moment_seconds = 0.2;

  const Context& context_;
  const std::filesystem::path runs_dir_;
  std::set<std::string>& own_;
  const std::function<void()>& at_end_;
  const Interrupts& interrupts_;
  const QueueOptions& queue_;
  RunSource* const source_;
  std::deque<PendingRun> runs_;  ///< in the order of followed_, which refers to them
  std::vector<std::unique_ptr<Followed>> followed_;
  std::map<std::string, std::string> waiting_;  ///< what queued runs wait for
  std::string waiting_said_;                    ///< the last line about that
  ProgressLine together_;  ///< on a terminal, of several runs: one line for all
  const bool live_;
  size_t ended_ = 0;
  bool is_detached_ = false;
  int answered_ = 0;
  double dispatch_at_ = 0;
  double ask_again_at_ = 0;
  double look_for_stopped_at_ = 0;
  std::optional<double> withdrawing_since_;
  std::optional<double> queue_locked_since_;
};

}  // namespace

std::vector<EndedRun> follow_runs(const Context& context,
                                  const std::vector<PendingRun>& runs,
                                  std::set<std::string>& own,
                                  const Interrupts& interrupts,
                                  const std::function<void()>& at_end,
                                  const QueueOptions& queue,
                                  RunSource* source) {
  return RunFollower(context, runs, own, interrupts, at_end, queue, source).run();
}

}  // namespace forge::app
