#include "core/benchmark/measure.h"

#include "core/base/error.h"
#include "core/run/job.h"

namespace forge::benchmark {
namespace {

/// What warming up and finishing count for in the progress, in windows.
constexpr int warm_up_share = 2;
constexpr int finish_share = 2;

[[noreturn]] void refuse(const std::string& what, const std::string& hint = "") {
  throw Error(what, {}, hint, ExitCode::failed);
}

/// One subject's worker and what it has said so far.
class Worker {
 public:
  Worker(run::Launcher& launcher, const Subject& subject)
      : session_(launcher, subject.command, subject.request, run::job_silence_seconds, true) {}

  void warm_up() {
    while (true) {
      const protocol::Event event = next();
      if (const auto* hello = std::get_if<protocol::Hello>(&event)) {
        measurement_.hello = *hello;
      } else if (const auto* environment = std::get_if<protocol::Environment>(&event)) {
        measurement_.environment = *environment;
      } else if (const auto* ready = std::get_if<protocol::Ready>(&event)) {
        if (ready->window_steps < 1 || ready->tokens_per_step < 1) {
          refuse("the worker is ready for windows without steps or tokens");
        }
        measurement_.ready = *ready;
        return;
      } else if (std::holds_alternative<protocol::Result>(event)) {
        refuse("the worker of backend '" + measurement_.hello.backend +
                   "' does not measure in windows",
               "a newer worker does: docs/PROTOCOL.md, job bench");
      }
    }
  }

  void measure_window() {
    const int64_t steps = measurement_.ready.window_steps;
    session_.send(protocol::to_line(protocol::WindowRequest{steps}));
    while (true) {
      const protocol::Event event = next();
      const auto* window = std::get_if<protocol::Window>(&event);
      if (!window) continue;
      if (window->steps != steps || !(window->seconds > 0)) {
        refuse("a window of " + std::to_string(steps) +
               " steps was asked for, the worker measured " + std::to_string(window->steps) +
               " steps in " + std::to_string(window->seconds) + " s");
      }
      measurement_.windows.push_back(*window);
      return;
    }
  }

  void finish() {
    session_.end_input();
    while (const std::optional<protocol::Event> event = session_.next()) {
      if (const auto* result = std::get_if<protocol::Result>(&*event)) {
        measurement_.result = result->values;
      }
    }
    if (measurement_.result.is_null()) refuse("the worker ended without a result");
  }

  Measurement take() { return std::move(measurement_); }

 private:
  protocol::Event next() {
    std::optional<protocol::Event> event = session_.next();
    if (!event) refuse("the worker ended before it was told to");
    return std::move(*event);
  }

  run::JobSession session_;
  Measurement measurement_;
};

/// Runs `action`; what it throws is told with the subject's name, where there are others.
template <class Action>
void for_subject(const std::vector<Subject>& subjects, size_t index, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    if (subjects.size() == 1) throw;
    throw Error(subjects[index].name + ": " + error.message(),
                error.where(),
                error.hint(),
                error.exit_code());
  }
}

}  // namespace

std::vector<Measurement> measure_in_turns(run::Launcher& launcher,
                                          const std::vector<Subject>& subjects,
                                          int windows,
                                          const OnProgress& on_progress) {
  const double whole =
      static_cast<double>(subjects.size()) * (warm_up_share + windows + finish_share);
  double done = 0;
  const auto say = [&](const std::string& what, size_t index, int share) {
    on_progress(done / whole, what + ", " + subjects[index].name);
    done += share;
  };
  std::vector<Worker> workers;
  workers.reserve(subjects.size());
  for (size_t i = 0; i < subjects.size(); ++i) {
    say("warming up", i, warm_up_share);
    for_subject(subjects, i, [&] { workers.emplace_back(launcher, subjects[i]).warm_up(); });
  }
  for (int window = 1; window <= windows; ++window) {
    for (size_t i = 0; i < subjects.size(); ++i) {
      say("window " + std::to_string(window) + " of " + std::to_string(windows), i, 1);
      for_subject(subjects, i, [&] { workers[i].measure_window(); });
    }
  }
  std::vector<Measurement> measurements;
  for (size_t i = 0; i < subjects.size(); ++i) {
    say("parts of a step", i, finish_share);
    for_subject(subjects, i, [&] { workers[i].finish(); });
    measurements.push_back(workers[i].take());
  }
  return measurements;
}

}  // namespace forge::benchmark
