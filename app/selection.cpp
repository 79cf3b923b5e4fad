#include "app/selection.h"

#include <algorithm>
#include <set>

#include "app/tables.h"
#include "core/base/error.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/run/variations.h"

namespace forge::app {
namespace {

/// What one run is made from.
struct Selected {
  ChosenConfig config;
  std::vector<run::Sweep> sweeps;  ///< that its selection brings along
};

std::vector<Selected> of_table(const Context& context, const std::string& name) {
  const project::Project project = context.project();
  const report::TableSpec table = read_table(project, name);
  std::vector<run::Sweep> sweeps;
  if (table.best_of) {
    sweeps.push_back({table.best_of->key, {}});
    for (const double value : table.best_of->values)
      sweeps.back().values.push_back(shortest(value));
  }
  std::vector<Selected> selected;
  for (const report::RowSpec& row : table.rows)
    selected.push_back(
        {context.chosen({project, project::config_of(project, row.config)}), sweeps});
  return selected;
}

std::vector<Selected> all_that_train(const Context& context) {
  const project::Project project = context.project();
  std::vector<Selected> selected;
  for (const project::Config& config : project.configs) {
    if (project::summarize(project, config, context.surroundings()).trains)
      selected.push_back({context.chosen({project, config}), {}});
  }
  if (selected.empty()) throw Error("project '" + project.path + "' has no training config");
  return selected;
}

/// The configs that were asked for, in that order.
std::vector<Selected> selected_configs(const Context& context, const Selection& selection) {
  const int ways =
      int{selection.all} + int{!selection.table.empty()} + int{!selection.configs.empty()};
  if (ways != 1) {
    throw Error(
        "name the configs to run, or give --all for every training config of the project, or "
        "--table for those of a table",
        {},
        "'forge ls' lists them");
  }
  if (selection.all) return all_that_train(context);
  if (!selection.table.empty()) return of_table(context, selection.table);
  std::vector<Selected> selected;
  for (const std::string& name : selection.configs) {
    if (!project::is_pattern(name)) {
      selected.push_back({context.config(name), {}});
      continue;
    }
    const project::Project project = context.project();
    for (const project::Config& config : project::configs_matching(project, name))
      selected.push_back({context.chosen({project, config}), {}});
  }
  return selected;
}

/// The sweeps of the command line; a number of seeds counts from the one that the config has.
std::vector<run::Sweep> sweeps_of(const Selection& selection, int64_t own_seed) {
  std::vector<run::Sweep> sweeps;
  if (!selection.seeds.empty()) sweeps.push_back(run::parse_seeds(selection.seeds));
  if (selection.seed_count > 0) sweeps.push_back(run::seeds_from(own_seed, selection.seed_count));
  for (const std::string& text : selection.sweeps) sweeps.push_back(run::parse_sweep(text));
  return sweeps;
}

/// A config's launches, one for each combination of what is swept.
std::vector<Launch> launches_of(const Context& context,
                                const Selected& selected,
                                const Selection& selection,
                                const LaunchOptions& options) {
  int64_t own_seed = 0;
  if (selection.seed_count > 0)
    own_seed = check_launch(context, selected.config, options).resolved.experiment.seed;
  std::vector<run::Sweep> sweeps = sweeps_of(selection, own_seed);
  sweeps.insert(sweeps.end(), selected.sweeps.begin(), selected.sweeps.end());
  std::vector<Launch> launches;
  for (const run::Variation& variation : run::variations_of(sweeps)) {
    LaunchOptions changed = options;
    changed.overrides.insert(changed.overrides.end(), variation.begin(), variation.end());
    launches.push_back(check_launch(context, selected.config, changed));
    if (!variation.empty()) launches.back().label += " (" + join(variation, ", ") + ")";
  }
  return launches;
}

}  // namespace

std::vector<Launch> selected_launches(const Context& context,
                                      const Selection& selection,
                                      const LaunchOptions& options) {
  std::vector<std::vector<Launch>> of_configs;
  size_t most = 0;
  for (const Selected& selected : selected_configs(context, selection)) {
    of_configs.push_back(launches_of(context, selected, selection, options));
    most = std::max(most, of_configs.back().size());
  }
  std::vector<Launch> launches;
  std::set<std::pair<std::string, std::string>> seen;
  for (size_t i = 0; i < most; ++i) {
    for (std::vector<Launch>& of_config : of_configs) {
      if (i >= of_config.size()) continue;
      const config::ResolvedConfig& resolved = of_config[i].resolved;
      if (seen.insert({resolved.project + ":" + resolved.config_name, json_text(resolved.json)})
              .second)
        launches.push_back(std::move(of_config[i]));
    }
  }
  return launches;
}

}  // namespace forge::app
