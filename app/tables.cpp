#include "app/tables.h"

#include <iostream>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/resolve.h"
#include "core/report/published.h"
#include "core/store/location.h"
#include "core/store/result_store.h"

namespace forge::app {
namespace {

std::vector<store::ConfiguredRun> runs_of(const Context& context, const project::Project& project) {
  const std::filesystem::path runs_dir = context.runs_dir();
  if (!std::filesystem::exists(runs_dir)) return {};
  store::ResultStore store(store::store_path(runs_dir));
  for (const std::string& warning : store.sync(runs_dir).warnings)
    std::cerr << "warning: " << warning << "\n";
  store::RunFilter filter;
  filter.project = project.path;
  return store.configured_runs(filter);
}

/// Takes out the runs whose model is not that of their config as it stands: one that --set changed,
/// or that was trained before the config was edited. They must not stand under the config's name.
std::vector<report::LeftOut> take_out_other_models(const Context& context,
                                                   const project::Project& project,
                                                   std::vector<store::ConfiguredRun>& runs) {
  std::map<std::pair<std::string, std::string>, nlohmann::json> models;  // by config and profile
  const auto model_of = [&](const std::string& config,
                            const std::string& profile) -> const nlohmann::json& {
    const auto [entry, is_new] = models.try_emplace({config, profile});
    if (is_new && project.find(config)) {
      config::ResolveOptions options;
      options.surroundings = context.surroundings();
      options.overrides = {"profile=" + profile};
      entry->second = config::resolve(project, config, options).json.at("model");
    }
    return entry->second;
  };
  std::vector<report::LeftOut> left_out;
  const auto is_other = [&](const store::ConfiguredRun& run) {
    const nlohmann::json& model = model_of(run.summary.config, run.summary.profile);
    const nlohmann::json own = run.config.value("model", nlohmann::json());
    if (model.is_null() || own == model) return false;
    for (const nlohmann::json& change : nlohmann::json::diff(model.flatten(), own.flatten())) {
      // The pointer of a flattened key: "/~1canon~1set" is "canon.set".
      std::string key;
      for (const std::string& part : split(change.at("path").get<std::string>().substr(3), '~')) {
        key += key.empty() ? part : "." + part.substr(1);
      }
      const std::string value = change.contains("value") ? change.at("value").dump() : "nothing";
      left_out.push_back(
          {run.summary.config, "model." + key + " is " + value + ", not the config's", 1});
      break;
    }
    return true;
  };
  runs.erase(std::remove_if(runs.begin(), runs.end(), is_other), runs.end());
  return left_out;
}

std::filesystem::path tables_folder(const project::Project& project) {
  return project.folder / "tables";
}

}  // namespace

std::vector<std::string> table_names(const project::Project& project) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(tables_folder(project), missing)) {
    const std::filesystem::path file = entry.path();
    // Published figures lie beside the tables that show them.
    if (file.extension() == ".yaml" && file.stem() != "published")
      names.push_back(file.stem().string());
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
  std::vector<store::ConfiguredRun> runs = runs_of(context, project);
  const std::vector<report::LeftOut> other_models = take_out_other_models(context, project, runs);
  std::vector<report::Ablation> tables;
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const std::string near = did_you_mean(name, known);
      throw Error("project '" + project.path + "' has no table '" + name + "'",
                  {},
                  !near.empty()   ? near
                  : known.empty() ? "tables are files of the project: tables/NAME.yaml"
                                  : "its tables: " + join(known, ", "));
    }
    const std::filesystem::path folder = tables_folder(project);
    const report::TableSpec table =
        report::read_table(shown_path(folder / (name + ".yaml")), configs);
    report::AblationOptions ablation_options;
    ablation_options.profile = options.profile;
    if (options.published) {
      if (table.published.empty()) throw Error("table '" + name + "' names no published figures");
      ablation_options.published = report::read_published(shown_path(folder / table.published));
    }
    report::Ablation ablation = report::build_ablation(table, runs, ablation_options);
    for (const report::LeftOut& other : other_models) {
      const bool in_table =
          std::any_of(table.rows.begin(), table.rows.end(), [&](const report::RowSpec& row) {
            return row.config == other.config;
          });
      if (in_table) ablation.left_out.push_back(other);
    }
    tables.push_back(std::move(ablation));
  }
  return tables;
}

}  // namespace forge::app
