#include "app/conduct.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <thread>

#include "app/interrupt.h"
#include "app/progress_line.h"
#include "app/run_view.h"
#include "app/terminal.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/queue/dispatch.h"
#include "core/report/display_text.h"
#include "core/run/follow.h"
#include "core/run/host.h"
#include "core/run/start.h"
#include "core/run/supervisor.h"
#include "core/upkeep/chronicle.h"

namespace forge::app {
namespace {

constexpr auto poll_interval = std::chrono::milliseconds(100);
constexpr double dispatch_seconds = 0.5;

bool is_to_be_started(const ToDo& run) {
  return run.planned.action == run::Action::start || run.planned.action == run::Action::resume;
}

queue::Entry entry_of(const ToDo& run, const ConductOptions& options) {
  queue::Entry entry;
  entry.run = run.planned.record.id;
  entry.priority = options.priority;
  entry.host = run::host_name();
  entry.devices = run.demand.devices;
  entry.units = run.demand.units;
  entry.jobs = options.jobs;
  entry.fail_fast = options.fail_fast;
  return entry;
}

/// What is wrong with the checkpoints that an attempt did not go on from.
std::vector<std::string> skipped_by(const run::StoredEvent& stored) {
  if (stored.name != "attempt" || !stored.json.contains("damaged")) return {};
  return stored.json.at("damaged").get<std::vector<std::string>>();
}

/// What is said of an event as soon as it comes: that memory ran out, that a worker is tried again.
std::string notice_of(const run::StoredEvent& stored) {
  const bool tried_again =
      stored.name == "ended" && stored.json.value("retry", nlohmann::json()) == true;
  return tried_again || stored.name == "micro_batch" ? upkeep::event_text(stored) : "";
}

/// A run while it is followed.
struct Followed {
  explicit Followed(const ToDo& to_do)
      : run(to_do),
        follower(to_do.planned.folder),
        line(to_do.label),
        attempt_before(to_do.planned.folder.status().attempt) {}

  const ToDo& run;
  run::Follower follower;
  RunView view;
  ProgressLine line;
  int attempt_before;
  int supervisor = 0;  ///< where it is a child of ours
  bool announced = false;
  bool running = false;
  bool reported = false;  ///< its end
  std::optional<Outcome> outcome;
};

class Conductor {
 public:
  Conductor(const Context& context,
            const std::vector<ToDo>& runs,
            const std::function<void(size_t)>& at_end)
      : context_(context),
        runs_dir_(context.runs_dir()),
        at_end_(at_end),
        together_(std::to_string(runs.size()) + " runs"),
        live_(is_terminal(STDERR_FILENO) && runs.size() > 1) {
    for (const ToDo& run : runs) followed_.push_back(std::make_unique<Followed>(run));
  }

  std::vector<Outcome> run() {
    while (true) {
      start_what_waits();
      for (size_t i = 0; i < followed_.size(); ++i) look_at(i);
      if (ended_ == followed_.size()) break;
      answer_interrupts();
      show();
      std::this_thread::sleep_for(poll_interval);
    }
    together_.clear();
    std::vector<Outcome> outcomes;
    for (const auto& followed : followed_) outcomes.push_back(*followed->outcome);
    return outcomes;
  }

 private:
  void start_what_waits() {
    const double now = steady_seconds();
    if (now < dispatch_at_) return;
    dispatch_at_ = now + dispatch_seconds;
    const queue::Dispatch done = queue::dispatch(runs_dir_, context_.program());
    for (const queue::Started& started : done.started) {
      if (Followed* followed = find(started.run)) {
        if (followed->supervisor != 0)
          say(*followed, followed->run.label + ": its supervisor was killed, going on");
        followed->supervisor = started.supervisor;
        announce(*followed);
      }
    }
    for (const queue::NotStarted& failed : done.failed) {
      if (Followed* followed = find(failed.run)) end_unstarted(*followed, failed.problem);
    }
  }

  Followed* find(const std::string& run) {
    for (const auto& followed : followed_) {
      if (followed->run.planned.record.id == run) return followed.get();
    }
    return nullptr;
  }

  /// A line that stays.
  void say(Followed& followed, const std::string& text) {
    (live_ ? together_ : followed.line).say(text);
  }

  void announce(Followed& followed) {
    if (!followed.announced && !followed.run.what.empty())
      say(followed, followed.run.label + ": " + followed.run.what);
    followed.announced = true;
  }

  void end_unstarted(Followed& followed, const Error& problem) {
    Outcome outcome;
    outcome.status.state = run::RunState::failed;
    outcome.status.reason = problem.message();
    outcome.status.hint = problem.hint();
    outcome.status.storage = problem.exit_code() == ExitCode::storage;
    followed.outcome = outcome;
  }

  void look_at(size_t index) {
    Followed& followed = *followed_[index];
    if (followed.reported) return;
    if (!followed.outcome) {
      follow(followed);
      if (!followed.outcome) return;
    }
    followed.reported = true;
    followed.line.clear();
    ++ended_;
    dispatch_at_ = 0;
    if (followed.outcome->status.storage) begin_nothing_more();
    at_end_(index);
  }

  void follow(Followed& followed) {
    // In this order: a run leaves the queue before its lock is given back.
    const run::Update update = followed.follower.poll();
    for (const run::StoredEvent& stored : update.events) {
      if (stored.event) followed.view.take(*stored.event);
      for (const std::string& problem : skipped_by(stored))
        say(followed,
            "warning: " + followed.run.label + ": " + problem +
                "; going on from the one before it");
      const std::string notice = notice_of(stored);
      if (!notice.empty() && stored.attempt > followed.attempt_before)
        say(followed, "warning: " + followed.run.label + ": " + report::printable(notice));
    }
    if (update.progress) followed.view.take(*update.progress);
    followed.running = !update.over;
    if (followed.running) announce(followed);
    if (update.over && !queue::is_queued(runs_dir_, followed.run.planned.record.id))
      followed.outcome = outcome_of(followed);
  }

  static Outcome outcome_of(const Followed& followed) {
    const run::RunFolder& folder = followed.run.planned.folder;
    Outcome outcome{folder.status()};
    if (followed.supervisor != 0) {
      // On a disk that is full to the last byte nothing but the exit code can say so.
      const int code = run::wait_for_supervisor(followed.supervisor);
      if (code == run::supervised_storage) outcome.status.storage = true;
      const bool ended_well = code == run::supervised_completed || code == run::supervised_stopped;
      if (!ended_well && outcome.status.attempt == followed.attempt_before) {
        // It could not even begin to record.
        outcome.status.state = run::RunState::failed;
        outcome.status.reason = run::reason_of_silence(folder);
        outcome.status.hint.clear();
      }
    }
    outcome.begun = followed.supervisor != 0 || followed.announced ||
                    outcome.status.state == run::RunState::completed ||
                    outcome.status.attempt > followed.attempt_before;
    return outcome;
  }

  void begin_nothing_more() {
    std::vector<std::string> runs;
    for (const auto& followed : followed_) {
      if (!followed->outcome) runs.push_back(followed->run.planned.record.id);
    }
    queue::withdraw(runs_dir_, runs);
  }

  void answer_interrupts() {
    if (interrupts_.count() <= answered_) return;
    answered_ = interrupts_.count();
    begin_nothing_more();
    for (const auto& followed : followed_) {
      if (followed->outcome || !followed->running) continue;
      followed->run.planned.folder.request_stop(answered_ == 1 ? run::Stop::save : run::Stop::now);
      say(*followed,
          answered_ == 1 ? "stopping " + followed->run.label +
                               " after saving a checkpoint; Ctrl-C again stops it now"
                         : "stopping " + followed->run.label + " now");
    }
  }

  void show() {
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

  const Context& context_;
  const std::filesystem::path runs_dir_;
  const std::function<void(size_t)>& at_end_;
  const Interrupts interrupts_;
  std::vector<std::unique_ptr<Followed>> followed_;
  ProgressLine together_;  ///< on a terminal, of several runs: one line for all
  const bool live_;
  size_t ended_ = 0;
  int answered_ = 0;
  double dispatch_at_ = 0;
};

}  // namespace

void enqueue(const Context& context, const std::vector<ToDo>& runs, const ConductOptions& options) {
  const std::string submitted = utc_timestamp();
  const std::string group = submitted + "-" + std::to_string(::getpid());
  int64_t position = 0;
  queue::Queue queue(context.runs_dir());
  for (const ToDo& run : runs) {
    if (!is_to_be_started(run)) continue;
    queue::Entry entry = entry_of(run, options);
    entry.group = group;
    entry.submitted = submitted;
    entry.position = position++;
    queue.add(entry);
  }
}

std::vector<Outcome> conduct(const Context& context,
                             const std::vector<ToDo>& runs,
                             const std::function<void(size_t)>& at_end) {
  return Conductor(context, runs, at_end).run();
}

}  // namespace forge::app
