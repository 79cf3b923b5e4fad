#include <poll.h>
#include <algorithm>
#include <iostream>
#include <optional>

#include "app/command_line.h"
#include "app/runs.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/data/rows/token_cache.h"
#include "core/results/metrics.h"
#include "core/results/store/overview.h"
#include "core/results/store/result_store.h"
#include "core/run/queue/hosts.h"

namespace forge::app {
namespace {

constexpr int live_interval_ms = 1000;

struct StatusOptions {
  int ended = 5;
  bool watch = false;
  bool json = false;
};

std::string duration(const std::optional<double>& seconds) {
  return seconds ? human_duration(*seconds) : "?";
}

/// "cuda:0 free, cuda:1 busy, cpu 1 of 2 cores busy"
std::string devices_text(const std::vector<store::DeviceUse>& devices) {
  std::vector<std::string> parts;
  for (const auto& [device, taken] : devices) {
    std::string text = device.name + " ";
    if (taken == 0) {
      text += "free";
    } else if (taken >= device.units) {
      text += "busy";
    } else if (device.name == "cpu") {
      text += std::to_string(taken) + " of " + std::to_string(device.units) + " cores busy";
    } else {
      text += std::to_string(100 * taken / device.units) + " % busy";
    }
    parts.push_back(text);
  }
  return join(parts, ", ");
}

std::string running_text(const std::vector<store::RunningRun>& running) {
  std::vector<std::vector<std::string>> lines = {
      {"Running", "Step", "Done", "Train Loss", "Eval Loss", "Tok/s", "ETA", "Device"}};
  for (const store::RunningRun& now : running) {
    const store::RunSummary& run = now.run;
    const bool known = run.max_steps > 0;
    lines.push_back({run.id,
                     known ? with_thousands(now.step) + "/" + with_thousands(run.max_steps) : "-",
                     known ? std::to_string(100 * now.step / run.max_steps) + " %" : "-",
                     loss_text(run.metric(results::train_loss_name)),
                     loss_text(run.metric(results::eval_loss_name)),
                     run.metric(results::tokens_per_second_name)
                         ? with_thousands(int64_t(*run.metric(results::tokens_per_second_name)))
                         : "-",
                     duration(now.seconds_left),
                     now.device.empty() ? run.device_type : now.device});
  }
  std::string text = aligned(lines, {1, 2, 3, 4, 5, 6});
  for (const store::RunningRun& now : running) {
    if (!now.stopped.empty()) text += now.run.id + " waits: " + now.stopped + ".\n";
  }
  return text;
}

/// "cuda:0 or cuda:1", "cpu of host 'a', last seen 3m 10s ago", "cpu, for alice"
std::string place_text(const store::WaitingRun& run) {
  std::string text = queue::devices_text(run.entry);
  if (run.host_silent_seconds)
    text += " of " + queue::host_text(run.entry.host, *run.host_silent_seconds);
  if (!run.owner.empty()) text += ", for " + tables::printable(run.owner);
  return text;
}

/// What the waiting runs wait for that no device gives them.
std::string hindrance_text(const std::vector<store::WaitingRun>& waiting) {
  std::string text;
  const bool elsewhere = std::any_of(waiting.begin(), waiting.end(), [](const auto& run) {
    return run.host_silent_seconds.has_value();
  });
  if (elsewhere) text += "'forge runs resume RUN' here takes over a run of another host.\n";
  const bool others = std::any_of(
      waiting.begin(), waiting.end(), [](const auto& run) { return !run.owner.empty(); });
  if (others) text += "A run for another user is started by that user's forge alone.\n";
  for (const store::WaitingRun& run : waiting) {
    if (!run.closed.empty() && run.owner.empty())
      text += run.entry.run + " waits for " + tables::printable(run.closed) + ".\n";
    if (!run.limits.empty())
      text += run.entry.run + " waits for " + tables::printable(run.limits) + ".\n";
    if (!run.no_room.empty())
      text += run.entry.run + " waits for room: " + tables::printable(run.no_room) + ".\n";
  }
  return text;
}

std::string waiting_text(const std::vector<store::WaitingRun>& waiting) {
  std::vector<std::vector<std::string>> lines = {
      {"Queued", "Steps", "Time", "Priority", "Since", "Device"}};
  for (const store::WaitingRun& run : waiting) {
    lines.push_back({run.entry.run,
                     with_thousands(run.steps_left),
                     duration(run.seconds),
                     std::to_string(run.entry.priority),
                     run.entry.submitted.substr(0, 16) + "Z",
                     place_text(run)});
  }
  return aligned(lines, {1, 2, 3}) + hindrance_text(waiting);
}

/// What is going on at some moment.
struct Status {
  store::Overview overview;
  std::string unserved;  ///< the next run that nothing starts, ""
  std::vector<data::Preparation> preparations;

  bool is_idle() const {
    return overview.running.empty() && overview.waiting.empty() && preparations.empty();
  }
};

Status status_now(store::ResultStore& store, const std::filesystem::path& runs_dir, int ended) {
  return {store::overview(store, runs_dir, size_t(ended)),
          queue::unserved_run(runs_dir),
          data::list_preparations(user_cache_dir())};
}

std::string preparations_text(const std::vector<data::Preparation>& preparations) {
  std::string text;
  for (const data::Preparation& preparation : preparations)
    text += "Data is prepared by " + preparation.holder + ": " + preparation.name +
            "; runs that need it are not queued yet\n";
  return text;
}

std::string overview_text(const Status& status) {
  const store::Overview& overview = status.overview;
  std::string text;
  if (!overview.devices.empty()) text += "Devices: " + devices_text(overview.devices) + "\n";
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "\n") + part; };
  if (!overview.running.empty()) add(running_text(overview.running));
  if (!overview.waiting.empty()) add(waiting_text(overview.waiting));
  text += unserved_text(status.unserved) + preparations_text(status.preparations);
  if (overview.running.empty() && overview.waiting.empty()) text += "No active or queued runs.\n";
  if (!overview.ended.empty()) add(result_table(overview.ended));
  return text;
}

nlohmann::json overview_json(const Status& status) {
  const store::Overview& overview = status.overview;
  const std::string& unserved = status.unserved;
  const auto preparations =
      json_list(status.preparations, [](const data::Preparation& preparation) -> nlohmann::json {
        return {{"holder", preparation.holder}, {"data", preparation.name}};
      });
  nlohmann::json json = {
      {"devices", nlohmann::json::array()},
      {"preparing", preparations},
      {"running", nlohmann::json::array()},
      {"waiting", nlohmann::json::array()},
      {"ended", nlohmann::json::array()},
      {"unserved", unserved.empty() ? nlohmann::json() : nlohmann::json(unserved)}};
  for (const auto& [device, taken] : overview.devices)
    json["devices"].push_back({{"name", device.name}, {"units", device.units}, {"taken", taken}});
  for (const store::RunningRun& run : overview.running) {
    nlohmann::json entry = app::to_json(run.run);
    entry["device"] = run.device;
    entry["step"] = run.step;
    entry["seconds_left"] = or_null(run.seconds_left);
    entry["stopped"] = run.stopped.empty() ? nlohmann::json() : nlohmann::json(run.stopped);
    json["running"].push_back(std::move(entry));
  }
  for (const store::WaitingRun& run : overview.waiting) {
    nlohmann::json entry = to_json(run.entry);
    entry["config"] = run.config;
    entry["host_silent_seconds"] = or_null(run.host_silent_seconds);
    entry["owner"] = run.owner.empty() ? nlohmann::json() : nlohmann::json(run.owner);
    entry["closed"] = run.closed.empty() ? nlohmann::json() : nlohmann::json(run.closed);
    entry["limits"] = run.limits.empty() ? nlohmann::json() : nlohmann::json(run.limits);
    entry["no_room"] = run.no_room.empty() ? nlohmann::json() : nlohmann::json(run.no_room);
    entry["steps_left"] = run.steps_left;
    entry["seconds"] = or_null(run.seconds);
    json["waiting"].push_back(std::move(entry));
  }
  for (const store::RunSummary& run : overview.ended) json["ended"].push_back(app::to_json(run));
  return json;
}

/// Redrawn in place until Ctrl-C or another signal that ends it, or until no run is active, queued
/// or prepared.
void watch(store::ResultStore& store,
           const std::filesystem::path& runs_dir,
           const StatusOptions& options) {
  const Interrupts interrupts;
  allow_detaching();  // a closed terminal ends it, too, with the screen restored
  std::optional<LiveText> live;
  if (!options.json) live.emplace();
  while (interrupts.count() == 0 && !detach_requested()) {
    const Status status = status_now(store, runs_dir, options.ended);
    if (live) {
      live->show(overview_text(status));
    } else {
      std::cout << tables::printable_json(json_text(overview_json(status))) << std::endl;
    }
    if (status.is_idle()) return;
    ::poll(nullptr, 0, live_interval_ms);  // a signal ends it early
  }
}

int show_status(const Context& context, const StatusOptions& options) {
  const std::filesystem::path runs_dir = context.runs_dir();
  if (!std::filesystem::exists(runs_dir)) {
    const Status status{{}, "", data::list_preparations(user_cache_dir())};
    if (options.json) return print_json(overview_json(status));
    std::cerr << "no runs in " << shown_path(runs_dir) << "; 'forge run CONFIG' starts one\n"
              << tables::printable_lines(preparations_text(status.preparations));
    return 0;
  }
  store::ResultStore store = open_store(context);
  if (options.watch) {
    watch(store, runs_dir, options);
    return 0;
  }
  const Status status = status_now(store, runs_dir, options.ended);
  print_warnings(status.overview.warnings);
  if (options.json) return print_json(overview_json(status));
  std::cout << overview_text(status);
  return 0;
}

}  // namespace

void add_status(const Command& app) {
  const auto [command, options] =
      app.add_command("status", "Show active, queued and recently ended runs", show_status);
  command
      .examples(
          "forge status\n"
          "forge status --watch\n"
          "forge status --json | jq '.waiting[].run'")
      .see_also("forge runs, forge runs logs");
  command.add_flag("-w,--watch", options.watch, "Refresh every second until no run is active");
  command.add_option("-n,--ended", options.ended, "Number of ended runs to show")
      .at_least(0)
      .show_default();
  add_json_option(command, options.json, "Print JSON; with --watch one object per line");
}

}  // namespace forge::app
