#include "app/select_runs.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>

#include "app/enqueue.h"
#include "app/halving_search.h"
#include "app/run_order.h"
#include "app/table_runs.h"
#include "app/tables.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/json.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/config/check.h"
#include "core/config/experiment.h"
#include "core/config/keys.h"
#include "core/lint/check.h"
#include "core/results/tables/table_design.h"
#include "core/run/identity.h"
#include "core/run/sweep_file.h"

namespace forge::app {
namespace {

/// The sweeps of the command line. Those that the project declares are read from their files.
struct Sweeps {
  std::vector<run::Sweep> values;
  std::vector<run::RandomKey> random_keys;
  run::SampleCount samples;
  std::optional<run::HalvingRule> halving;
  std::vector<std::string> configs;  ///< those that declared sweeps name
};

/// A value of a project's file as it would be typed in this folder: a path in a file is relative to
/// the project's.
std::string typed_here(const project::Project& project,
                       const std::string& key,
                       const std::string& value) {
  const fs::path here = fs::current_path();
  if (!config::is_path_key(key) || is_same_path(here, project.folder)) return value;
  const bool is_quoted = !value.empty() && value[0] == '"';
  const std::string path = is_quoted ? parse_json(value).get<std::string>() : value;
  const bool is_relative = !path.empty() && path != "null" && path[0] != '/' &&
                           !starts_with(path, "~/") && !starts_with(path, config::corpora_prefix);
  if (!is_relative) return value;
  const std::string typed = (project.folder / path).lexically_relative(here).string();
  return is_quoted ? json_text(nlohmann::json(typed)) : typed;
}

run::SweepFile declared_sweep(const project::Project& project, const std::string& name) {
  require_declared(project,
                   "sweep",
                   name,
                   sweep_names(project),
                   "give values, --sweep optimizer.lr=3e-4,1e-3, or write a file sweeps/NAME.yaml "
                   "in the project");
  run::SweepFile file =
      run::read_sweep_file(shown_path(project.folder / "sweeps" / (name + ".yaml")));
  for (run::Sweep& sweep : file.sweeps)
    for (std::string& value : sweep.values) value = typed_here(project, sweep.path, value);
  for (run::RandomKey& key : file.random_keys)
    for (std::string& value : key.distribution.choices)
      value = typed_here(project, key.path, value);
  return file;
}

void add_declared(const run::SweepFile& declared, Sweeps& sweeps) {
  const auto append = [](const auto& more, auto& list) {
    list.insert(list.end(), more.begin(), more.end());
  };
  append(declared.sweeps, sweeps.values);
  append(declared.random_keys, sweeps.random_keys);
  append(declared.configs, sweeps.configs);
  if (declared.samples.count > 0 && sweeps.samples.count > 0)
    throw Error("two sweeps say how many samples to draw, and all keys are drawn together",
                "name one of them, or write one file");
  if (declared.samples.count > 0) sweeps.samples = declared.samples;
  if (declared.halving && sweeps.halving)
    throw Error("two sweeps say how runs are halved", "name one of them, or write one file");
  if (declared.halving) sweeps.halving = declared.halving;
}

Sweeps read_sweeps(const Context& context, const RunSelection& selection) {
  Sweeps sweeps;
  for (const std::string& text : selection.sweeps) {
    if (text.find('=') == std::string::npos) {
      add_declared(declared_sweep(context.project(), text), sweeps);
    } else if (auto random = run::parse_random_key(text)) {
      sweeps.random_keys.push_back(std::move(*random));
    } else {
      sweeps.values.push_back(run::parse_sweep(text));
    }
  }
  if (selection.sample_count > 0) sweeps.samples.count = selection.sample_count;
  if (!selection.sample_seed.empty())
    sweeps.samples.seed = uint64_t(run::sweep_integer(selection.sample_seed, 0, "--sample-seed"));
  if (selection.halving > 0) {
    if (!sweeps.halving) sweeps.halving.emplace();
    sweeps.halving->first = selection.halving;
  }
  return sweeps;
}

/// The points that are drawn, none without such keys.
std::vector<run::Overrides> drawn_samples(const Sweeps& sweeps) {
  const bool draws = !sweeps.random_keys.empty();
  if (draws != (sweeps.samples.count > 0))
    throw Error(draws ? "the values of '" + sweeps.random_keys.front().path +
                            "' are drawn, and nobody says how many"
                      : "--samples is the number of draws, and no key has values that are drawn",
                draws ? "--samples 8 draws eight points"
                      : "for example --sweep \"optimizer.lr=log_uniform(1e-4,1e-2)\"");
  if (!draws) return {};
  return run::draw_samples(sweeps.random_keys, sweeps.samples.count, sweeps.samples.seed);
}

/// Throws Error for a key that is both set and swept.
void require_no_double_setting(const Sweeps& sweeps, const std::vector<std::string>& overrides) {
  std::vector<std::string> paths = texts_of(sweeps.values, &run::Sweep::path);
  for (const run::RandomKey& key : sweeps.random_keys) paths.push_back(key.path);
  for (const std::string& path : paths)
    require_not_set(overrides, path, "the sweep of '" + path + "'");
}

/// The configs that the selection names, in that order. Those of --all may be models, which do not
/// train.
std::vector<SelectedConfig> select_configs(const Context& context, const RunSelection& selection) {
  const int ways =
      int{selection.all} + int{!selection.table.empty()} + int{!selection.configs.empty()};
  if (ways > 1) {
    std::vector<std::string> given = {};
    if (!selection.configs.empty()) given.push_back("the config " + join(selection.configs, ", "));
    if (!selection.table.empty()) given.push_back("--table " + selection.table);
    if (selection.all) given.emplace_back("--all");
    throw Error(join(given, " and ") + " each select the configs to run",
                "give one of them; a table's configs are those of its rows");
  }
  if (ways == 0) {
    throw Error(
        "name the configs to run, or use --all for every training config of the project, "
        "--table for the configs of a table, or --sweep with a sweep that the project declares",
        "'forge ls' lists them");
  }
  std::vector<SelectedConfig> selected;
  if (selection.all) {
    const project::Project project = context.project();
    print_new_warnings(project::misnamed_warnings(project));
    for (const project::Config& config : project.configs)
      selected.push_back({{project, config}, {}});
  }
  for (const std::string& name : selection.configs) {
    if (name.empty())
      throw Error("the name of a config is empty", "is a variable of the shell empty?");
    if (!project::is_pattern(name)) {
      selected.push_back({context.find_config(name), {}});
      continue;
    }
    const project::Project project = context.project();
    for (const project::Config& config : project::configs_matching(project, name))
      selected.push_back({{project, config}, {}});
  }
  return selected;
}

/// The seeds of --seed, or as many as --seeds says, from that of --seed or the config's own on.
run::Sweep selected_seeds(const RunSelection& selection, int64_t own_seed) {
  if (selection.seed_count == 0) return run::parse_seeds(selection.seeds);
  if (selection.seeds.empty()) return run::seeds_from(own_seed, selection.seed_count);
  const std::vector<std::string> named = run::parse_seeds(selection.seeds).values;
  if (named.size() > 1)
    throw Error("--seed names " + counted(named.size(), "seed") + ", and --seeds asks for " +
                    std::to_string(selection.seed_count),
                "give one of them; with a single --seed, --seeds counts from that one on");
  return run::seeds_from(std::stoll(named.front()), selection.seed_count);
}

/// The key of the config by its files alone, in the profile of a run of it; run::no_own_config
/// where it is none without settings.
std::string own_config_key(const Context& context,
                           const config::Document& document,
                           const CheckedRun& run,
                           const LaunchOptions& options) {
  std::vector<std::string> profile;
  bool is_alone = true;
  for (const std::string& setting : options.overrides) {
    if (starts_with(setting, "profile=")) profile.push_back(setting);
    is_alone = is_alone && (starts_with(setting, "profile=") || starts_with(setting, "seed="));
  }
  if (is_alone) return run::config_key(run.resolved.json);
  config::ResolveOptions resolve_options = context.resolve_options(profile);
  resolve_options.block_texts = options.block_texts;
  resolve_options.backend_has_gpu = run.backend.environment.device_type != "cpu";
  try {
    config::ResolvedConfig own = config::resolve(document, resolve_options);
    settle_for_backend(context, run.backend, options, own);
    return run::config_key(own.json);
  } catch (const Error&) {
    return run::no_own_config;
  }
}

/// The runs of a config, one for each combination of swept values; none of a model that --all
/// selects.
std::vector<CheckedRun> config_runs(const Context& context,
                                    const SelectedConfig& selected,
                                    const RunSelection& selection,
                                    const std::vector<run::Sweep>& swept,
                                    const LaunchOptions& options) {
  const config::ParsedConfig parsed = context.parse(selected.config);
  const bool is_call = !parsed.root->tag.empty();  // of another config, which may train
  if (selection.all && !is_call && !project::summary_of(*parsed.root).trains) return {};
  const config::Document document = context.document(selected.config, parsed);
  if (selection.all && is_call && (!document.root || !document.root->find("train"))) return {};
  int64_t own_seed = 0;
  if (selection.seed_count > 0)
    own_seed = context.resolve(document, options.overrides).experiment.seed;
  std::vector<run::Sweep> sweeps;
  if (!selection.seeds.empty() || selection.seed_count > 0)
    sweeps.push_back(selected_seeds(selection, own_seed));
  sweeps.insert(sweeps.end(), swept.begin(), swept.end());
  sweeps.insert(sweeps.end(), selected.sweeps.begin(), selected.sweeps.end());
  std::vector<CheckedRun> runs;
  std::map<std::pair<std::string, std::string>, std::string> own_keys;  // by profile and device
  std::set<uint64_t> planned_seeds;
  for (const run::Overrides& variation : run::sweep_points(sweeps, selection.samples)) {
    LaunchOptions changed = options;
    changed.overrides.insert(changed.overrides.end(), variation.begin(), variation.end());
    runs.push_back(check_config(context, document, changed));
    CheckedRun& run = runs.back();
    const auto [own_key, is_new] = own_keys.try_emplace(
        {run.resolved.experiment.profile, run.backend.environment.device_type});
    if (is_new) own_key->second = own_config_key(context, document, run, changed);
    run.planned_config = own_key->second;
    if (!variation.empty()) run.label += " (" + join(variation, ", ") + ")";
    planned_seeds.insert(run.resolved.experiment.seed);
  }
  for (CheckedRun& run : runs) run.planned_seeds.assign(planned_seeds.begin(), planned_seeds.end());
  return runs;
}

/// What a project's tables ask of a config.
struct TablePlan {
  std::set<std::string> claims;               ///< their keys
  std::map<std::string, std::string> tables;  ///< their names and designs
};

/// By config.
std::map<std::string, TablePlan> table_plans(const project::Project& project) {
  std::map<std::string, TablePlan> plans;
  const auto warn = [](const Error& problem) {
    print_once(
        describe_remark("warning: the runs are planned without this table: " + problem.message(),
                        problem.where(),
                        problem.hint()));
  };
  for (const tables::TableSpec& table : readable_tables(project, warn)) {
    for (const tables::RowSpec& row : table.rows) {
      TablePlan& plan = plans[row.config];
      plan.tables[table.name] = tables::recorded_design(table);
      for (const tables::ClaimSpec& claim : table.claims)
        plan.claims.insert(tables::claim_key(claim));
    }
  }
  return plans;
}

void add_table_plans(const std::vector<SelectedConfig>& selected,
                     std::vector<std::vector<CheckedRun>>& of_configs) {
  std::map<std::string, std::map<std::string, TablePlan>> of_projects;
  for (size_t i = 0; i < selected.size(); ++i) {
    const project::Project& project = selected[i].config.project;
    const auto [found, is_new] = of_projects.try_emplace(project.path);
    if (is_new) found->second = table_plans(project);
    for (CheckedRun& run : of_configs[i]) {
      const TablePlan& plan = found->second[run.resolved.config_name];
      run.planned_claims.assign(plan.claims.begin(), plan.claims.end());
      run.planned_tables = plan.tables;
    }
  }
}

}  // namespace

namespace {

/// Equal of configs that make one run: they differ in names, logging and the like at most.
std::string what_it_computes(const config::ResolvedConfig& resolved) {
  const nlohmann::json::json_pointer weights("/train/initial_weights");
  nlohmann::json parts = {
      resolved.project, resolved.config_name, run::identity_config(resolved.json)};
  // Hashes stand in an identity for the files of these.
  for (const char* section : {"data", "tokenizer", "external"})
    parts.push_back(resolved.json.value(section, nlohmann::json()));
  parts.push_back(resolved.json.value(weights, nlohmann::json()));
  return json_text(parts);
}

/// What each run of all configs computes, by its turn and its config; "" where a config has no run.
std::vector<std::vector<std::string>> keys_of(
    const std::vector<std::vector<CheckedRun>>& of_configs) {
  std::vector<std::vector<std::string>> keys;
  for (size_t config = 0; config < of_configs.size(); ++config) {
    const std::vector<CheckedRun>& runs = of_configs[config];
    if (keys.size() < runs.size())
      keys.resize(runs.size(), std::vector<std::string>(of_configs.size()));
    for (size_t turn = 0; turn < runs.size(); ++turn)
      keys[turn][config] = what_it_computes(runs[turn].resolved);
  }
  return keys;
}

/// Gives the runs their places in the order of training, which was drawn.
void give_places(const std::vector<std::vector<size_t>>& order_of_turns,
                 std::vector<std::vector<CheckedRun>>& of_configs) {
  if (of_configs.size() > 1) {
    const std::string id = new_group().name;
    for (std::vector<CheckedRun>& runs : of_configs)
      for (CheckedRun& run : runs) run.drawn_order = id;
  }
  int64_t place = 0;
  for (size_t turn = 0; turn < order_of_turns.size(); ++turn) {
    for (const size_t config : order_of_turns[turn])
      if (turn < of_configs[config].size()) of_configs[config][turn].place = place++;
  }
}

}  // namespace

void require_not_set(const std::vector<std::string>& overrides,
                     const std::string& key,
                     const std::string& other) {
  for (const std::string& setting : overrides) {
    if (setting.substr(0, setting.find('=')) == key)
      throw Error("--set " + setting + " and " + other + " set the same key", "give one of them");
  }
}

std::vector<std::string> sweep_names(const project::Project& project) {
  return yaml_names(project.folder / "sweeps");
}

std::vector<CheckedRun> check_configs(const Context& context,
                                      const std::vector<SelectedConfig>& configs,
                                      const RunSelection& selection,
                                      const std::vector<run::Sweep>& swept,
                                      const LaunchOptions& options) {
  std::vector<std::vector<CheckedRun>> of_configs(configs.size());
  LateProgress progress("reading configs");
  parallel_for(
      configs.size(),
      [&](size_t i) {
        of_configs[i] = config_runs(context, configs[i], selection, swept, options);
      },
      progress.reporter());
  add_table_plans(configs, of_configs);
  const std::vector<std::vector<std::string>> keys = keys_of(of_configs);
  if (selection.all && keys.empty())
    throw Error("project '" + context.project().path + "' has no training config");
  give_places(order_of_turns(keys, context.runs_dir().string()), of_configs);
  std::vector<CheckedRun> runs;
  std::map<std::string, std::string> labels;  // of what they compute
  for (size_t turn = 0; turn < keys.size(); ++turn) {
    for (size_t config = 0; config < of_configs.size(); ++config) {
      if (turn >= of_configs[config].size()) continue;
      CheckedRun& run = of_configs[config][turn];
      const auto [same, is_new] = labels.emplace(keys[turn][config], run.label);
      if (is_new) {
        runs.push_back(std::move(run));
      } else if (same->second != run.label) {
        std::cerr << tables::printable(run.label) << ": the same run as "
                  << tables::printable(same->second) << "\n";
      }
    }
  }
  return runs;
}

namespace {

/// Warns of blocks in the configs' own files that override nothing, or what a config they extend
/// sets: '[override]' for '[overrides]' would train the baseline under the config's name. 'forge
/// check' finds them, and more, in any number of configs.
void warn_of_lost_settings(const Context& context, const std::vector<SelectedConfig>& selected) {
  constexpr size_t most = 32;  // checking one takes as long as resolving it
  const std::set<std::string> lost = {"unknown-block",
                                      "overrides-without-super",
                                      "section-replaced",
                                      "dotted-key-wins",
                                      "repeated-key",
                                      "unused-inline",
                                      "outside-blocks",
                                      "never-read"};
  std::map<std::string, lint::Selection> selections;  // by file
  for (const SelectedConfig& each : selected) {
    if (selections.size() > most) return;
    const project::Config& config = each.config.config;
    selections.try_emplace(config.file.string(),
                           lint::Selection{each.config.project, project::ConfigList({config}), {}});
  }
  std::vector<lint::Selection> list;
  for (auto& [file, selection] : selections) list.push_back(std::move(selection));
  for (const auto& [finding, configs] :
       lint::check(list, {}, context.host_environment()).findings) {
    const SourceSpan where = finding.where;
    const bool is_own =
        where && std::any_of(selections.begin(), selections.end(), [&](const auto& selection) {
          return is_same_path(selection.first, where.source->name);
        });
    if (lost.count(finding.rule) == 0 || !is_own || finding.severity == lint::Severity::note)
      continue;
    print_once(describe_remark("warning: " + finding.message, finding.where, finding.hint));
  }
}

}  // namespace

SelectedRuns check_selected_configs(const Context& context,
                                    const RunSelection& selection,
                                    const LaunchOptions& options) {
  const Sweeps sweeps = read_sweeps(context, selection);
  require_no_double_setting(sweeps, options.overrides);
  if (!selection.seeds.empty())
    require_not_set(options.overrides, "seed", "--seed " + selection.seeds);
  RunSelection wanted = selection;
  wanted.samples = drawn_samples(sweeps);
  if (wanted.configs.empty() && wanted.table.empty() && !wanted.all)
    wanted.configs = sweeps.configs;
  if (sweeps.halving && !wanted.table.empty())
    throw Error("a table needs complete runs, and halving stops most of them",
                "run the sweep of the table's configs without --table");
  const std::vector<SelectedConfig> selected = select_configs(context, wanted);
  warn_of_lost_settings(context, selected);
  if (!wanted.table.empty()) return runs_of_table(context, wanted, sweeps.values, options);
  SelectedRuns runs{check_configs(context, selected, wanted, sweeps.values, options), ""};
  if (sweeps.halving) runs.halving = settled_rule(*sweeps.halving, runs.runs);
  return runs;
}

}  // namespace forge::app
