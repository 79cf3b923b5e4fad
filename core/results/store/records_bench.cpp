// What keeping records costs, as one JSON line a figure:
//
//     forge-bench-records                        events, metrics into the store, many writers
//     forge-bench-records make-runs DIR COUNT    completed runs, for others to list
//     forge-bench-records make-curves DIR RUNS POINTS    the same with curves, for a report
//     forge-bench-records writers COUNT METRICS  with so many writers of so many metrics each

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/staging.h"
#include "core/results/store/result_store.h"
#include "core/run/event_log.h"
#include "tests/support/fake_runs.h"

namespace forge::store {
namespace {

constexpr int batch = 100;
constexpr int readers = 4;

void print(const std::string& name, double value, const std::string& unit) {
  const nlohmann::json figure = {{"name", name}, {"value", value}, {"unit", unit}};
  std::cout << json_text(figure) << std::endl;
}

fs::path scratch_path(const std::string& name) {
  return temporary_folder() / ("forge-bench-" + std::to_string(::getpid()) + "-" + name);
}

run::RunFolder new_run(const fs::path& runs_dir, int number) {
  tests::MadeRun run;
  run.id = "train_llama-" + std::to_string(number);
  return tests::make_queued_run(runs_dir, run);
}

void append_metrics(run::EventLog& log, int64_t first, int count) {
  for (int64_t step = first; step < first + count; ++step)
    log.append(worker::to_json(worker::Event(tests::metrics_at(step))), 1);
  log.sync();
}

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// What an event costs in worker and supervisor together, from its figures to its line in the file,
/// with a sync for every twentieth, as at 100 events a second.
void measure_events() {
  constexpr int events = 20000, events_a_sync = 20, events_a_second = 100;
  const ScratchFolder scratch(scratch_path("runs"));
  run::EventLog log(new_run(scratch.path(), 1).events_file());
  const double began = processor_seconds();
  for (int step = 1; step <= events; ++step) {
    const std::string line =
        worker::to_line(worker::to_json(worker::Event(tests::metrics_at(step))));
    log.append(worker::to_json(worker::event_from_line(line)), 1);
    if (step % events_a_sync == 0) log.sync();
  }
  const double an_event = (processor_seconds() - began) / events;
  print("records.share_of_a_core_at_100_events", 100 * an_event * events_a_second, "%");
}

void measure_ingest() {
  constexpr int runs = 20, metrics = 10000;
  const ScratchFolder scratch(scratch_path("runs"));
  for (int i = 0; i < runs; ++i) {
    run::EventLog log(new_run(scratch.path(), i).events_file());
    append_metrics(log, 1, metrics);
  }
  ResultStore store(scratch.path() / "forge.sqlite");
  const double began = steady_seconds();
  store.sync(scratch.path());
  print("records.metrics_into_the_store", runs * metrics / (steady_seconds() - began), "1/s");
}

/// Appends batches to a run of its own and brings the store up to date after each; the seconds that
/// each of these took, one a line of `times`.
void write_metrics(const fs::path& runs_dir, int number, int metrics, const fs::path& times) {
  run::EventLog log(new_run(runs_dir, number).events_file());
  ResultStore store(runs_dir / "forge.sqlite");
  std::ofstream out(times);
  for (int64_t step = 1; step <= metrics; step += batch) {
    append_metrics(log, step, batch);
    const double began = steady_seconds();
    store.sync(runs_dir);
    out << steady_seconds() - began << "\n";
  }
}

/// Looks at all runs and at the metrics of one ten times a second, until the file is there.
void read_results(const fs::path& runs_dir, const fs::path& end) {
  const ResultStore store(runs_dir / "forge.sqlite");
  for (size_t look = 0; !fs::exists(end); ++look) {
    const std::vector<RunSummary> runs = store.runs();
    if (!runs.empty()) store.train_metrics(runs[look % runs.size()].id);
    ::usleep(100000);
  }
}

template <class Action>
pid_t in_a_process(const Action& action) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  try {
    action();
  } catch (const Error& problem) {
    std::cerr << problem.message() << "\n";
    ::_exit(1);
  }
  ::_exit(0);
}

void wait_for(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    if (status != 0) throw Error("a writer or reader of the store failed");
  }
}

void measure_writers(int writers, int metrics) {
  const ScratchFolder scratch(scratch_path("runs")), times(scratch_path("times"));
  ResultStore(scratch.path() / "forge.sqlite");
  std::vector<pid_t> writing, reading;
  const double began = steady_seconds();
  for (int i = 0; i < writers; ++i)
    writing.push_back(in_a_process(
        [&] { write_metrics(scratch.path(), i, metrics, times.path() / std::to_string(i)); }));
  for (int i = 0; i < readers; ++i)
    reading.push_back(in_a_process([&] { read_results(scratch.path(), times.path() / "end"); }));
  wait_for(writing);
  const double seconds = steady_seconds() - began;
  std::ofstream(times.path() / "end");
  wait_for(reading);

  const ResultStore store(scratch.path() / "forge.sqlite");
  int64_t found = 0;
  for (const RunSummary& run : store.runs()) {
    const std::vector<worker::TrainMetrics> rows = store.train_metrics(run.id);
    for (size_t i = 0; i < rows.size(); ++i) found += rows[i].step == static_cast<int64_t>(i) + 1;
  }
  std::vector<double> waits;
  for (int i = 0; i < writers; ++i) {
    std::ifstream in(times.path() / std::to_string(i));
    for (double wait = 0; in >> wait;) waits.push_back(wait);
  }
  std::sort(waits.begin(), waits.end());
  const std::string who = "records.writers_" + std::to_string(writers);
  print(who + ".lost", double(int64_t{writers} * metrics - found), "metrics");
  print(who + ".p99_wait", 1e3 * waits[waits.size() * 99 / 100], "ms");
  print(who + ".longest_wait", 1e3 * waits.back(), "ms");
  print(who + ".metrics", double(found) / seconds, "1/s");
}

void make_runs(const fs::path& runs_dir, int count) {
  for (int i = 0; i < count; ++i) {
    tests::MadeRun run;
    run.config = "train_" + std::to_string(i % 20);
    run.id = run.config + "-" + std::to_string(i);
    run.experiment.seed = i;
    run.experiment.train.max_steps = 20;
    tests::make_completed_run(runs_dir, run);
  }
}

void make_curves(const fs::path& runs_dir, int runs, int points) {
  for (int i = 0; i < runs; ++i) {
    tests::MadeRun run;
    run.config = "train_" + std::to_string(i % 20);
    run.id = run.config + "-" + std::to_string(i);
    run.experiment.seed = i;
    const run::RunFolder folder = tests::make_completed_run(runs_dir, run);
    run::EventLog log(folder.events_file());
    append_metrics(log, run.experiment.train.max_steps + 1, points);
  }
}

}  // namespace
}  // namespace forge::store

int main(int count, char** words) {
  using namespace forge::store;
  const std::vector<std::string> arguments(words + 1, words + count);
  try {
    if (arguments.size() == 3 && arguments[0] == "make-runs") {
      make_runs(arguments[1], std::stoi(arguments[2]));
    } else if (arguments.size() == 4 && arguments[0] == "make-curves") {
      make_curves(arguments[1], std::stoi(arguments[2]), std::stoi(arguments[3]));
    } else if (arguments.size() == 3 && arguments[0] == "writers") {
      measure_writers(std::stoi(arguments[1]), std::stoi(arguments[2]));
    } else if (arguments.size() == 1 && arguments[0] == "ingest") {
      measure_ingest();
    } else {
      measure_events();
      measure_ingest();
      measure_writers(32, 10000);
    }
  } catch (const forge::Error& problem) {
    std::cerr << problem.message() << "\n";
    return 1;
  }
  return 0;
}
