#include "app/tables.h"

#include <iostream>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/report/published.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

std::vector<store::ConfiguredRun> runs_of(const Context& context, const project::Project& project) {
  const std::filesystem::path runs_dir = context.runs_dir();
  if (!std::filesystem::exists(runs_dir)) return {};
  store::ResultStore store(store::store_path(runs_dir));
  for (const std::string& warning : store.sync(runs_dir).warnings) std::cerr << "warning: " << warning << "\n";
  store::RunFilter filter;
  filter.project = project.path;
  return store.configured_runs(filter);
}

std::filesystem::path tables_folder(const project::Project& project) { return project.folder / "tables"; }

}  // namespace

std::vector<std::string> table_names(const project::Project& project) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(tables_folder(project), missing)) {
    const std::filesystem::path file = entry.path();
    // Published figures lie beside the tables that show them.
    if (file.extension() == ".yaml" && file.stem() != "published") names.push_back(file.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<report::Ablation> build_tables(const Context& context,
                                           const project::Project& project,
                                           const std::vector<std::string>& names,
                                           const TableOptions& options) {
  const std::vector<std::string> known = table_names(project);
  std::vector<std::string> configs;
  for (const project::Config& config : project.configs) configs.push_back(config.name);
  const std::vector<store::ConfiguredRun> runs = runs_of(context, project);
  std::vector<report::Ablation> tables;
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = did_you_mean(name, known);
      throw Error("project '" + project.path + "' has no table '" + name + "'", {},
                  !near.empty() ? near : known.empty() ? "tables are files of the project: tables/NAME.yaml"
                                                       : "its tables: " + join(known, ", "));
    }
    const std::filesystem::path folder = tables_folder(project);
    const report::TableSpec table = report::read_table(shown_path(folder / (name + ".yaml")), configs);
    report::AblationOptions ablation_options;
    ablation_options.profile = options.profile;
    if (options.published) {
      if (table.published.empty()) throw Error("table '" + name + "' names no published figures");
      ablation_options.published = report::read_published(shown_path(folder / table.published));
    }
    tables.push_back(report::build_ablation(table, runs, ablation_options));
  }
  return tables;
}

}  // namespace forge::app
