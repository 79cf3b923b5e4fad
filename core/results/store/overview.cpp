#include "core/results/store/overview.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json_file.h"
#include "core/base/owner.h"
#include "core/base/parallel.h"
#include "core/config/experiment.h"
#include "core/model/cost.h"
#include "core/results/store/result_store.h"
#include "core/run/checkpoint_space.h"
#include "core/run/host.h"
#include "core/run/queue/hosts.h"
#include "core/run/queue/keeper.h"
#include "core/run/queue/owners.h"
#include "core/run/run_folder.h"

namespace forge::store {
namespace {

/// Enough to know a machine by; reading more configs would only take time.
constexpr size_t most_past_runs = 200;

/// Operations of a step of training, with those that are done twice.
double operations_per_step(const config::Experiment& experiment) {
  const config::TrainConfig& train = experiment.train;
  const double of_token =
      model::flops_per_token(experiment.model, train.seq_len).total() +
      model::recomputed_flops_per_token(experiment.model, train.seq_len, train.recompute);
  return of_token * double(train.batch_size) * double(train.seq_len);
}

/// Operations of the evaluations during that many steps and after the last one.
double evaluation_operations(const config::Experiment& experiment, int64_t steps) {
  const config::TrainConfig& train = experiment.train;
  const int64_t evaluations = 1 + (train.eval_every > 0 ? steps / train.eval_every : 0);
  return model::flops_per_token(experiment.model, train.seq_len).forward() *
         double(train.eval_rows + train.validation_rows) * double(train.seq_len) *
         double(evaluations);
}

std::string precision_of(const config::Experiment& experiment) {
  return schema::name_of(experiment.train.precision) + " " +
         schema::name_of(experiment.train.bfloat16_weights);
}

/// None where the config is not one of this version.
std::optional<config::Experiment> experiment_of(const nlohmann::json& config) {
  try {
    return config::experiment_from_json(config);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// The speed at steps of that many operations; `speeds` are of runs like it, newest first.
std::optional<double> speed_at(double operations, const std::vector<const PastSpeed*>& speeds) {
  const PastSpeed* below = nullptr;
  const PastSpeed* above = nullptr;
  for (const PastSpeed* speed : speeds) {
    const double theirs = speed->operations_per_step;
    if (theirs <= operations && (!below || theirs > below->operations_per_step)) below = speed;
    if (theirs >= operations && (!above || theirs < above->operations_per_step)) above = speed;
  }
  if (!below && !above) return std::nullopt;
  if (!below || !above || below->operations_per_step == above->operations_per_step)
    return (below ? below : above)->operations_per_second;
  const double from = std::log(below->operations_per_step);
  const double to = std::log(above->operations_per_step);
  const double slow = std::log(below->operations_per_second);
  const double fast = std::log(above->operations_per_second);
  return std::exp(slow + (fast - slow) * (std::log(operations) - from) / (to - from));
}

}  // namespace

PastRuns::PastRuns(const std::vector<RunSummary>& runs, const ConfigOf& config_of) {
  for (const RunSummary& run : runs) {
    by_id_.emplace(run.id, &run);
    const double tokens_per_second = run.metric(results::tokens_per_second_name).value_or(0);
    const bool has_speed = run.status == run::RunState::completed && run.tokens_per_step > 0 &&
                           tokens_per_second > 0 && !is_mixed(run.processes);
    if (!has_speed || speeds_.size() == most_past_runs) continue;
    const auto experiment = experiment_of(config_of(run.id));
    if (!experiment) continue;
    const double operations = operations_per_step(*experiment);
    speeds_.push_back({experiment->backend,
                       precision_of(*experiment),
                       run.device_type,
                       run.device_name,
                       run.threads,
                       processes_value(run).get<int64_t>(),
                       operations,
                       operations * tokens_per_second / double(run.tokens_per_step)});
  }
}

const RunSummary* PastRuns::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

Forecast forecast(const PastRuns& past, const RemainingWork& work) {
  Forecast forecast;
  forecast.steps = work.steps;
  const std::optional<config::Experiment> experiment = experiment_of(work.experiment);
  if (!experiment) return forecast;
  if (experiment->backend != "external")
    forecast.memory_bytes =
        model::training_bytes(experiment->model, experiment->training_shape()).total();
  if (work.steps == 0) {
    forecast.seconds = 0;
    return forecast;
  }
  std::vector<const PastSpeed*> alike;
  for (const PastSpeed& speed : past.speeds()) {
    if (speed.backend == experiment->backend && speed.precision == precision_of(*experiment) &&
        speed.device_type == work.device_type && speed.threads == work.threads &&
        speed.processes == experiment->parallel.processes.count &&
        (work.device_name.empty() || speed.device_name == work.device_name))
      alike.push_back(&speed);
  }
  const double step = operations_per_step(*experiment);
  if (const std::optional<double> speed = speed_at(step, alike))
    forecast.seconds =
        (step * double(work.steps) + evaluation_operations(*experiment, work.steps)) / *speed;
  return forecast;
}

namespace {

/// Queue and runs as they were at one moment.
struct Snapshot {
  std::vector<queue::QueueEntry> entries;
  std::vector<RunSummary> runs;
  std::vector<std::string> warnings;
};

/// The queue is read before the runs, so that no run is missed that begins in between. Where one
/// ends meanwhile, both are read again: the next one may have begun already.
Snapshot take_snapshot(ResultStore& store, const fs::path& runs_dir) {
  constexpr int max_attempts = 20;
  Snapshot snapshot;
  for (int attempt = 0; attempt < max_attempts; ++attempt) {
    snapshot = {};
    snapshot.entries = queue::read_entries(runs_dir, &snapshot.warnings);
    const SyncReport synced = store.sync(runs_dir);
    snapshot.warnings.insert(
        snapshot.warnings.end(), synced.warnings.begin(), synced.warnings.end());
    snapshot.runs = store.runs();
    const bool one_has_ended =
        std::any_of(snapshot.runs.begin(), snapshot.runs.end(), [&](const RunSummary& run) {
          return run.status == run::RunState::running &&
                 !run::RunFolder(runs_dir / run.id).is_running();
        });
    if (!one_has_ended) break;
  }
  return snapshot;
}

std::vector<DeviceUse> devices_in_use(const fs::path& runs_dir) {
  const fs::path folder = queue::leases_folder(runs_dir);
  std::vector<DeviceUse> devices;
  for (const fs::path& file : folder_entries(folder)) {
    queue::LeaseDevice device{file.filename().string(), queue::gpu_units};
    if (device.name == "cpu") device.units = usable_cores();
    devices.push_back({device, queue::used_units(folder, device)});
  }
  return devices;
}

}  // namespace

int64_t current_step(const fs::path& runs_dir, const RunSummary& run) {
  if (run.status != run::RunState::running) return run.step;
  try {
    const fs::path file = run::RunFolder(runs_dir / run.id).progress_file();
    const auto event = worker::event_from_json(
        worker::object_from_line(read_file_within(file, max_json_file_bytes)));
    if (const auto* progress = std::get_if<worker::Progress>(&event))
      return std::max(progress->step, run.step);
  } catch (const Error&) {
    // It has said nothing yet, or is just being written.
  }
  return run.step;
}

namespace {

RunningRun running(const RunSummary& run, const fs::path& runs_dir, const std::string& device) {
  RunningRun running{run, device, current_step(runs_dir, run), std::nullopt};
  const double speed = run.metric(results::tokens_per_second_name).value_or(0);
  running.stopped = run::RunFolder(runs_dir / run.id).stopped_processes().text();
  if (speed > 0 && run.max_steps > running.step)
    running.seconds_left = double((run.max_steps - running.step) * run.tokens_per_step) / speed;
  return running;
}

WaitingRun waiting(const fs::path& runs_dir,
                   const queue::QueueEntry& entry,
                   const PastRuns& past,
                   const nlohmann::json& config) {
  WaitingRun waiting;
  waiting.entry = entry;
  if (entry.host != run::host_name()) {
    // A sign that cannot be seen may be given this moment.
    const double now = unix_time();
    waiting.host_silent_seconds = now - queue::last_sign_of_life(runs_dir, entry).value_or(now);
  }
  const run::RunFolder folder(runs_dir / entry.run);
  if (const auto closed = queue::closed_path(folder)) {
    waiting.closed = queue::closed_text(*closed, folder);
    if (!closed->is_own) waiting.owner = closed->owner;
  } else {
    waiting.closed = queue::foreign_entry_text(runs_dir, entry.run);
    if (!waiting.closed.empty() && !queue::is_own_entry(runs_dir, entry.run))
      waiting.owner = owner_name(queue::entry_file(runs_dir, entry.run));
  }
  const RunSummary* found = past.find(entry.run);
  if (!found || !config.is_object()) return waiting;
  waiting.config = found->config;
  const nlohmann::json train = config.value("train", nlohmann::json::object());
  waiting.steps_left =
      std::max<int64_t>(train.value("max_steps", int64_t{0}) - found->kept_step, 0);
  waiting.seconds =
      forecast(past,
               {config, waiting.steps_left, found->device_type, found->device_name, found->threads})
          .seconds;
  return waiting;
}

}  // namespace

Overview overview(ResultStore& store, const fs::path& runs_dir, size_t max_ended) {
  Snapshot snapshot = take_snapshot(store, runs_dir);
  Overview overview;
  overview.warnings = std::move(snapshot.warnings);
  overview.devices = devices_in_use(runs_dir);
  std::map<std::string, const queue::QueueEntry*> queued;
  for (const queue::QueueEntry& entry : snapshot.entries) queued[entry.run] = &entry;
  for (const RunSummary& run : snapshot.runs) {
    if (run.status == run::RunState::running) {
      const auto entry = queued.find(run.id);
      const std::string device = entry == queued.end() ? "" : entry->second->device;
      overview.running.push_back(running(run, runs_dir, device));
      if (entry != queued.end()) queued.erase(entry);
    } else if (is_final(run.status)) {
      // One that goes on waits; but it may have ended since the queue was read.
      if (queued.count(run.id) > 0 && queue::is_queued(runs_dir, run.id)) continue;
      queued.erase(run.id);
      if (overview.ended.size() < max_ended) overview.ended.push_back(run);
    }
  }
  if (!queued.empty()) {
    const ConfigOf config_of = [&](const std::string& id) { return store.config(id); };
    const PastRuns past(snapshot.runs, config_of);
    for (const queue::QueueEntry& entry : snapshot.entries) {
      if (queued.count(entry.run) > 0)
        overview.waiting.push_back(waiting(runs_dir, entry, past, config_of(entry.run)));
    }
    std::map<std::string, bool> lacks_limits;  // by the commands that ask for a run
    for (WaitingRun& waiting : overview.waiting) {
      const queue::QueueEntry& entry = waiting.entry;
      if (entry.host != run::host_name() || !waiting.closed.empty()) continue;
      const auto [known, is_new] = lacks_limits.try_emplace(queue::askers_text(entry));
      if (is_new) known->second = queue::lacks_limits(runs_dir, snapshot.entries, entry);
      if (known->second) waiting.limits = queue::limits_text(entry.run);
    }
    const auto next = std::find_if(
        overview.waiting.begin(), overview.waiting.end(), [](const WaitingRun& waiting) {
          return waiting.entry.host == run::host_name() && waiting.closed.empty();
        });
    if (next != overview.waiting.end())
      next->no_room = run::missing_room(run::RunFolder(runs_dir / next->entry.run));
  }
  std::reverse(overview.running.begin(), overview.running.end());
  return overview;
}

}  // namespace forge::store
