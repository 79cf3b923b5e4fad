#include "app/run_order.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
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

size_t first_in_turn(const Context& context,
                     const std::vector<SelectedConfig>& configs,
                     const std::vector<std::vector<CheckedRun>>& runs) {
  if (configs.size() < 2) return 0;
  const std::optional<store::ResultStore> store = find_store(context);
  if (!store) return 0;
  using Name = std::tuple<std::string, std::string, std::string>;  // workspace, project, config
  std::map<Name, size_t> places;
  std::set<std::pair<size_t, int64_t>> wanted;  // places and seeds
  for (size_t i = 0; i < configs.size(); ++i) {
    const auto& [project, config] = configs[i].config;
    places[{project.workspace_root.string(), project.path, config.name}] = i;
    for (const CheckedRun& run : runs[i])
      wanted.emplace(i, static_cast<int64_t>(run.resolved.experiment.seed));
  }
  const auto place_of = [&](const store::RunSummary& run) {
    return places.find({run.workspace, run.project, run.config});
  };
  const auto is_older = [](const store::RunSummary& a, const store::RunSummary& b) {
    return tables::begun_at(a) < tables::begun_at(b);
  };
  store::RunFilter of_folder;
  of_folder.runs_dir = context.runs_dir();
  std::vector<store::RunSummary> made, made_before;
  for (store::RunSummary& run : store->runs(of_folder)) {
    const auto place = place_of(run);
    if (place == places.end()) continue;
    const bool is_one_of_them = wanted.count({place->second, run.seed}) > 0;
    (is_one_of_them ? made : made_before).push_back(std::move(run));
  }
  if (!made.empty()) return place_of(*std::min_element(made.begin(), made.end(), is_older))->second;
  if (made_before.empty()) return 0;
  const store::RunSummary newest =
      *std::max_element(made_before.begin(), made_before.end(), is_older);
  const store::RunSummary* first = &newest;
  for (const store::RunSummary& run : made_before) {
    const bool is_of_its_command =
        run.command == newest.command && run.planned_seeds == newest.planned_seeds;
    if (is_of_its_command && is_older(run, *first)) first = &run;
  }
  return (place_of(*first)->second + 1) % configs.size();
}

}  // namespace forge::app
