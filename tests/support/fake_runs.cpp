#include "tests/support/fake_runs.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/config/experiment.h"
#include "core/model/weights/checkpoint.h"
#include "core/run/event_log.h"
#include "core/run/queue/queue.h"

namespace forge::tests {
namespace {

class FakeWorker : public worker::RunningWorker {
 public:
  FakeWorker(WorkerScript script, FakeClock& clock, FakeLauncher& launcher)
      : script_(std::move(script)),
        clock_(clock),
        launcher_(launcher),
        number_(std::to_string(launcher.launches.size())) {}

  int pid() const override { return 4711; }

  worker::Output next(double timeout_seconds) override {
    if (exited_) throw std::logic_error("a worker that has ended was asked for more");
    while (at_ < script_.steps.size()) {
      Step& step = script_.steps[at_];
      if (auto* silence = std::get_if<IsSilent>(&step); silence && silence->seconds > 0) {
        silence->seconds -= timeout_seconds;
        clock_.seconds += timeout_seconds;
        return worker::Quiet{};
      }
      ++at_;
      if (const auto* does = std::get_if<Does>(&step)) does->action();
      if (const auto* saves = std::get_if<Saves>(&step)) return worker::OutputLine{save(*saves)};
      if (const auto* says = std::get_if<Says>(&step)) return worker::OutputLine{says->line};
      if (const auto* exits = std::get_if<Exits>(&step)) {
        exited_ = true;
        return exits->status;
      }
    }
    clock_.seconds += timeout_seconds;
    return worker::Quiet{};
  }

  void send(const std::string& line) override { launcher_.sent.push_back(number_ + ": " + line); }
  void end_input() override { launcher_.sent.push_back(number_ + ": end"); }

  void request_stop() override {
    launcher_.signals.push_back("stop");
    if (!script_.when_asked_to_stop.empty()) go_on_with(script_.when_asked_to_stop);
  }

  void request_checkpoint() override { launcher_.signals.push_back("save"); }

  void kill() override {
    launcher_.signals.push_back("kill");
    go_on_with({Exits{{0, SIGKILL}}});
  }

 private:
  std::string save(const Saves& saves) {
    const fs::path checkpoints = launcher_.launches.back().working_folder / "checkpoints";
    weights::CheckpointState state;
    state.step = saves.step;
    worker::CheckpointSaved saved;
    saved.step = saves.step;
    saved.path = "checkpoints/" + weights::checkpoint_name(saves.step);
    weights::write_checkpoint(checkpoints, state, {}, {}, &saved.bytes);
    return worker::to_line(worker::to_json(worker::Event(saved)));
  }

  void go_on_with(Script steps) {
    script_.steps = std::move(steps);
    at_ = 0;
  }

  WorkerScript script_;
  FakeClock& clock_;
  FakeLauncher& launcher_;
  std::string number_;  ///< of the start, from 1 on
  size_t at_ = 0;
  bool exited_ = false;
};

}  // namespace

std::unique_ptr<worker::RunningWorker> FakeLauncher::start(const worker::Launch& launch) {
  launches.push_back(launch);
  if (scripts_.empty()) throw Error("no such program", {}, "", ExitCode::failed);
  auto worker = std::make_unique<FakeWorker>(scripts_.front(), clock_, *this);
  scripts_.pop_front();
  return worker;
}

namespace {

constexpr double first_event_time = 1795168800;  // 2026-11-20T10:00:00Z

run::Identity identity_of(const MadeRun& run) {
  run::Identity identity;
  identity.experiment = run::identity_config(config::to_json(run.experiment));
  identity.data_fingerprint = run.data_fingerprint;
  identity.tokenizer_fingerprint = run.tokenizer_fingerprint;
  identity.initial_weights = run.initial_weights;
  identity.program = run.program;
  identity.backend = run.experiment.backend;
  identity.device_type = run.device_type;
  identity.threads = run.threads;
  identity.numerics_version = 1;
  return identity;
}

int64_t tokens_per_step(const MadeRun& run) {
  return int64_t{run.experiment.train.batch_size} * run.experiment.train.seq_len;
}

/// Seconds since 1970 of a time with milliseconds, as runs have it; that of all events for others.
double seconds_of(const std::string& utc) {
  const std::optional<double> whole = time_from(utc.substr(0, 19));
  const bool has_rest = utc.size() == std::strlen("2026-11-20T10:00:00.000Z");
  return whole.value_or(first_event_time) +
         (whole && has_rest ? std::stod("0" + utc.substr(19, 4)) : 0);
}

/// The events of an attempt that has trained for `step` steps.
void append_training(const run::RunFolder& folder, const MadeRun& run, int64_t step) {
  append_attempt(folder, 1, "", seconds_of(run.begun.empty() ? run.created : run.begun));
  append_event(folder, worker::Hello{1, "libtorch", "0.1.0", 1});
  worker::Environment environment;
  environment.device_type = run.device_type;
  environment.device_name = run.device_name;
  environment.threads = run.threads;
  environment.libraries = {{"torch", "1.13.1"}};
  append_event(folder, environment);
  write_file_atomic(folder.environment_file(), worker::to_line(environment) + "\n");
  append_event(
      folder,
      worker::Started{run.parameters, 0, run.experiment.train.max_steps, tokens_per_step(run)});
  for (int64_t at = 10; at <= step; at += 10) append_event(folder, metrics_at(at));
}

}  // namespace

MadeRun::MadeRun() {
  experiment.name = "Llama 4M";
  experiment.profile = "quick";
  experiment.model.vocab_size = 2000;
  experiment.model.hidden_size = 256;
  experiment.model.mlp.intermediate_size = 768;
  experiment.model.num_layers = 4;
  experiment.model.attention.num_heads = 4;
  experiment.model.attention.num_kv_heads = 4;
  experiment.model.attention.head_dim = 64;
  experiment.train.batch_size = 8;
  experiment.train.seq_len = 128;
  experiment.train.max_steps = 30;
  experiment.train.eval_rows = 64;
}

worker::TrainMetrics metrics_at(int64_t step) {
  worker::TrainMetrics metrics;
  metrics.step = step;
  metrics.tokens = step * 1024;
  metrics.loss = std::max(1.0, 7.0 - 0.01 * static_cast<double>(step));
  metrics.learning_rate = 1e-3;
  metrics.gradient_norm = 1.5;
  metrics.tokens_per_second = 4250;
  metrics.elapsed_seconds = 0.25 * static_cast<double>(step);
  return metrics;
}

void append_line(const run::RunFolder& folder, const std::string& line) {
  std::ofstream(folder.events_file(), std::ios::app | std::ios::binary) << line;
}

void append_event(const run::RunFolder& folder, const worker::Event& event, int attempt) {
  nlohmann::json json = worker::to_json(event);
  json["time"] = first_event_time;
  json["attempt"] = attempt;
  append_line(folder, json.dump() + "\n");
}

void append_attempt(const run::RunFolder& folder,
                    int attempt,
                    const std::string& resume_from,
                    std::optional<double> time) {
  const nlohmann::json json = {{"event", "attempt"},
                               {"attempt", attempt},
                               {"host", "atlas"},
                               {"pid", 4711},
                               {"resume_from", resume_from},
                               {"devices", {"cpu"}},
                               {"time", time.value_or(first_event_time)}};
  append_line(folder, json.dump() + "\n");
}

void append_ended(const run::RunFolder& folder,
                  const std::string& status,
                  const std::string& reason,
                  double busy_elsewhere,
                  const std::vector<std::string>& changed_inputs) {
  const int exit_status = status == "completed" ? 0 : status == "stopped" ? 3 : 1;
  nlohmann::json json = {{"event", "ended"},
                         {"attempt", 1},
                         {"status", status},
                         {"exit_status", exit_status},
                         {"signal", 0},
                         {"reason", reason},
                         {"hint", ""},
                         {"retry", false},
                         {"stderr", nlohmann::json::array()},
                         {"time", first_event_time + 75}};
  if (busy_elsewhere > 0) json["busy_elsewhere"] = busy_elsewhere;
  if (!changed_inputs.empty()) json["changed_inputs"] = changed_inputs;
  append_line(folder, json.dump() + "\n");
}

double time_of_day(int day) { return first_event_time + 86400.0 * (day - 20); }

void set_times(const run::RunFolder& folder, double of_losses, double of_end) {
  std::istringstream lines(read_file(folder.events_file()));
  std::string changed;
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json json = nlohmann::json::parse(line);
    const std::string event = json.at("event");
    if (event == "train" || event == "evaluation") json["time"] = of_losses;
    if (event == "finished" || event == "ended") json["time"] = of_end;
    changed += json.dump() + "\n";
  }
  write_file_atomic(folder.events_file(), changed);
}

run::RunFolder make_unstarted_run(const std::filesystem::path& runs_dir, const MadeRun& run) {
  run::RunRecord record;
  record.identity = identity_of(run);
  record.key = run::run_key(record.identity);
  record.id = run.id.empty() ? run.config + "-" + record.key : run.id;
  record.project = run.project;
  record.workspace = run.workspace;
  record.workspace_id = run.workspace_id;
  record.config = run.config;
  record.created = run.created;
  record.imported = run.imported;
  record.planned_seeds = run.planned_seeds;
  record.planned_tables = run.planned_tables;
  record.planned_config = run.planned_config;
  record.drawn_order = run.drawn_order;
  record.repeats = run.repeats;
  record.entropy_floor = run.entropy_floor;
  record.repeated_sentences = run.repeated_sentences;
  record.command = "forge run " + run.config;
  const run::RunFolder folder(runs_dir / record.id);
  make_directories(folder.path());
  write_file_atomic(folder.config_file(), config::to_json(run.experiment).dump());
  write_file_atomic(folder.origin_file(), "{}");
  write_file_atomic(folder.record_file(), run::to_json(record).dump());
  return folder;
}

run::RunFolder make_queued_run(const std::filesystem::path& runs_dir, const MadeRun& run) {
  const run::RunFolder folder = make_unstarted_run(runs_dir, run);
  queue::QueueEntry entry;
  entry.run = folder.id();
  entry.devices = {{"cpu", 1}};
  queue::Queue(runs_dir).put(entry);
  return folder;
}

run::RunFolder make_completed_run(const std::filesystem::path& runs_dir,
                                  const MadeRun& run,
                                  const Outcome& outcome) {
  const run::RunFolder folder = make_unstarted_run(runs_dir, run);
  const int64_t steps = run.experiment.train.max_steps;
  append_training(folder, run, steps);
  // No two seeds have the same loss to the last bit, unless a test wants it.
  const double other_seed =
      outcome.is_exact ? 0 : double(run.experiment.seed) - double(config::Experiment().seed);
  const double eval_loss = outcome.eval_loss + 1e-9 * other_seed;
  append_event(
      folder,
      worker::Evaluation{steps, eval_loss, 8192, 0.75, outcome.scores, outcome.validation_loss});
  worker::Finished finished;
  finished.completed = true;
  finished.step = steps;
  finished.eval_loss = eval_loss;
  finished.train_loss = 3.5;
  finished.tokens_per_second = outcome.tokens_per_second;
  finished.wall_seconds = 75;
  finished.peak_memory_bytes = outcome.peak_memory_bytes;
  finished.peak_resident_bytes = outcome.peak_memory_bytes + (int64_t{200} << 20);
  finished.parameters = run.parameters;
  finished.shared_device = outcome.shared_device;
  append_event(folder, finished);
  append_ended(folder, "completed", "", outcome.busy_elsewhere, outcome.changed_inputs);
  write_file_atomic(folder.done_file(), "");
  return folder;
}

run::RunFolder make_failed_run(const std::filesystem::path& runs_dir,
                               const MadeRun& run,
                               int64_t step,
                               const std::string& reason) {
  const run::RunFolder folder = make_unstarted_run(runs_dir, run);
  append_training(folder, run, step);
  append_ended(folder, "failed", reason);
  return folder;
}

run::RunFolder make_diverged_run(const std::filesystem::path& runs_dir,
                                 const MadeRun& run,
                                 int64_t step) {
  const run::RunFolder folder = make_unstarted_run(runs_dir, run);
  append_training(folder, run, step);
  worker::Failed failed{"the training loss is nan", "", ""};
  failed.diverged = true;
  append_event(folder, failed);
  run::AttemptEnded ended;
  ended.exit_status = 1;
  ended.signal = 0;
  ended.reason = failed.message;
  ended.diverged = true;
  run::EventLog(folder.events_file()).append(ended, 1);
  return folder;
}

run::RunFolder make_stopped_run(const std::filesystem::path& runs_dir,
                                const MadeRun& run,
                                int64_t step) {
  const run::RunFolder folder = make_unstarted_run(runs_dir, run);
  append_training(folder, run, step);
  append_ended(folder, "stopped");
  return folder;
}

FileLock make_running_run(const std::filesystem::path& runs_dir, const MadeRun& run, int64_t step) {
  const run::RunFolder folder = make_unstarted_run(runs_dir, run);
  FileLock lock = FileLock::acquire(folder.lock_file());
  append_training(folder, run, step);
  return lock;
}

}  // namespace forge::tests
