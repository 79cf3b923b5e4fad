#include "app/selection.h"

#include <algorithm>
#include <set>

#include "app/tables.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/json_text.h"
#include "core/base/text.h"
#include "core/run/sweep_file.h"

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
    if (const int64_t rows = table.best_of->selection_rows; rows > 0)
      sweeps.push_back({"train.selection_rows", {std::to_string(rows)}});
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

/// The sweeps of the command line, those that the project declares read from their files.
struct Sweeps {
  std::vector<run::Sweep> values;
  std::vector<std::string> configs;  ///< that declared ones bring along
};

run::SweepFile declared_sweep(const project::Project& project, const std::string& name) {
  const std::vector<std::string> known = sweep_names(project);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string near = did_you_mean(name, known);
    throw Error("project '" + project.path + "' declares no sweep '" + name + "'",
                {},
                !near.empty()   ? near
                : known.empty() ? "give values, --sweep optimizer.lr=3e-4,1e-3, or write a file "
                                  "sweeps/NAME.yaml in the project"
                                : "its sweeps: " + join(known, ", "));
  }
  return run::read_sweep_file(shown_path(project.folder / "sweeps" / (name + ".yaml")));
}

Sweeps asked_sweeps(const Context& context, const Selection& selection) {
  Sweeps sweeps;
  for (const std::string& text : selection.sweeps) {
    if (text.find('=') != std::string::npos) {
      sweeps.values.push_back(run::parse_sweep(text));
      continue;
    }
    run::SweepFile declared = declared_sweep(context.project(), text);
    sweeps.values.insert(sweeps.values.end(), declared.sweeps.begin(), declared.sweeps.end());
    sweeps.configs.insert(sweeps.configs.end(), declared.configs.begin(), declared.configs.end());
  }
  return sweeps;
}

/// The configs that were asked for, in that order.
std::vector<Selected> selected_configs(const Context& context, const Selection& selection) {
  const int ways =
      int{selection.all} + int{!selection.table.empty()} + int{!selection.configs.empty()};
  if (ways != 1) {
    throw Error(
        "name the configs to run, or give --all for every training config of the project, "
        "--table for those of a table, or --sweep for those of a sweep that it declares",
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
std::vector<run::Sweep> sweeps_of(const Selection& selection,
                                  const Sweeps& asked,
                                  int64_t own_seed) {
  std::vector<run::Sweep> sweeps;
  if (!selection.seeds.empty()) sweeps.push_back(run::parse_seeds(selection.seeds));
  if (selection.seed_count > 0) sweeps.push_back(run::seeds_from(own_seed, selection.seed_count));
  sweeps.insert(sweeps.end(), asked.values.begin(), asked.values.end());
  return sweeps;
}

/// A config's launches, one for each combination of what is swept.
std::vector<Launch> launches_of(const Context& context,
                                const Selected& selected,
                                const Selection& selection,
                                const Sweeps& asked,
                                const LaunchOptions& options) {
  int64_t own_seed = 0;
  if (selection.seed_count > 0)
    own_seed = check_launch(context, selected.config, options).resolved.experiment.seed;
  std::vector<run::Sweep> sweeps = sweeps_of(selection, asked, own_seed);
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

std::vector<std::string> sweep_names(const project::Project& project) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::directory_iterator(project.folder / "sweeps", missing)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<Launch> selected_launches(const Context& context,
                                      const Selection& selection,
                                      const LaunchOptions& options) {
  const Sweeps sweeps = asked_sweeps(context, selection);
  Selection wanted = selection;
  if (wanted.configs.empty() && wanted.table.empty() && !wanted.all)
    wanted.configs = sweeps.configs;
  std::vector<std::vector<Launch>> of_configs;
  size_t most = 0;
  for (const Selected& selected : selected_configs(context, wanted)) {
    of_configs.push_back(launches_of(context, selected, wanted, sweeps, options));
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
