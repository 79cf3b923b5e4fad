#include "app/tables.h"

#include <array>
#include <map>
#include <set>

#include "app/runs.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/folders.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/own_blocks.h"
#include "core/config/resolve.h"
#include "core/project/workspace_id.h"
#include "core/results/store/overview.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/other_seeds.h"
#include "core/results/tables/read_table.h"

namespace forge::app {
namespace {

/// Measurements of a project's configs.
struct Findings {
  std::vector<store::ConfiguredRun> runs;
  std::vector<benchmark::Record> benchmarks;
  std::vector<tables::ExcludedRuns> excluded;      ///< those of other models or workspaces
  std::vector<store::ConfiguredRun> filtered_out;  ///< that do not meet --where
  std::vector<store::ConfiguredRun> archived;      ///< that are not shown for it
  std::vector<store::ConfiguredRun> other_models;  ///< than their configs have now
  std::vector<store::ConfiguredRun> elsewhere;     ///< in other projects, perhaps of the same
  tables::FirstRuns repetitions;                   ///< among all runs of the store
};

/// Why a run of the project's path is not the project's. Of a workspace that was made anew under
/// another path the id would tell that it is that one.
std::string elsewhere_text(const store::RunSummary& run, const project::Project& project) {
  const std::string text = "of the project of this path in the workspace " + run.workspace;
  const auto relation =
      project::relation_of({run.workspace, run.workspace_id}, project.workspace_root, project.path);
  if (relation != project::WorkspaceRelation::away) return text;
  return text + ", which is not there; if it is this one, '" + run.workspace_id + "' in " +
         shown_path(project::workspace_id_file(project.workspace_root)) + " says so";
}

/// Finds the runs of other projects that these have to do with: completed ones, which may be of the
/// same experiments, and all under the names of those that these repeat. Another workspace may have
/// a project of the same path, whose runs a reader would look for in the tables.
void find_elsewhere(const store::ResultStore& store,
                    const project::Project& project,
                    const std::vector<store::ConfiguredRun>& runs,
                    Findings& findings) {
  store::RunFilter every;
  every.archived = true;
  std::vector<store::RunSummary> all = store.runs(every), others;
  findings.repetitions = tables::first_runs_of(all);
  std::set<std::string> own_ids, experiments;
  for (const store::ConfiguredRun& run : runs) {
    own_ids.insert(run.summary.id);
    experiments.insert(tables::rough_experiment_key(run.summary));
  }
  std::vector<const store::RunSummary*> known, own;
  for (const store::RunSummary& run : all) {
    known.push_back(&run);
    if (own_ids.count(run.id) > 0) own.push_back(&run);
  }
  const std::set<std::string> behind = tables::RunHistory(known, findings.repetitions).behind(own);
  for (store::RunSummary& other : all) {
    if (own_ids.count(other.id) > 0) continue;
    const bool is_completed = other.status == run::RunState::completed;
    if (is_completed && other.project == project.path && other.archived == 0)
      tables::exclude(other, elsewhere_text(other, project), findings.excluded);
    const bool is_like_own =
        is_completed && experiments.count(tables::rough_experiment_key(other)) > 0;
    if (is_like_own || behind.count(other.id) > 0) others.push_back(std::move(other));
  }
  findings.elsewhere = store.with_configs(std::move(others));
}

Findings find(const Context& context,
              const project::Project& project,
              const TableOptions& options) {
  const std::optional<store::ResultStore> store = find_store(context);
  if (!store) return {};
  store::RunFilter filter = filter_of(context, project);
  filter.archived = true;
  store::BenchmarkFilter benchmark_filter;
  benchmark_filter.project = project.path;
  benchmark_filter.workspace = filter.workspace;
  benchmark_filter.runs_dir = filter.runs_dir;
  benchmark_filter.kind = benchmark::Kind::training;
  std::vector<store::ConfiguredRun> runs = store->configured_runs(filter);
  for (store::ConfiguredRun& run : runs)
    run.summary.step = store::current_step(context.runs_dir(), run.summary);
  Findings findings;
  find_elsewhere(*store, project, runs, findings);
  findings.benchmarks = store->benchmarks(benchmark_filter);
  if (!options.archived) {
    const auto shown = std::stable_partition(
        runs.begin(), runs.end(), [](const auto& run) { return run.summary.archived == 0; });
    findings.archived.assign(std::make_move_iterator(shown), std::make_move_iterator(runs.end()));
    runs.erase(shown, runs.end());
  }
  if (options.where.empty()) {
    findings.runs = std::move(runs);
    return findings;
  }
  findings.runs = store::select(runs, options.where);
  std::set<std::string> selected;
  for (const store::ConfiguredRun& run : findings.runs) selected.insert(run.summary.id);
  for (store::ConfiguredRun& run : runs) {
    if (selected.count(run.summary.id) == 0) findings.filtered_out.push_back(std::move(run));
  }
  return findings;
}

/// A project's configs as they are now.
class CurrentConfigs {
 public:
  CurrentConfigs(const Context& context, const project::Project& project)
      : context_(context), project_(project) {}

  /// Where another model differs from that of a config, "model.hidden_size is 64, not the
  /// config's"; "" where it does not, or the config is gone.
  std::string difference(const std::string& config,
                         const std::string& profile,
                         const nlohmann::json& other) {
    const nlohmann::json& current = current_config(config, profile, "cpu");
    if (current.is_null()) return "";
    const nlohmann::json model = deciding_part(current.at("model")), theirs = deciding_part(other);
    if (model == theirs) return "";
    const nlohmann::json changes = nlohmann::json::diff(model.flatten(), theirs.flatten());
    // The pointer of a flattened key: "/~1canon~1set" is "canon.set".
    std::string key;
    const auto pointer = changes.at(0).at("path").get<std::string>();
    for (const std::string& part : split(pointer.substr(3), '~')) {
      key += key.empty() ? part : "." + part.substr(1);
    }
    const bool has_value = changes[0].contains("value");
    const std::string value = has_value ? json_text(changes[0].at("value")) : "nothing";
    return "model." + key + " is " + value + ", not the config's";
  }

  /// The resolved config on a device of that type, with that profile or, for "", its own; null
  /// where the config, or its profile, is gone.
  const nlohmann::json& current_config(const std::string& config,
                                       const std::string& profile,
                                       const std::string& device_type) {
    const auto [entry, is_new] = configs_.try_emplace({config, profile, device_type});
    if (is_new && has_profile(config, profile)) {
      config::ResolveOptions options;
      if (!profile.empty()) options.overrides = {"profile=" + profile};
      options.host_environment = context_.host_environment();
      options.backend_has_gpu = device_type == "cuda";
      config::ResolvedConfig resolved = config::resolve(document(config), options);
      config::settle_for_device(resolved, device_type);
      entry->second = std::move(resolved.json);
    }
    return entry->second;
  }

  /// Throws Error if the config does not resolve.
  void require_resolves(const std::string& config) { context_.resolve(document(config), {}); }

  /// The profiles that the config declares; none of a config that is gone.
  std::vector<std::string> profiles(const std::string& config) {
    return project_.find(config) ? config::profiles_of(document(config))
                                 : std::vector<std::string>();
  }

 private:
  /// A run's config has its blocks described, a config as it is now has not.
  static nlohmann::json deciding_part(const nlohmann::json& model) {
    nlohmann::json experiment = {{"model", model}};
    config::reduce_own_blocks(experiment);
    return experiment.at("model");
  }

  bool has_profile(const std::string& config, const std::string& profile) {
    const std::vector<std::string> known = profiles(config);
    if (profile.empty()) return project_.find(config) != nullptr;
    return std::find(known.begin(), known.end(), profile) != known.end();
  }

  const config::Document& document(const std::string& config) {
    const auto [known, is_unread] = documents_.try_emplace(config);
    if (is_unread)
      known->second = config::read_document(project_, config, context_.host_environment());
    return known->second;
  }

  const Context& context_;
  const project::Project& project_;
  std::map<std::string, config::Document> documents_;             // by config
  std::map<std::array<std::string, 3>, nlohmann::json> configs_;  // by config, profile and device
};

/// Sets measurements apart whose model is not their config's current one, because of --set or a
/// later edit: they must not stand under the config's name.
void remove_other_models(CurrentConfigs& configs, Findings& findings) {
  const auto difference_of = [&](const store::ConfiguredRun& run) {
    const nlohmann::json model = run.config.value("model", nlohmann::json());
    return configs.difference(run.summary.config, run.summary.profile, model);
  };
  const auto is_of_its_model = [&](const store::ConfiguredRun& run) {
    return difference_of(run).empty();
  };
  const auto is_other_benchmark = [&](const benchmark::Record& record) {
    return !configs.difference(record.config, record.profile, record.model).empty();
  };
  for (const store::ConfiguredRun& run : findings.runs) {
    const std::string reason = difference_of(run);
    if (!reason.empty()) tables::exclude(run.summary, reason, findings.excluded);
  }
  for (auto* runs : {&findings.runs, &findings.filtered_out, &findings.archived}) {
    const auto others = std::stable_partition(runs->begin(), runs->end(), is_of_its_model);
    std::move(others, runs->end(), std::back_inserter(findings.other_models));
    runs->erase(others, runs->end());
  }
  auto& benchmarks = findings.benchmarks;
  benchmarks.erase(std::remove_if(benchmarks.begin(), benchmarks.end(), is_other_benchmark),
                   benchmarks.end());
}

/// The profiles of the rows' configs.
std::set<std::string> profiles_of(CurrentConfigs& configs, const tables::TableSpec& table) {
  std::set<std::string> profiles;
  for (const tables::RowSpec& row : table.rows) {
    for (std::string& name : configs.profiles(row.config)) profiles.insert(std::move(name));
  }
  return profiles;
}

/// Throws Error for a claim that waits for runs of a profile that no config has.
void require_claimed_profiles(CurrentConfigs& configs, const tables::TableSpec& table) {
  for (const tables::ClaimSpec& claim : table.claims) {
    if (claim.profile == tables::ClaimSpec().profile) continue;
    const std::set<std::string> known = profiles_of(configs, table);
    if (known.count(claim.profile) > 0) continue;
    const std::vector<std::string> names(known.begin(), known.end());
    throw Error("table '" + table.name + "': a claim is about profile '" + claim.profile +
                    "', which none of its configs has",
                did_you_mean(claim.profile, names, "there are " + join(names, ", ")));
  }
}

/// Throws Error for a row without runs whose config does not resolve: the command for its missing
/// runs would fail. Configs of runs are resolved to be compared with these.
void require_runnable_rows(CurrentConfigs& configs,
                           const Findings& findings,
                           const tables::TableSpec& table) {
  for (const tables::RowSpec& row : table.rows) {
    const bool has_runs = std::any_of(
        findings.runs.begin(), findings.runs.end(), [&](const store::ConfiguredRun& run) {
          return run.summary.config == row.config;
        });
    if (!has_runs) configs.require_resolves(row.config);
  }
}

/// Throws Error for a profile that no run has and none can have.
void require_profile(CurrentConfigs& configs,
                     const Findings& findings,
                     const std::vector<tables::TableSpec>& tables,
                     const std::string& profile) {
  std::set<std::string> known;
  for (const store::ConfiguredRun& run : findings.runs) known.insert(run.summary.profile);
  if (profile.empty() || known.count(profile) > 0 || tables.empty()) return;
  for (const tables::TableSpec& table : tables) known.merge(profiles_of(configs, table));
  if (known.count(profile) > 0) return;
  const std::vector<std::string> names(known.begin(), known.end());
  throw Error("no run and no config of these tables has the profile '" + profile + "'",
              did_you_mean(profile, names, "there are " + join(names, ", ")));
}

constexpr const char* table_hint = "a table is a file of the project: tables/NAME.yaml";

std::filesystem::path tables_folder(const project::Project& project) {
  return project.folder / "tables";
}

}  // namespace

std::vector<std::string> yaml_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& entry : required_entries(folder)) {
    const bool is_hidden = starts_with(entry.filename().string(), ".");  // as locks of editors
    if (entry.extension() == ".yaml" && !is_hidden) names.push_back(entry.stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void require_declared(const project::Project& project,
                      const std::string& kind,
                      const std::string& name,
                      const std::vector<std::string>& known,
                      const std::string& how) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  const std::string others = known.empty() ? how : "its " + kind + "s: " + join(known, ", ");
  throw Error("project '" + project.path + "' has no " + kind + " '" + name + "'",
              did_you_mean(name, known, others));
}

std::vector<std::string> table_names(const project::Project& project) {
  std::vector<std::string> names = yaml_names(tables_folder(project));
  // published.yaml holds the published results that the tables show.
  names.erase(std::remove(names.begin(), names.end(), "published"), names.end());
  return names;
}

void add_table_options(const Command& command, TableOptions& options) {
  add_project_option(command);
  command.add_option("--profile",
                     options.profile,
                     "Use runs of this profile [default: the one that fills most rows]");
  command.add_flag("--archived", options.archived, "Include archived runs");
  command.add_flag("--published", options.published, "Show published results beside ours");
}

std::vector<std::string> chosen_tables(const project::Project& project, const std::string& name) {
  if (!name.empty()) return {name};
  std::vector<std::string> names = table_names(project);
  if (!names.empty()) return names;
  throw Error("project '" + project.path + "' has no tables", table_hint);
}

tables::TableSpec read_table(const project::Project& project, const std::string& name) {
  require_declared(project, "table", name, table_names(project), table_hint);
  return tables::read_table(shown_path(tables_folder(project) / (name + ".yaml")),
                            texts_of(project.configs, &project::Config::name));
}

std::vector<tables::TableSpec> readable_tables(
    const project::Project& project, const std::function<void(const Error&)>& on_problem) {
  std::vector<tables::TableSpec> readable;
  for (const std::string& name : table_names(project)) {
    try {
      readable.push_back(read_table(project, name));
    } catch (const Error& problem) {
      if (on_problem) on_problem(problem);
    }
  }
  return readable;
}

std::vector<tables::Ablation> build_tables(const Context& context,
                                           const project::Project& project,
                                           const std::vector<std::string>& names,
                                           const TableOptions& options) {
  Findings findings = find(context, project, options);
  CurrentConfigs configs(context, project);
  std::vector<tables::TableSpec> specs;
  for (const std::string& name : names) {
    specs.push_back(read_table(project, name));
    specs.back().project_option = context.project_option();
  }
  require_profile(configs, findings, specs, options.profile);
  for (const tables::TableSpec& table : specs) {
    require_claimed_profiles(configs, table);
    require_runnable_rows(configs, findings, table);
  }
  remove_other_models(configs, findings);
  const std::vector<tables::TableSpec> project_tables = readable_tables(project);
  std::vector<tables::Ablation> tables;
  std::optional<store::ResultStore> curves;  // opened for the tables that need it
  for (tables::TableSpec& table : specs) {
    if (!options.by.empty()) tables::group_by(table, options.by);
    tables::AblationOptions ablation_options;
    ablation_options.profile = options.profile;
    if (options.published) {
      if (table.published.empty())
        throw Error("table '" + table.name + "' declares no published results");
      ablation_options.published =
          tables::read_published(shown_path(tables_folder(project) / table.published));
    }
    ablation_options.benchmarks = findings.benchmarks;
    ablation_options.filter = options.where;
    ablation_options.filtered_out = findings.filtered_out;
    ablation_options.archived = findings.archived;
    ablation_options.other_models = findings.other_models;
    ablation_options.project_tables = project_tables;
    ablation_options.elsewhere = findings.elsewhere;
    ablation_options.repetitions = findings.repetitions;
    ablation_options.evaluations = [&](const std::string& run_id) {
      if (!curves) curves.emplace(store::store_path(context.runs_dir()));
      return curves->evaluation_losses(run_id);
    };
    ablation_options.evaluation_rows = [&](const std::string& run_id) {
      if (!curves) curves.emplace(store::store_path(context.runs_dir()));
      return curves->evaluation_rows(run_id);
    };
    ablation_options.current_config =
        [&](const std::string& config, const std::string& profile, const std::string& device_type) {
          return configs.current_config(config, profile, device_type);
        };
    ablation_options.current_data = [&](const nlohmann::json& config) {
      return context.current_fingerprints(config);
    };
    ablation_options.current_weights = [&](const nlohmann::json& config) {
      return context.current_weights(config, project);
    };
    tables::Ablation ablation = tables::build_ablation(table, findings.runs, ablation_options);
    for (const tables::ExcludedRuns& other : findings.excluded) {
      const bool in_table =
          std::any_of(table.rows.begin(), table.rows.end(), [&](const tables::RowSpec& row) {
            return row.config == other.config;
          });
      if (in_table) ablation.excluded.push_back(other);
    }
    tables.push_back(std::move(ablation));
  }
  return tables;
}

RunsForTables runs_for_tables(const Context& context,
                              const project::Project& project,
                              const TableOptions& options) {
  Findings findings = find(context, project, options);
  std::vector<store::ConfiguredRun> others = std::move(findings.filtered_out);
  std::move(findings.archived.begin(), findings.archived.end(), std::back_inserter(others));
  return {std::move(findings.runs), std::move(others)};
}

std::vector<benchmark::Record> current_benchmarks(const Context& context,
                                                  const project::Project& project) {
  Findings findings = find(context, project, {});
  CurrentConfigs configs(context, project);
  remove_other_models(configs, findings);
  return std::move(findings.benchmarks);
}

std::vector<tables::Curve> training_curves(const Context& context, const tables::Ablation& table) {
  const std::filesystem::path runs_dir = context.runs_dir();
  std::vector<tables::Curve> curves;
  if (!std::filesystem::exists(runs_dir)) return curves;
  const store::ResultStore store(store::store_path(runs_dir));
  for (const tables::AblationRow& row : table.rows) {
    std::vector<store::RunSummary> runs = row.runs;
    if (runs.empty() && row.run) runs.push_back(*row.run);
    tables::Curve curve{row.spec.name, {}};
    for (const store::RunSummary& run : runs) {
      for (const store::LossPoint& point : store.training_losses(run.id))
        curve.points.emplace_back(double(point.tokens), point.loss);
    }
    std::sort(curve.points.begin(), curve.points.end());
    if (!curve.points.empty()) curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace forge::app
