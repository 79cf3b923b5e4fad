#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/results/benchmark/benchmark.h"
#include "core/run/group.h"
#include "core/worker/job.h"
#include "core/worker/plausible.h"

namespace forge::benchmark {
namespace {

/// What warming up and finishing count for in the progress, in windows.
constexpr int warm_up_share = 2;
constexpr int finish_share = 2;

[[noreturn]] void refuse(const std::string& what, const std::string& hint = "") {
  throw Error(what, hint, ExitCode::failed);
}

/// None where the request has no config to say it.
std::optional<int64_t> tokens_of_a_step(const nlohmann::json& experiment) {
  const nlohmann::json* rows = find_value(experiment, "train.batch_size");
  const nlohmann::json* tokens = find_value(experiment, "train.seq_len");
  if (!rows || !tokens) return std::nullopt;
  return rows->get<int64_t>() * tokens->get<int64_t>();
}

/// Where the processes of a job meet; gone with it.
class Meeting {
 public:
  Meeting() : folder_("bench") {}
  /// The same request by so many processes, on the devices that are named, one each.
  worker::Request request(worker::Request alone,
                          int processes,
                          const std::vector<std::string>& devices) const {
    alone.processes = worker::Processes{processes, "file:" + (folder_.path() / "meet").string()};
    alone.processes->devices = devices;
    return alone;
  }

 private:
  const PrivateFolder folder_;
};

/// One subject's worker and what it has said so far.
class Worker {
 public:
  Worker(worker::Launcher& launcher, const BenchTarget& subject)
      : group_(launcher, subject.processes),
        session_(group_,
                 subject.command,
                 request_of(subject),
                 worker::job_silence_seconds,
                 /*keep_stdin_open=*/true),
        tokens_per_step_(tokens_of_a_step(subject.request.experiment)) {
    measurement_.processes = subject.processes;
  }

  void warm_up() {
    while (true) {
      const worker::Event event = next();
      if (const auto* hello = std::get_if<worker::Hello>(&event)) {
        measurement_.hello = *hello;
      } else if (const auto* environment = std::get_if<worker::Environment>(&event)) {
        measurement_.environment = *environment;
      } else if (const auto* ready = std::get_if<worker::Ready>(&event)) {
        if (ready->window_steps < 1 || ready->tokens_per_step < 1) {
          refuse("the worker is ready for windows without steps or tokens");
        }
        require_own_tokens(ready->tokens_per_step);
        measurement_.ready = *ready;
        return;
      } else if (std::holds_alternative<worker::Result>(event)) {
        refuse("the worker of backend '" + measurement_.hello.backend +
                   "' does not measure in windows",
               "a newer worker does: docs/PROTOCOL.md, job bench");
      }
    }
  }

  void measure_window() {
    const int64_t steps = measurement_.ready.window_steps;
    session_.send(worker::to_line(worker::WindowRequest{steps}));
    while (true) {
      const worker::Event event = next();
      const auto* window = std::get_if<worker::Window>(&event);
      if (!window) continue;
      if (window->steps != steps || !(window->seconds > 0)) {
        refuse("a window of " + std::to_string(steps) +
               " steps was asked for, the worker measured " + std::to_string(window->steps) +
               " steps in " + std::to_string(window->seconds) + " s");
      }
      worker::require_pace(window->steps * measurement_.ready.tokens_per_step, window->seconds);
      measurement_.windows.push_back(*window);
      return;
    }
  }

  void finish() {
    session_.end_input();
    while (const std::optional<worker::Event> event = session_.next()) {
      if (const auto* result = std::get_if<worker::Result>(&*event)) {
        measurement_.result = result->values;
      }
    }
    if (measurement_.result.is_null()) refuse("the worker ended without a result");
  }

  Measurement take() { return std::move(measurement_); }

 private:
  worker::Request request_of(const BenchTarget& subject) {
    if (subject.processes == 1) return subject.request;
    meeting_.emplace();
    return meeting_->request(subject.request, subject.processes, subject.devices);
  }

  worker::Event next() {
    std::optional<worker::Event> event = session_.next();
    if (!event) refuse("the worker ended before it was told to");
    return std::move(*event);
  }

  void require_own_tokens(int64_t said) const {
    if (!tokens_per_step_ || said == *tokens_per_step_) return;
    refuse("the worker measures steps of " + with_thousands(said) + " tokens, and the config has " +
               with_thousands(*tokens_per_step_),
           "tokens_per_step is train.batch_size times train.seq_len");
  }

  std::optional<Meeting> meeting_;  ///< of several processes
  run::GroupLauncher group_;
  worker::JobSession session_;
  std::optional<int64_t> tokens_per_step_;
  Measurement measurement_;
};

/// Runs `action`. If there are several subjects, adds the subject's name to an Error.
template <class Action>
void for_subject(const std::vector<BenchTarget>& subjects, size_t index, Action&& action) {
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

std::vector<Measurement> measure_interleaved(worker::Launcher& launcher,
                                             const std::vector<BenchTarget>& subjects,
                                             int windows,
                                             const OnProgress& on_progress) {
  const double whole =
      static_cast<double>(subjects.size()) * (warm_up_share + windows + finish_share);
  double done = 0;
  const auto say = [&](const std::string& what, size_t index, int share) {
    on_progress(done / whole, what + ", " + subjects[index].name);
    done += share;
  };
  std::deque<Worker> workers;
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

Probe probe(worker::Launcher& launcher, const BenchTarget& subject, const OnProgress& on_progress) {
  const Measurement measured = measure_interleaved(launcher, {subject}, 2, on_progress).front();
  Probe probe;
  probe.seconds_per_step = std::numeric_limits<double>::infinity();
  for (const worker::Window& window : measured.windows)
    probe.seconds_per_step = std::min(probe.seconds_per_step,
                                      window.seconds / double(std::max<int64_t>(window.steps, 1)));
  probe.memory_bytes = measured.result.value("peak_memory_bytes", int64_t{0});
  return probe;
}

namespace {

[[noreturn]] void refuse_key(const std::string& key, const std::string& wanted) {
  throw Error("the worker measured an operation whose '" + key + "' is no " + wanted,
              ExitCode::failed);
}

bool is_amount(const nlohmann::json& value) {
  return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
}

/// It goes into a record that reports are made of later, perhaps elsewhere.
void check_operation(const nlohmann::json& values) {
  for (const char* key : {"operation", "size", "shape"}) {
    if (!values.contains(key) || !values.at(key).is_string()) refuse_key(key, "text");
  }
  if (!values.contains("seconds")) refuse_key("seconds", "positive number");
  for (const char* key : {"seconds", "peer_seconds", "flops_per_second", "bytes_per_second"}) {
    if (values.contains(key) && !is_amount(values.at(key))) refuse_key(key, "positive number");
  }
  for (const char* key : {"windows", "peer_windows"}) {
    if (!values.contains(key)) continue;
    const nlohmann::json& list = values.at(key);
    if (!list.is_array() || !std::all_of(list.begin(), list.end(), is_amount))
      refuse_key(key, "list of positive numbers");
  }
}

/// The device's highest speeds, by their names.
void check_ceilings(const nlohmann::json& ceilings) {
  const auto is_speed = [](const nlohmann::json& ceiling) {
    if (!ceiling.is_object()) return false;
    for (const char* key : {"flops", "bytes_per_second"}) {
      if (ceiling.contains(key) && !(is_amount(ceiling.at(key)) && ceiling.at(key) >= 1))
        return false;
    }
    return true;
  };
  if (!ceilings.is_object() || !std::all_of(ceilings.begin(), ceilings.end(), is_speed))
    throw Error("the worker's 'ceilings' are no speeds: " + json_text(ceilings).substr(0, 200),
                "each has 'flops' or 'bytes_per_second', of at least 1",
                ExitCode::failed);
}

}  // namespace

Record measure_operations(worker::Launcher& launcher,
                          const worker::WorkerCommand& command,
                          const worker::Request& request,
                          const BenchInvocation& call,
                          const std::function<void(const nlohmann::json&)>& on_case) {
  Record record;
  record.kind = Kind::operations;
  record.call = call;
  record.precision = request.operation_bench.value_or(worker::OperationBench()).precision;
  worker::Hello hello;
  worker::run_job(
      launcher, command, request, worker::job_silence_seconds, [&](const worker::Event& event) {
        if (const auto* said = std::get_if<worker::Hello>(&event)) hello = *said;
        if (const auto* environment = std::get_if<worker::Environment>(&event)) {
          record.device = device_of(hello, *environment);
        }
        const auto* result = std::get_if<worker::Result>(&event);
        if (!result) return;
        if (result->values.contains("ceilings")) {
          check_ceilings(result->values.at("ceilings"));
          record.ceilings = result->values.at("ceilings");
        } else {
          check_operation(result->values);
          record.operations.push_back(result->values);
          on_case(result->values);
        }
      });
  if (record.operations.empty()) {
    throw Error("the worker measured no operation", ExitCode::failed);
  }
  return record;
}

namespace {

LinkSpeed link_speed_from(const nlohmann::json& values) {
  const auto is_positive = [&](const char* key) {
    return values.contains(key) && is_amount(values.at(key)) && values.at(key).get<double>() > 0;
  };
  for (const char* key : {"bytes", "seconds", "bytes_per_second"}) {
    if (!is_positive(key)) refuse_key(key, "positive number");
  }
  if (!values.contains("operation") || !values.at("operation").is_string())
    refuse_key("operation", "text");
  return {values.at("operation").get<std::string>(),
          values.at("bytes").get<int64_t>(),
          values.at("seconds").get<double>(),
          values.at("bytes_per_second").get<double>()};
}

}  // namespace

LinkBench measure_links(worker::Launcher& launcher,
                        const worker::WorkerCommand& command,
                        worker::Request request,
                        int processes,
                        const std::vector<std::string>& devices,
                        const std::function<void(const LinkSpeed&)>& on_link) {
  const Meeting meeting;
  request.job = worker::Job::bench_links;
  request = meeting.request(std::move(request), processes, devices);
  run::GroupLauncher group(launcher, processes);
  LinkBench bench;
  bench.processes = processes;
  worker::Hello hello;
  worker::run_job(
      group, command, request, worker::job_silence_seconds, [&](const worker::Event& event) {
        if (const auto* said = std::get_if<worker::Hello>(&event)) hello = *said;
        if (const auto* environment = std::get_if<worker::Environment>(&event))
          bench.device = device_of(hello, *environment);
        const auto* result = std::get_if<worker::Result>(&event);
        if (!result) return;
        bench.links.push_back(link_speed_from(result->values));
        on_link(bench.links.back());
      });
  if (bench.links.empty()) throw Error("the worker measured no link", ExitCode::failed);
  return bench;
}

}  // namespace forge::benchmark
