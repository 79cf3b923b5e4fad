#include "app/table_runs.h"

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "app/runs.h"
#include "app/tables.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/model/cost.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/budget.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/table_design.h"
#include "core/run/host.h"
#include "core/run/identity.h"

namespace forge::app {
namespace {

/// What the command line says of a table's runs.
struct TableRequest {
  const Context& context;
  project::Project project;
  tables::TableSpec table;
  RunSelection selection;  ///< with the number of seeds that the table plans
  std::vector<run::Sweep> swept;
  LaunchOptions options;
};

/// The rows' configs, each with the sweeps that `sweeps_of` gives for it.
template <class SweepsOf>
std::vector<SelectedConfig> rows_with(const TableRequest& request, const SweepsOf& sweeps_of) {
  std::vector<SelectedConfig> selected;
  for (const tables::RowSpec& row : request.table.rows)
    selected.push_back(
        {{request.project, project::config_of(request.project, row.config)}, sweeps_of(row)});
  return selected;
}

run::Sweep sweep_over(const std::string& path, const std::vector<double>& values) {
  run::Sweep sweep{path, {}};
  for (const double value : values) sweep.values.push_back(tables::value_text(value));
  return sweep;
}

/// Sweeps for all that a table's best_of asks for, with these values.
std::vector<run::Sweep> sweeps_of(const tables::BestOfSpec& best_of,
                                  const std::vector<double>& values) {
  std::vector<run::Sweep> sweeps = {sweep_over(best_of.key, values)};
  if (best_of.validation_rows > 0)
    sweeps.push_back({"train.validation_rows", {std::to_string(best_of.validation_rows)}});
  return sweeps;
}

/// Seeds that were run before, but those that tune rows, in the order in which their runs were
/// made: by the config and by what its runs have in common but the seed.
using KnownSeeds = std::map<std::pair<std::string, std::string>, std::vector<int64_t>>;

KnownSeeds known_seeds(const TableRequest& request) {
  const std::optional<store::ResultStore> store = find_store(request.context);
  if (!store) return {};
  std::vector<store::ConfiguredRun> runs =
      store->configured_runs(filter_of(request.context, request.project));
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return std::tie(tables::made_at(a.summary), a.summary.id) <
           std::tie(tables::made_at(b.summary), b.summary.id);
  });
  KnownSeeds known;
  for (const store::ConfiguredRun& run : runs) {
    const int64_t seed = run.summary.seed;
    const auto& best_of = request.table.best_of;
    const bool tunes = (best_of && tables::is_tuning_seed(*best_of, seed)) ||
                       !tables::table_tuned_by(run.summary, request.table).empty();
    if (!tunes) known[{run.summary.config, run::config_key(run.config)}].push_back(seed);
  }
  return known;
}

/// Seeds that the command line or the table asks for are part of the table's plan. The rest of it
/// are those that were run before, and then the seeds behind its own, which other commands make.
std::vector<CheckedRun> check(const TableRequest& request,
                              const std::vector<SelectedConfig>& configs,
                              const RunSelection& seeds) {
  std::vector<CheckedRun> runs =
      check_configs(request.context, configs, seeds, request.swept, request.options);
  if (seeds.seeds.empty() && seeds.seed_count == 0) return runs;
  const auto all = static_cast<size_t>(std::max(request.table.seeds, 0));
  std::optional<KnownSeeds> known;
  for (CheckedRun& run : runs) {
    if (run.planned_seeds.empty() || run.planned_seeds.size() >= all) continue;
    if (!known) known = known_seeds(request);
    std::set<int64_t> planned(run.planned_seeds.begin(), run.planned_seeds.end());
    for (const int64_t seed :
         (*known)[{run.resolved.config_name, run::config_key(run.resolved.json)}])
      if (planned.size() < all) planned.insert(seed);
    int64_t last = run.planned_seeds.back();
    while (planned.size() < all && last < std::numeric_limits<int64_t>::max())
      planned.insert(++last);
    run.planned_seeds.assign(planned.begin(), planned.end());
  }
  return runs;
}

/// The runs of the request's project, by id.
std::vector<store::RunSummary> runs_of_project(const TableRequest& request) {
  return stored_runs(request.context, filter_of(request.context, request.project));
}

/// The runs but those that diverged, which would do so again, and which a table knows as values
/// that are no best. --force repeats them.
std::vector<CheckedRun> without_diverged(const TableRequest& request,
                                         std::vector<CheckedRun> runs) {
  std::set<std::string> diverged;
  for (const store::RunSummary& run : runs_of_project(request))
    if (run.diverged != 0) diverged.insert(run.id);
  if (diverged.empty() || request.options.force) return runs;
  std::vector<std::string> labels;
  const auto has_diverged = [&](const CheckedRun& run) {
    const ForeseenRun foreseen = foresee_run(request.context, run, request.options);
    if (!foreseen.planned || diverged.count(foreseen.planned->record.id) == 0) return false;
    labels.push_back(run.label);
    return true;
  };
  runs.erase(std::remove_if(runs.begin(), runs.end(), has_diverged), runs.end());
  if (labels.empty()) return runs;
  const std::string which = tables::first_of(labels);
  if (runs.empty())
    throw Error("all runs of table '" + request.table.name + "' diverged: " + which,
                "give best_of other values; --force repeats the runs");
  std::cerr << "diverged before, and not run again (--force repeats them): "
            << tables::printable(which) << "\n";
  return runs;
}

/// Of a run that was repeated the first one that is completed counts, as in a row of the table: by
/// the config and what identifies the run.
using FirstOnes = std::map<std::pair<std::string, std::string>, store::RunSummary>;

FirstOnes first_ones(std::vector<store::RunSummary> runs) {
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return std::tie(tables::begun_at(a), a.id) < std::tie(tables::begun_at(b), b.id);
  });
  FirstOnes firsts;
  for (store::RunSummary& run : runs) {
    const std::pair name = {run.config, run.key};
    if (run.status == run::RunState::completed) firsts.try_emplace(name, std::move(run));
  }
  return firsts;
}

/// The means of the deciding metric, by config and value; none of a value that diverged.
using TunedMeans = std::map<std::string, std::map<double, std::optional<double>>>;

/// Those of the runs, once all of them are completed or diverged.
std::optional<TunedMeans> means_of(const TableRequest& request,
                                   const std::vector<CheckedRun>& runs) {
  const tables::BestOfSpec& best_of = *request.table.best_of;
  LaunchOptions as_they_are = request.options;
  as_they_are.force = false;
  const std::optional<store::ResultStore> store = find_store(request.context);
  if (!store) return std::nullopt;
  const FirstOnes firsts = first_ones(runs_of_project(request));
  std::map<std::string, std::map<double, std::vector<store::RunSummary>>> ended;
  for (const CheckedRun& run : runs) {
    const ForeseenRun foreseen = foresee_run(request.context, run, as_they_are);
    if (!foreseen.planned) return std::nullopt;
    auto summary = store->run(foreseen.planned->record.id);
    if (!summary) return std::nullopt;
    if (foreseen.planned->action != run::Action::cached && summary->diverged == 0)
      return std::nullopt;
    const double value = tables::number_of(run.resolved.json, best_of.key);
    const auto first = firsts.find({summary->config, summary->key});
    ended[run.resolved.config_name][value].push_back(first == firsts.end() ? std::move(*summary)
                                                                           : first->second);
  }
  TunedMeans means;
  for (const auto& [config, of_value] : ended) {
    for (const auto& [value, summaries] : of_value) {
      const bool has_diverged =
          std::any_of(summaries.begin(), summaries.end(), [](const store::RunSummary& run) {
            return run.diverged != 0;
          });
      means[config][value] = has_diverged ? std::nullopt : tables::mean_of(summaries, best_of.by);
    }
  }
  return means;
}

/// The best of the values, the first of equally good ones.
double best_value(const tables::BestOfSpec& best_of,
                  const std::string& config,
                  const std::vector<double>& grid,
                  const std::map<double, std::optional<double>>& means) {
  const double* best = nullptr;
  for (const double& value : grid) {
    const std::optional<double> mean = means.at(value);
    const std::optional<double> other = best ? means.at(*best) : std::nullopt;
    if (tables::is_preferred(best_of, mean, other)) best = &value;
  }
  if (best) return *best;
  throw Error(
      "no run of " + config + " has a finite " + best_of.by + " to choose " + best_of.key + " by",
      "other values may not diverge; best_of lists them");
}

/// Throws Error where a row would show a seed that it was tuned with.
void require_other_seeds(const TableRequest& request) {
  const std::vector<int64_t>& tuning = request.table.best_of->tuning_seeds;
  const std::vector<SelectedConfig> first = {
      rows_with(request, [](const auto&) { return std::vector<run::Sweep>(); }).front()};
  for (const CheckedRun& run : check(request, first, request.selection)) {
    const auto seed = static_cast<int64_t>(run.resolved.experiment.seed);
    if (std::find(tuning.begin(), tuning.end(), seed) == tuning.end()) continue;
    throw Error("seed " + std::to_string(seed) + " is a tuning seed of table '" +
                    request.table.name + "': no row shows it",
                "choose other seeds, or other tuning_seeds in the table");
  }
}

/// "optimizer.lr: train_llama 0.001, train_canon_ac 0.002".
std::string choice_text(const tables::BestOfSpec& best_of,
                        const std::map<std::string, double>& chosen) {
  std::vector<std::string> parts;
  for (const auto& [config, value] : chosen)
    parts.push_back(config + " " + tables::value_text(value));
  return best_of.key + ": " + join(parts, ", ");
}

SelectedRuns tuned_runs(const TableRequest& request) {
  const tables::BestOfSpec& best_of = *request.table.best_of;
  RunSelection seeds = request.selection;
  std::vector<run::Sweep> tuning;
  if (!best_of.tuning_seeds.empty()) {
    require_other_seeds(request);
    tuning.push_back({"seed", {}});
    for (const int64_t seed : best_of.tuning_seeds)
      tuning.back().values.push_back(std::to_string(seed));
    seeds.seeds.clear();
    seeds.seed_count = 0;
  }
  std::vector<double> grid = best_of.values;
  std::map<std::string, double> chosen;
  for (;;) {
    const std::vector<SelectedConfig> rows = rows_with(request, [&](const auto&) {
      std::vector<run::Sweep> sweeps = sweeps_of(best_of, grid);
      sweeps.insert(sweeps.end(), tuning.begin(), tuning.end());
      return sweeps;
    });
    std::vector<CheckedRun> runs = check(request, rows, seeds);
    const std::optional<TunedMeans> means = means_of(request, runs);
    if (!means) {
      std::string later =
          best_of.extend ? "values beyond the grid if the best one is at its end" : "";
      if (!tuning.empty())
        later += std::string(later.empty() ? "" : ", and then ") +
                 "the runs of the rows, with the value that is the best";
      return {without_diverged(request, std::move(runs)), later};
    }
    for (const auto& [config, of_value] : *means)
      chosen[config] = best_value(best_of, config, grid, of_value);
    std::vector<double> values;
    for (const auto& [config, value] : chosen) values.push_back(value);
    const std::vector<double> added = tables::values_beyond(best_of, grid, values);
    if (added.empty() && tuning.empty()) return {without_diverged(request, std::move(runs)), ""};
    if (added.empty()) break;
    grid.insert(grid.end(), added.begin(), added.end());
    std::sort(grid.begin(), grid.end());
  }
  std::cerr << "chosen by " << best_of.by << ", " << tables::printable(choice_text(best_of, chosen))
            << "\n";
  const std::vector<SelectedConfig> rows = rows_with(request, [&](const tables::RowSpec& row) {
    return sweeps_of(best_of, {chosen.at(row.config)});
  });
  return {without_diverged(request, check(request, rows, request.selection)), ""};
}

/// A run of the row that keeps the budget already, by a measurement of its speed that was as good.
std::optional<int64_t> steps_taken(const std::vector<store::RunSummary>& stored,
                                   const std::string& config,
                                   int64_t wanted) {
  for (const store::RunSummary& run : stored) {
    if (run.config == config && tables::keeps_budget(tables::Budget::time, run.max_steps, wanted))
      return run.max_steps;
  }
  return std::nullopt;
}

/// What a row's config trains with, and what that costs.
struct RowTraining {
  config::TrainConfig config;
  tables::TrainingCost cost;
  std::string why_not_measured = {};  ///< though there is a measurement; "": none, or it is good
};

/// What a measurement must agree with so that the run that is asked for keeps the budget by it.
tables::SpeedSettings speed_settings_of(const TableRequest& request, const CheckedRun& run) {
  const worker::Environment& device = run.backend.environment;
  tables::SpeedSettings settings = tables::speed_settings_of(run.resolved.json);
  settings["device"] = run::device_text(device.device_type, device.device_name, device.threads);
  settings["processes"] =
      std::to_string(std::max(1, run.resolved.experiment.parallel.processes.count));
  settings["program"] = request.context.program_hash(run.resolved.experiment);
  return settings;
}

std::map<std::string, RowTraining> training_of(const TableRequest& request) {
  const tables::TableSpec& table = request.table;
  const std::vector<SelectedConfig> rows =
      rows_with(request, [](const auto&) { return std::vector<run::Sweep>(); });
  std::map<std::string, RowTraining> training;
  std::vector<tables::SpeedRow> measured;
  for (size_t i = 0; i < rows.size(); ++i) {
    const CheckedRun run = check(request, {rows[i]}, {}).front();
    const config::Experiment& experiment = run.resolved.experiment;
    const config::TrainConfig& train = experiment.train;
    RowTraining& row = training[table.rows[i].config];
    row.config = train;
    row.cost.flops_per_token = model::flops_per_token(experiment.model, train.seq_len).total();
    row.cost.tokens_per_step = int64_t{train.batch_size} * train.seq_len;
    measured.push_back(
        {table.rows[i].config, [&table, own = speed_settings_of(request, run)](const auto& record) {
           return tables::why_of_other_training(record, own, "the runs", table);
         }});
  }
  if (table.budget->equal != tables::Budget::time) return training;
  const auto speeds =
      tables::choose_speeds(table, measured, current_benchmarks(request.context, request.project));
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!speeds[i]) continue;
    RowTraining& row = training[table.rows[i].config];
    row.why_not_measured = speeds[i]->not_comparable_because;
    if (row.why_not_measured.empty())
      row.cost.tokens_per_second = speeds[i]->record.tokens_per_second;
  }
  return training;
}

/// Each row with as many steps as the table's budget gives it.
SelectedRuns budgeted_runs(const TableRequest& request) {
  const tables::TableSpec& table = request.table;
  const tables::Budget budget = table.budget->equal;
  const std::string& reference = tables::reference_of(table);
  const std::map<std::string, RowTraining> training = training_of(request);
  const RowTraining& theirs = training.at(reference);
  const std::vector<store::RunSummary> stored = runs_of_project(request);
  const auto sweeps = [&](const tables::RowSpec& row) -> std::vector<run::Sweep> {
    if (row.config == reference) return {};
    const RowTraining& own = training.at(row.config);
    auto steps = tables::steps_within(budget, own.cost, theirs.cost, theirs.config.max_steps);
    if (!steps) {
      const bool is_own = !own.cost.tokens_per_second;
      const std::string& why = (is_own ? own : theirs).why_not_measured;
      throw Error("table '" + table.name + "' gives its rows equal time, and the speed of " +
                      (is_own ? row.config : reference) + " is not known" +
                      (why.empty() ? "" : ": " + why),
                  quoted_command(tables::bench_command(table)) + " measures all rows in one call");
    }
    if (budget == tables::Budget::time)
      steps = steps_taken(stored, row.config, *steps).value_or(*steps);
    std::vector<run::Sweep> length = {{"train.max_steps", {std::to_string(*steps)}}};
    if (own.config.max_tokens > 0) length.push_back({"train.max_tokens", {"0"}});
    return length;
  };
  return {check(request, rows_with(request, sweeps), request.selection), ""};
}

}  // namespace

SelectedRuns runs_of_table(const Context& context,
                           const RunSelection& selection,
                           const std::vector<run::Sweep>& swept,
                           const LaunchOptions& options) {
  TableRequest request{context, context.project(), {}, selection, swept, options};
  request.table = read_table(request.project, selection.table);
  request.table.project_option = context.project_option();
  const tables::TableSpec& table = request.table;
  const auto sweeps_key = [&](const std::string& key) {
    return std::any_of(
        swept.begin(), swept.end(), [&](const run::Sweep& sweep) { return sweep.path == key; });
  };
  if (selection.seeds.empty() && selection.seed_count == 0 && !sweeps_key("seed"))
    request.selection.seed_count = table.seeds;
  const bool is_tuned =
      table.best_of && (table.best_of->extend || !table.best_of->tuning_seeds.empty());
  if ((is_tuned || table.budget) && !swept.empty())
    throw Error("table '" + table.name + "' says itself what its rows are trained with",
                "leave out --sweep");
  if (is_tuned) return tuned_runs(request);
  if (table.budget) return budgeted_runs(request);
  const std::vector<SelectedConfig> rows = rows_with(request, [&](const auto&) {
    return table.best_of ? sweeps_of(*table.best_of, table.best_of->values)
                         : std::vector<run::Sweep>();
  });
  std::vector<CheckedRun> runs = check(request, rows, request.selection);
  return {table.best_of ? without_diverged(request, std::move(runs)) : std::move(runs), ""};
}

}  // namespace forge::app
