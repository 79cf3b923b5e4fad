#include "app/run_plan.h"

#include <iostream>
#include <map>
#include <optional>

#include "app/terminal.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/store/forecast.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

/// "10 runs: 8 new, 2 cached; about 3m 20s, judged by the newest runs like them".
std::string plan_summary(const std::map<run::Action, int>& counts, double seconds, int unknown) {
  std::vector<std::string> parts;
  int all = 0, to_do = 0;
  for (const auto& [action, count] : counts) {
    parts.push_back(std::to_string(count) + " " + name_of(action));
    all += count;
    if (action != run::Action::cached) to_do += count;
  }
  std::string text = std::to_string(all) + (all == 1 ? " run: " : " runs: ") + join(parts, ", ");
  if (to_do == 0) return text;
  if (unknown == to_do) return text + "; no past run like them tells how long";
  text += "; about " + human_duration(seconds) + ", judged by the newest runs like them";
  if (unknown > 0) text += ", without " + std::to_string(unknown) + " that no run is like";
  return text;
}

}  // namespace

void print_plan(const Context& context,
                const std::vector<Launch>& launches,
                const LaunchOptions& options,
                bool json) {
  const std::filesystem::path runs_dir = context.runs_dir();
  std::optional<store::ResultStore> store;
  if (std::filesystem::exists(runs_dir)) {
    store.emplace(store::store_path(runs_dir));
    store->sync(runs_dir);
  }
  const std::vector<store::RunSummary> past =
      store ? store->runs() : std::vector<store::RunSummary>();
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> lines = {{"Run", "What", "Steps", "Time", "Memory"}};
  double seconds = 0;
  int unknown = 0;
  std::map<run::Action, int> counts;
  for (const Launch& launch : launches) {
    const PreparedLaunch prepared = prepare_launch(context, launch, options);
    const store::Forecast forecast = store::forecast(past, prepared.planned, prepared.inputs);
    const bool to_do = prepared.planned.action != run::Action::cached;
    ++counts[prepared.planned.action];
    seconds += forecast.seconds.value_or(0);
    unknown += to_do && !forecast.seconds;
    const std::string time = forecast.seconds ? human_duration(*forecast.seconds) : "?";
    lines.push_back({launch.label,
                     name_of(prepared.planned.action),
                     with_thousands(forecast.steps),
                     to_do ? time : "—",
                     forecast.memory_bytes ? human_bytes(double(*forecast.memory_bytes)) : "?"});
    nlohmann::json entry = {{"run", prepared.planned.record.id},
                            {"config", launch.resolved.config_name},
                            {"label", launch.label},
                            {"action", name_of(prepared.planned.action)},
                            {"steps", forecast.steps},
                            {"seconds", nullptr},
                            {"memory_bytes", nullptr}};
    if (forecast.seconds) entry["seconds"] = *forecast.seconds;
    if (forecast.memory_bytes) entry["memory_bytes"] = *forecast.memory_bytes;
    list.push_back(std::move(entry));
  }
  if (json) {
    std::cout << json_text(list, 2) << "\n";
    return;
  }
  std::cout << aligned(lines, {2, 3, 4}) << "\n" << plan_summary(counts, seconds, unknown) << "\n";
}

}  // namespace forge::app
