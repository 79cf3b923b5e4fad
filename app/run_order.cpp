#include "app/run_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "app/runs.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/run_times.h"

namespace forge::app {

size_t place_in_turn(size_t turn, size_t place, size_t configs, size_t first) {
  const size_t at = turn % 2 == 0 ? place : configs - 1 - place;
  return (at + turn / 2 * 2 + first) % configs;
}

size_t first_in_turn(const Context& context, const std::vector<SelectedConfig>& configs) {
  if (configs.size() < 2) return 0;
  const std::optional<store::ResultStore> store = find_store(context);
  if (!store) return 0;
  using Name = std::tuple<std::string, std::string, std::string>;  // workspace, project, config
  std::map<Name, size_t> places;
  for (size_t i = 0; i < configs.size(); ++i) {
    const auto& [project, config] = configs[i].config;
    places[{project.workspace_root.string(), project.path, config.name}] = i;
  }
  const auto place_of = [&](const store::RunSummary& run) {
    return places.find({run.workspace, run.project, run.config});
  };
  store::RunFilter of_folder;
  of_folder.runs_dir = context.runs_dir();
  std::vector<store::RunSummary> runs;
  for (store::RunSummary& run : store->runs(of_folder))
    if (place_of(run) != places.end()) runs.push_back(std::move(run));
  if (runs.empty()) return 0;
  const auto is_older = [](const store::RunSummary& a, const store::RunSummary& b) {
    return tables::begun_at(a) < tables::begun_at(b);
  };
  const store::RunSummary newest = *std::max_element(runs.begin(), runs.end(), is_older);
  const auto is_of_other_command = [&](const store::RunSummary& run) {
    return run.command != newest.command || run.planned_seeds != newest.planned_seeds;
  };
  runs.erase(std::remove_if(runs.begin(), runs.end(), is_of_other_command), runs.end());
  const store::RunSummary& first = *std::min_element(runs.begin(), runs.end(), is_older);
  return (place_of(first)->second + 1) % configs.size();
}

}  // namespace forge::app
