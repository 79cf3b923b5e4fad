#include "core/results/store/overview.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/results/store/result_store.h"
#include "core/run/host.h"
#include "core/run/queue/hosts.h"
#include "core/run/run_folder.h"

namespace forge::store {
namespace {

/// For this number of steps at the pace of `run`.
double estimated_seconds(int64_t steps, const RunSummary& run) {
  return run.metric(results::wall_seconds_name).value_or(0) * double(steps) / double(run.max_steps);
}

}  // namespace

PastRuns::PastRuns(const std::vector<RunSummary>& runs) {
  for (const RunSummary& run : runs) {
    by_id_.emplace(run.id, &run);
    const bool has_duration = run.status == run::RunState::completed && run.max_steps > 0 &&
                              run.metric(results::wall_seconds_name).value_or(0) > 0;
    if (!has_duration) continue;
    RunLikeness likeness{run.project, run.config, run.tokens_per_step, std::nullopt};
    newest_.emplace(likeness, &run);
    likeness.device_name = run.device_name;
    newest_.emplace(std::move(likeness), &run);
  }
}

const RunSummary* PastRuns::find(const std::string& id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

const RunSummary* PastRuns::newest_similar(const RunLikeness& likeness) const {
  const auto found = newest_.find(likeness);
  return found == newest_.end() ? nullptr : found->second;
}

Forecast forecast(const PastRuns& past,
                  const run::PlannedRun& planned,
                  const run::RunInputs& inputs) {
  const nlohmann::json& train = inputs.experiment.at("train");
  const int64_t tokens_per_step =
      train.at("batch_size").get<int64_t>() * train.at("seq_len").get<int64_t>();
  Forecast forecast;
  forecast.steps = train.at("max_steps").get<int64_t>();
  if (planned.action == run::Action::cached) forecast.steps = 0;
  const RunSummary* own = past.find(planned.record.id);
  if (own && forecast.steps > 0) forecast.steps = std::max<int64_t>(forecast.steps - own->step, 0);
  const RunSummary* like = past.newest_similar(
      {inputs.project, inputs.config, tokens_per_step, inputs.backend.environment.device_name});
  if (!like) return forecast;
  forecast.seconds = estimated_seconds(forecast.steps, *like);
  if (const auto memory = like->metric(results::peak_memory_name))
    forecast.memory_bytes = std::llround(*memory);
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
    const auto event = worker::event_from_json(worker::object_from_line(read_file(file)));
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
  if (speed > 0 && run.max_steps > running.step)
    running.seconds_left = double((run.max_steps - running.step) * run.tokens_per_step) / speed;
  return running;
}

WaitingRun waiting(const fs::path& runs_dir,
                   const queue::QueueEntry& entry,
                   const PastRuns& past,
                   const ResultStore& store) {
  WaitingRun waiting{entry, std::nullopt, "", 0, std::nullopt};
  if (entry.host != run::host_name())
    waiting.host_silent_seconds = unix_time() - queue::last_sign_of_life(runs_dir, entry);
  const RunSummary* found = past.find(entry.run);
  const nlohmann::json config = store.config(entry.run);
  if (!found || !config.is_object()) return waiting;
  waiting.config = found->config;
  const nlohmann::json train = config.value("train", nlohmann::json::object());
  waiting.steps_left = std::max<int64_t>(train.value("max_steps", int64_t{0}) - found->step, 0);
  const int64_t tokens = train.value("batch_size", int64_t{0}) * train.value("seq_len", int64_t{0});
  const RunSummary* like = past.newest_similar({found->project, found->config, tokens, {}});
  if (like) waiting.seconds = estimated_seconds(waiting.steps_left, *like);
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
      if (overview.ended.size() < max_ended) overview.ended.push_back(run);
      // It may have ended since the queue was read.
      if (!queue::is_queued(runs_dir, run.id)) queued.erase(run.id);
    }
  }
  const PastRuns past(snapshot.runs);
  for (const queue::QueueEntry& entry : snapshot.entries) {
    if (queued.count(entry.run) > 0)
      overview.waiting.push_back(waiting(runs_dir, entry, past, store));
  }
  std::reverse(overview.running.begin(), overview.running.end());
  return overview;
}

}  // namespace forge::store
