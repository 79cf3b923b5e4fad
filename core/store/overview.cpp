#include "core/store/overview.h"

#include <algorithm>
#include <map>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/parallel.h"
#include "core/queue/queue.h"
#include "core/run/run_folder.h"
#include "core/store/forecast.h"
#include "core/store/result_store.h"

namespace forge::store {
namespace {

std::vector<DeviceUse> devices_in_use(const fs::path& runs_dir) {
  const fs::path folder = queue::leases_folder(runs_dir);
  std::vector<DeviceUse> devices;
  std::error_code missing;
  for (const auto& file : fs::directory_iterator(folder, missing)) {
    queue::Device device{file.path().filename().string(), queue::gpu_units};
    if (device.name == "cpu") device.units = usable_cores();
    devices.push_back({device, queue::taken_units(folder, device)});
  }
  std::sort(devices.begin(), devices.end(), [](const DeviceUse& a, const DeviceUse& b) {
    return a.device.name < b.device.name;
  });
  return devices;
}

/// The step that the run is at, which its events know only once in a logging window.
int64_t step_of(const run::RunFolder& folder, const RunSummary& run) {
  try {
    const auto event =
        protocol::event_from_json(protocol::object_from_line(read_file(folder.progress_file())));
    if (const auto* progress = std::get_if<protocol::Progress>(&event))
      return std::max(progress->step, run.step);
  } catch (const Error&) {
    // It has said nothing yet, or is just being written.
  }
  return run.step;
}

RunningRun running(const RunSummary& run, const run::RunFolder& folder, const std::string& device) {
  RunningRun running{run, device, step_of(folder, run), std::nullopt};
  if (run.tokens_per_second.value_or(0) > 0 && run.max_steps > running.step)
    running.seconds_left =
        double((run.max_steps - running.step) * run.tokens_per_step) / *run.tokens_per_second;
  return running;
}

WaitingRun waiting(const queue::Entry& entry,
                   const std::vector<RunSummary>& runs,
                   const ResultStore& store) {
  WaitingRun waiting{entry, "", 0, std::nullopt};
  const auto found = std::find_if(
      runs.begin(), runs.end(), [&](const RunSummary& run) { return run.id == entry.run; });
  const nlohmann::json config = store.config(entry.run);
  if (found == runs.end() || !config.is_object()) return waiting;
  waiting.config = found->config;
  const nlohmann::json train = config.value("train", nlohmann::json::object());
  waiting.steps_left = std::max<int64_t>(train.value("max_steps", int64_t{0}) - found->step, 0);
  const int64_t tokens = train.value("batch_size", int64_t{0}) * train.value("seq_len", int64_t{0});
  const RunSummary* like = newest_like(runs, {found->project, found->config, tokens, {}});
  if (like) waiting.seconds = seconds_for(waiting.steps_left, *like);
  return waiting;
}

}  // namespace

Overview overview(ResultStore& store, const fs::path& runs_dir, size_t most_ended) {
  Overview overview;
  overview.warnings = store.sync(runs_dir).warnings;
  overview.devices = devices_in_use(runs_dir);
  const std::vector<RunSummary> runs = store.runs();
  const std::vector<queue::Entry> entries = queue::read_entries(runs_dir, &overview.warnings);
  std::map<std::string, std::string> device_of;
  for (const queue::Entry& entry : entries) {
    const run::RunFolder folder(runs_dir / entry.run);
    if (FileLock::is_held(folder.lock_file())) {
      device_of[entry.run] = entry.device;
    } else {
      overview.waiting.push_back(waiting(entry, runs, store));
    }
  }
  for (const RunSummary& run : runs) {
    const run::RunFolder folder(runs_dir / run.id);
    if (run.status == run::RunState::running && FileLock::is_held(folder.lock_file())) {
      overview.running.push_back(running(run, folder, device_of[run.id]));
    } else if (is_final(run.status) && overview.ended.size() < most_ended) {
      overview.ended.push_back(run);
    }
  }
  std::reverse(overview.running.begin(), overview.running.end());
  return overview;
}

}  // namespace forge::store
