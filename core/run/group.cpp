#include "core/run/group.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/worker/messages.h"

namespace forge::run {
namespace {

using worker::ExitStatus;
using worker::Output;
using worker::OutputLine;
using worker::Quiet;

/// Between two looks at the processes that do not speak.
constexpr double look_seconds = 0.05;

/// How well a failure explains the end of all, best first.
enum class Blame { own_words, killed, silent_exit, lost_another };

struct Process {
  std::unique_ptr<worker::RunningWorker> worker;
  bool said_hello = false;
  bool asked_to_end = false;  ///< by SIGTERM, because another one failed
  bool killed = false;        ///< by this process
  std::optional<worker::Failed> failed = {};
  std::optional<ExitStatus> exit = {};
  std::optional<int> failure = {};  ///< its place among the failures, from 0 on
};

class Group : public worker::RunningWorker {
 public:
  explicit Group(const GroupOptions& options) : options_(options) {}

  void add(std::unique_ptr<worker::RunningWorker> worker) {
    processes_.push_back({std::move(worker)});
  }

  int pid() const override { return leader().worker->pid(); }

  std::vector<worker::Member> members() const override {
    std::vector<worker::Member> list;
    for (const Process& process : processes_)
      list.push_back({process.worker->pid(), process.said_hello, process.exit});
    return list;
  }

  Output next(double timeout_seconds) override {
    const double deadline = options_.clock() + timeout_seconds;
    while (true) {
      look_at_others();
      end_the_rest();
      if (has_ended()) return last_words();
      const double left = std::max(0.0, deadline - options_.clock());
      if (auto line = wait(std::min(left, look_seconds))) return std::move(*line);
      constexpr double moment = 1e-6;
      if (left < moment) return Quiet{};
    }
  }

  void send(const std::string& line) override {
    for (Process& process : processes_) process.worker->send(line);
  }
  void end_input() override {
    for (Process& process : processes_) process.worker->end_input();
  }
  void request_stop() override {
    if (!leader().exit) leader().worker->request_stop();
  }
  void request_checkpoint() override {
    if (!leader().exit) leader().worker->request_checkpoint();
  }
  void kill() override {
    for (Process& process : processes_) {
      if (process.exit) continue;
      process.killed = true;
      process.worker->kill();
    }
  }

 private:
  Process& leader() { return processes_.front(); }
  const Process& leader() const { return processes_.front(); }

  bool has_ended() const {
    return std::all_of(processes_.begin(), processes_.end(), [](const Process& process) {
      return process.exit.has_value();
    });
  }

  /// Reads what the processes that do not speak have said until now.
  void look_at_others() {
    for (size_t rank = 1; rank < processes_.size(); ++rank) {
      while (!processes_[rank].exit) {
        const Output output = processes_[rank].worker->next(0);
        if (std::holds_alternative<Quiet>(output)) break;
        if (const auto* line = std::get_if<OutputLine>(&output)) on_other_line(rank, line->text);
        if (const auto* exit = std::get_if<ExitStatus>(&output)) on_exit(rank, *exit);
      }
    }
  }

  /// A line of process 0 that is to be passed on, if there is one within the time.
  std::optional<OutputLine> wait(double seconds) {
    const auto living = std::find_if(
        processes_.begin(), processes_.end(), [](const Process& one) { return !one.exit; });
    if (living == processes_.end()) return std::nullopt;
    const auto rank = static_cast<size_t>(living - processes_.begin());
    const Output output = living->worker->next(seconds);
    if (const auto* exit = std::get_if<ExitStatus>(&output)) on_exit(rank, *exit);
    const auto* line = std::get_if<OutputLine>(&output);
    if (!line) return std::nullopt;
    if (rank == 0) return on_leader_line(*line);
    on_other_line(rank, line->text);
    return std::nullopt;
  }

  std::optional<OutputLine> on_leader_line(const OutputLine& line) {
    leader().said_hello = true;  // whoever reads the line checks that it is one
    // Nearly all lines are neither, and need not be read twice.
    const bool may_be_last = line.text.find("failed") != std::string::npos ||
                             line.text.find("finished") != std::string::npos;
    if (!may_be_last || finished_) return line;
    std::optional<worker::Event> event;
    try {
      event = worker::event_from_line(line.text);
    } catch (const Error&) {
      return line;  // the reader says what is wrong with it
    }
    if (const auto* failed = std::get_if<worker::Failed>(&*event)) {
      on_failed(0, *failed);
      return std::nullopt;
    }
    const auto* finished = std::get_if<worker::Finished>(&*event);
    if (!finished) return line;
    // Asked to end because another one failed, it stopped as if somebody had asked for that.
    if (leader().asked_to_end && !finished->completed) return std::nullopt;
    finished_ = true;
    return line;
  }

  void on_other_line(size_t rank, const std::string& line) {
    Process& process = processes_[rank];
    if (process.failed) return;
    worker::Failed broken;
    try {
      const worker::Event event = worker::event_from_line(line);
      if (std::holds_alternative<worker::Environment>(event)) return;
      if (std::holds_alternative<worker::Hello>(event)) {
        process.said_hello = true;
        return;
      }
      if (const auto* failed = std::get_if<worker::Failed>(&event)) return on_failed(rank, *failed);
      broken.message = "it broke the protocol: it said '" + std::string(worker::name_of(event)) +
                       "', and process 0 speaks for all";
    } catch (const Error& problem) {
      broken.message = "it broke the protocol: " + problem.message();
      broken.hint = problem.hint();
    }
    on_failed(rank, broken);
  }

  void on_failed(size_t rank, worker::Failed failed) {
    failed.rank = static_cast<int64_t>(rank);
    if (!processes_[rank].failed) processes_[rank].failed = std::move(failed);
    count_failure(rank);
  }

  void on_exit(size_t rank, const ExitStatus& status) {
    Process& process = processes_[rank];
    process.exit = status;
    process.exit->rank = static_cast<int>(rank);
    const bool is_asked = process.killed || process.asked_to_end;
    const bool is_good = status.signal == 0 && rank > 0 &&
                         (status.code == worker::exit_done || status.code == worker::exit_stopped);
    if (!is_asked && !is_good) count_failure(rank);
  }

  void count_failure(size_t rank) {
    if (finished_ || processes_[rank].failure) return;
    processes_[rank].failure = failures_++;
    if (!failed_at_) failed_at_ = options_.clock();
  }

  /// After the first failure.
  void end_the_rest() {
    if (!failed_at_) return;
    const double since = options_.clock() - *failed_at_;
    const Process* guilty = to_blame();
    const bool is_explained = guilty && blame(*guilty) != Blame::lost_another;
    if (is_explained || since >= options_.words_seconds) ask_to_end();
    if (since < options_.grace_seconds) return;
    for (Process& process : processes_) {
      if (process.exit || process.killed) continue;
      process.killed = true;
      process.worker->kill();
    }
  }

  /// Those that have said why they fail are about to exit.
  void ask_to_end() {
    for (Process& process : processes_) {
      if (process.exit || process.failed || process.asked_to_end) continue;
      process.asked_to_end = true;
      process.worker->request_stop();
    }
  }

  static Blame blame(const Process& process) {
    if (process.failed) return process.failed->lost ? Blame::lost_another : Blame::own_words;
    // Libraries abort a process that lost another one, too.
    const int signal = process.exit ? process.exit->signal : 0;
    return signal != 0 && signal != SIGABRT ? Blame::killed : Blame::silent_exit;
  }

  const Process* to_blame() const {
    const Process* found = nullptr;
    const auto rank = [](const Process& process) {
      return std::pair(blame(process), *process.failure);
    };
    for (const Process& process : processes_) {
      if (process.failure && (!found || rank(process) < rank(*found))) found = &process;
    }
    return found;
  }

  /// All are gone: why, once, and how.
  Output last_words() {
    const Process* guilty = finished_ ? &leader() : to_blame();
    if (!guilty) guilty = &leader();
    const bool has_words = guilty->failed && !finished_;
    if (has_words && !std::exchange(said_why_, true))
      return OutputLine{worker::to_line(worker::Event(*guilty->failed))};
    return *guilty->exit;
  }

  GroupOptions options_;
  std::vector<Process> processes_;  ///< by rank
  int failures_ = 0;
  std::optional<double> failed_at_;  ///< the first
  bool finished_ = false;            ///< process 0 said so, which counts
  bool said_why_ = false;
};

}  // namespace

std::unique_ptr<worker::RunningWorker> start_group(worker::Launcher& launcher,
                                                   const std::vector<worker::Launch>& launches,
                                                   const GroupOptions& options) {
  if (launches.size() == 1) return launcher.start(launches.front());
  auto group = std::make_unique<Group>(options);
  for (const worker::Launch& launch : launches) group->add(launcher.start(launch));
  return group;
}

std::vector<worker::Launch> launches_of_group(const worker::Launch& alone, int processes) {
  std::vector<worker::Launch> launches(static_cast<size_t>(processes), alone);
  for (int rank = 0; rank < processes && processes > 1; ++rank) {
    std::map<std::string, std::string>& environment =
        launches[static_cast<size_t>(rank)].command.environment;
    environment[worker::rank_variable] = std::to_string(rank);
    environment[worker::ranks_variable] = std::to_string(processes);
  }
  return launches;
}

Suspicion suspicion_of(const std::vector<worker::Member>& members,
                       const std::function<char(int)>& state_of) {
  Suspicion suspicion;
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < members.size(); ++rank) {
    const worker::Member& member = members[rank];
    const std::string name = "process " + std::to_string(rank);
    const char state = member.exit ? '\0' : state_of(member.pid);
    if (member.exit) {
      texts.push_back(name + " has ended, with " + member.exit->describe());
    } else if (is_stopped(state)) {
      texts.push_back(name + " is stopped (SIGSTOP, or a debugger)");
      suspicion.is_outside = true;
    } else if (state == 'D') {
      texts.push_back(name + " waits for a disk or a device that does not answer");
      suspicion.is_outside = true;
    } else if (!member.said_hello) {
      texts.push_back(name + " has not said hello");
    }
  }
  suspicion.text = texts.empty() ? "none of the " + std::to_string(members.size()) +
                                       " processes is known to be the cause"
                                 : join(texts, ", ");
  return suspicion;
}

}  // namespace forge::run
