#include "core/results/tables/ablation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/parameters.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/budget.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/comparable_metrics.h"
#include "core/results/tables/completeness.h"
#include "core/results/tables/known_seeds.h"
#include "core/results/tables/made_runs.h"
#include "core/results/tables/other_budgets.h"
#include "core/results/tables/other_seeds.h"
#include "core/results/tables/other_sets.h"
#include "core/results/tables/provenance.h"
#include "core/results/tables/row_builder.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/turns.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

std::optional<double> change(std::optional<double> own, std::optional<double> baseline) {
  if (!own || !baseline || !(*own > 0) || !(*baseline > 0)) return std::nullopt;
  return *own / *baseline - 1;
}

void add_changes(const AblationRow& baseline, const TableSpec& table, AblationRow& row) {
  if (&row == &baseline || row.group != baseline.group) return;
  const auto is_comparable = [&](const char* metric) {
    return why_not_comparable(row, baseline, metric, table).empty();
  };
  if (is_comparable(results::tokens_per_second_name))
    row.throughput_change =
        change(tokens_per_second_of(row, table), tokens_per_second_of(baseline, table));
  if (is_comparable(results::peak_memory_name))
    row.memory_change = change(mean_of(row.runs, results::peak_memory_name),
                               mean_of(baseline.runs, results::peak_memory_name));
}

/// "4.0 % more parameters than Llama 4M, this table allows 2.0 %"; "" where it is not too much.
std::string beyond(const char* what,
                   double own,
                   double baseline,
                   std::optional<double> allowed,
                   const std::string& baseline_name) {
  const double difference = own / baseline - 1;
  if (!allowed || !(baseline > 0) || std::abs(difference) <= *allowed) return "";
  return results::percent_text(std::abs(difference)) + (difference > 0 ? " more " : " fewer ") +
         what + " than " + baseline_name + ", this table allows " + results::percent_text(*allowed);
}

/// The baseline's run with which sizes are compared. Without a completed one it is what its config
/// would make now: a table whose baseline is hidden allows no larger rows. None: not known.
std::optional<ConfiguredRun> sized_baseline(const RowBuilder& builder,
                                            const AblationOptions& options,
                                            const AblationRow& baseline,
                                            const AblationRow& row) {
  if (baseline.completed()) return *builder.find(baseline.run->id);
  const store::RunSummary& beside = *row.run;
  if (!options.current_config) return std::nullopt;
  ConfiguredRun run;
  run.config = options.current_config(baseline.spec.config, beside.profile, beside.device_type);
  if (run.config.is_null()) return std::nullopt;
  try {
    run.summary.parameters = model::parameter_count(config::experiment_from_json(run.config).model);
  } catch (const Error&) {
    return std::nullopt;  // a block of one's own that nobody has described yet
  }
  return run;
}

/// Marks a row that is larger or dearer than the table allows.
void check_size(const RowBuilder& builder,
                const AblationOptions& options,
                const AblationRow& baseline,
                const TableSpec& table,
                AblationRow& row) {
  if (&row == &baseline || !row.completed()) return;
  if (!table.parameters_within && !table.flops_within) return;
  const std::optional<ConfiguredRun> other = sized_baseline(builder, options, baseline, row);
  if (!other) return;
  const std::string& name = baseline.spec.name;
  std::vector<std::string> texts;
  // Programs of the user's own count their weights themselves.
  if (baseline.completed() || row.run->program.empty())
    texts.push_back(beyond("parameters",
                           static_cast<double>(row.run->parameters),
                           static_cast<double>(other->summary.parameters),
                           table.parameters_within,
                           name));
  const ConfiguredRun& own = *builder.find(row.run->id);
  // Programs that count alike, in a way of their own, are taken at their configs' word where no
  // column or budget is by FLOPs.
  const std::string why_not_known = are_as_many(own.summary.parameters, other->summary.parameters)
                                        ? ""
                                        : why_flops_not_known(own, &*other);
  if (table.flops_within && !why_not_known.empty())
    texts.push_back(why_not_known);
  else if (table.flops_within)
    texts.push_back(beyond(
        "FLOPs a token", flops_per_token(own), flops_per_token(*other), table.flops_within, name));
  for (std::string& text : texts) {
    if (!text.empty()) row.violations.push_back(std::move(text));
  }
}

std::tuple<std::string, std::string, int64_t> device_of(const store::RunSummary& run) {
  return {run.device_type, run.device_name, run.threads};
}

/// The baseline's completed row in the row's group; null without one.
const AblationRow* completed_baseline(const Ablation& ablation, const AblationRow& row) {
  const AblationRow* const found = find_row(ablation, ablation.table.baseline, row.group);
  return found && found->completed() ? found : nullptr;
}

/// Compares with the baseline's runs; where there are none, with runs of a single process that
/// computes all rows of a step at once.
void compare_ways_of_computing(Ablation& ablation) {
  for (AblationRow& row : ablation.rows) {
    const AblationRow* const baseline = completed_baseline(ablation, row);
    std::optional<int64_t> usual;
    nlohmann::json processes = 1;
    if (baseline) usual = baseline->run->micro_batch_size;
    if (baseline) processes = store::processes_value(*baseline->run);
    row.same_backend = !baseline || !row.completed() || row.run->backend == baseline->run->backend;
    row.same_micro_batch =
        std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
          return run.micro_batch_size == usual;
        });
    row.same_processes =
        std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
          return store::processes_value(run) == processes && !store::is_mixed(run.processes);
        });
    const store::RunSummary* const usual_run = baseline  ? &*baseline->run
                                               : row.run ? &*row.run
                                                         : nullptr;
    row.same_recompute =
        std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
          return run.recompute == usual_run->recompute && !store::is_mixed(run.recompute);
        });
    row.same_device =
        std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
          return device_of(run) == device_of(*usual_run) && !store::is_mixed(run.device_name);
        });
  }
}

/// Rows that are tested are those of several seeds; their runs evaluate the same rows. A run that
/// does not tell its rows' losses does not make those of the others unknown.
void add_evaluation_rows(const EvaluationRowsOf& rows_of, Ablation& ablation) {
  for (AblationRow& row : ablation.rows) {
    if (row.runs.size() < 2) continue;
    store::EvaluationRows mean;
    int runs = 0;
    for (const store::RunSummary& run : row.runs) {
      const store::EvaluationRows own = rows_of(run.id);
      if (own.losses.empty() || (runs > 0 && own.tokens != mean.tokens)) continue;
      if (runs == 0) mean = {std::vector<double>(own.losses.size()), own.tokens};
      for (size_t i = 0; i < own.losses.size(); ++i) mean.losses[i] += own.losses[i];
      ++runs;
    }
    // A row of which nothing is scored is none.
    for (size_t i = 0; i < mean.losses.size(); ++i) {
      if (mean.tokens[i] == 0) continue;
      row.evaluation_rows.losses.push_back(mean.losses[i] / runs);
      row.evaluation_rows.tokens.push_back(mean.tokens[i]);
    }
  }
}

void add_speeds(const std::vector<benchmark::Record>& benchmarks,
                const RowBuilder& builder,
                Ablation& ablation) {
  std::vector<SpeedRow> rows;
  for (const AblationRow& row : ablation.rows)
    rows.push_back(builder.speed_row(row.spec.config, row.runs));
  const auto speeds = choose_speeds(ablation.table, rows, benchmarks);
  const std::string text = describe_speeds(speeds);
  if (!text.empty()) ablation.setup.push_back({"Speed", text, "speed: " + text});
  for (size_t i = 0; i < speeds.size(); ++i) ablation.rows[i].speed = speeds[i];
}

/// Which rows another backend than the baseline's computed, and what that means.
SetupEntry describe_backends(const Ablation& ablation) {
  std::map<std::string, std::vector<std::string>> rows_of;
  for (const AblationRow& row : ablation.rows)
    if (!row.same_backend && row.is_comparable())
      rows_of[row.run->backend].push_back(row.spec.name);
  if (rows_of.empty()) return {};
  std::vector<std::string> parts;
  for (const auto& [backend, rows] : rows_of)
    parts.push_back(first_of(rows) + " by backend " + backend);
  const std::string text = join(parts, ", ") + ": compared in loss, not in speed and memory";
  return {"Backends", text, text};
}

/// Of a table with a row per backend: which backends are programs of the user's own, where these
/// differ.
SetupEntry describe_programs(const Ablation& ablation) {
  std::set<std::string> backends, programs;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable() || !row.run || row.run->program.empty()) continue;
    backends.insert(row.run->backend);
    programs.insert(row.run->program);
  }
  if (ablation.table.by != "backend" || backends.size() < 2 || programs.size() < 2) return {};
  const std::string text =
      "the programs of backends " + join({backends.begin(), backends.end()}, ", ") + " differ";
  return {"Programs", text, text};
}

/// The runs of the table's own configs.
Runs of_table(const TableSpec& table, const Runs& runs) {
  Runs own;
  for (const ConfiguredRun* run : runs) {
    const auto is_its_row = [&](const RowSpec& row) { return row.config == run->summary.config; };
    if (std::any_of(table.rows.begin(), table.rows.end(), is_its_row)) own.push_back(run);
  }
  return own;
}

/// When the runs were made that would stand in the table's rows, if nothing were hidden.
void add_hidden_runs(const RowBuilder& builder,
                     const AblationOptions& options,
                     Ablation& ablation) {
  for (const auto* hidden : {&options.filtered_out, &options.archived})
    for (const ConfiguredRun& run : *hidden)
      if (builder.would_show(run))
        ablation.hidden[{run.summary.config, group_of(run, ablation.table)}].add(run.summary);
}

/// The metrics shown of which nobody knows what other rows of text, or other cases, would change.
SetupEntry describe_unknown_rows(const Ablation& ablation) {
  std::set<std::string> metrics = {primary_metric(ablation.table)};
  for (const ColumnSpec& column : ablation.table.columns)
    if (metric_of(column)) metrics.insert(column.metric);
  const bool knows_rows =
      std::all_of(ablation.rows.begin(), ablation.rows.end(), [](const AblationRow& row) {
        return row.runs.size() < 2 || !row.evaluation_rows.losses.empty();
      });
  std::vector<std::string> unknown;
  for (const std::string& metric : metrics) {
    const results::Metric kind = results::metric_named(metric);
    const bool is_known = kind.is_eval_loss() ? knows_rows : kind.is_fraction();
    if (kind.is_quality() && kind.is_tested() && !is_known) unknown.push_back(metric);
  }
  const bool has_several = std::any_of(ablation.rows.begin(),
                                       ablation.rows.end(),
                                       [](const AblationRow& row) { return row.runs.size() > 1; });
  if (unknown.empty() || !has_several) return {};
  const std::string names = join(unknown, ", ");
  return {"Evaluated rows",
          "runs do not report them one by one for " + names +
              ": its intervals and tests hold for these rows alone, others would give other values",
          names + " for the evaluated rows alone"};
}

/// What the metrics' uncertainty is, and how differences are judged.
SetupEntry describe_uncertainty(const Ablation& ablation) {
  const auto has_several = [](const AblationRow& row) { return row.runs.size() > 1; };
  if (std::none_of(ablation.rows.begin(), ablation.rows.end(), has_several)) {
    const std::string text = "one seed per row: a difference may be noise";
    const int seeds = ablation.table.seeds > 1 ? ablation.table.seeds : 3;
    return {"Uncertainty", text, text + " (run more with --seeds " + std::to_string(seeds) + ")"};
  }
  const std::string& baseline =
      std::find_if(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& row) {
        return row.spec.config == ablation.table.baseline;
      })->spec.name;
  const auto has = [&](ColumnKind kind) {
    const std::vector<ColumnSpec>& columns = ablation.table.columns;
    return std::any_of(columns.begin(), columns.end(), [&](const ColumnSpec& column) {
      return column.kind == kind;
    });
  };
  std::vector<std::string> untested;
  if (has(ColumnKind::overhead)) untested.emplace_back("overhead");
  if (has(ColumnKind::derived)) untested.emplace_back("derived columns");
  const std::string shown_alone =
      untested.empty() ? ""
                       : "; " + join(untested, " and ") +
                             (has(ColumnKind::derived) ? " are not tested" : " is not tested");
  return {"Uncertainty",
          "mean \u00b1 half of its 95 % interval over seeds (Student's t; from 20 seeds on a "
          "bootstrap); \u2248 within noise of " +
              baseline +
              " (paired test where the seeds match, else Welch's; p > 0.05 when adjusted for all "
              "that the table tests); bold: better than every other row by the same test" +
              shown_alone,
          "\u00b1 95 % interval over seeds, \u2248 within noise of " + baseline + shown_alone};
}

/// Of a table with rows by the key of best_of: which of its tuning seeds are among those shown.
SetupEntry describe_tuning_seeds(const Ablation& ablation) {
  std::vector<std::string> shown;
  for (const int64_t seed : ablation.table.shown_tuning_seeds) {
    const auto has_it = [&](const AblationRow& row) { return shown_of_seed(row, seed) != nullptr; };
    if (std::any_of(ablation.rows.begin(), ablation.rows.end(), has_it))
      shown.push_back(std::to_string(seed));
  }
  if (shown.empty()) return {};
  const std::string text = "tuning seeds " + first_of(shown) + " among those shown";
  return {"Tuning seeds", text + ": they chose the value that the table shows by itself", text};
}

/// Whether rows go on from different trained weights. No name: all from the same, or from drawn
/// ones.
SetupEntry describe_beginnings(const std::vector<AblationRow>& rows, const TableSpec& table) {
  std::set<std::string> weights;
  for (const AblationRow& row : rows)
    if (row.is_comparable() && row.run) weights.insert(row.run->initial_weights_hash);
  if (weights.size() < 2 || table.by == "train.initial_weights") return {};
  const std::string text = "rows begin from trained weights of their own, each a single draw";
  return {"Initial weights",
          text + ": a difference is one of these weights, too, and no number of seeds removes that",
          text};
}

/// Adds the values by which the table's grid goes on, as 'forge run --table' does, whether they
/// were run or not: who may stop at any value of it chooses one. False where it has come to its
/// end.
bool goes_on(Ablation& ablation, const TableSpec& declared) {
  if (!declared.best_of) return false;
  std::vector<double> chosen;
  for (const AblationRow& row : ablation.rows)
    for (const SweepPoint& point : row.points)
      if (row.is_comparable() && row.varied == point.value && point.completed() &&
          !point.has_diverged())
        chosen.push_back(point.value);
  std::vector<double>& grid = ablation.table.best_of->values;
  const std::vector<double> added = values_beyond(*declared.best_of, grid, chosen);
  grid.insert(grid.end(), added.begin(), added.end());
  if (!added.empty()) std::sort(grid.begin(), grid.end());
  return !added.empty();
}

/// Compares no row while another one that the table declares may still let the grid go on: who
/// hides it would choose where the grid ends. `are_of_table`: the rows whose runs meet the
/// conditions.
void check_grid_has_ended(const std::set<const AblationRow*>& are_of_table, Ablation& ablation) {
  const std::set<std::string> declared = declared_configs(ablation);
  std::map<std::string, std::set<std::string>> tuned;  // configs by group
  for (const AblationRow& row : ablation.rows)
    if (are_of_table.count(&row) > 0 && incomplete_choice(row, ablation.table).empty())
      tuned[row.group].insert(row.spec.config);
  for (AblationRow& row : ablation.rows) {
    std::vector<std::string> others;
    for (const std::string& config : declared)
      if (config != row.spec.config && tuned[row.group].count(config) == 0)
        others.push_back(config);
    if (row.completed() && row.is_comparable() && !others.empty())
      row.violations.push_back("the grid may go on with " + first_of(others) +
                               ": not tuned to its end yet");
  }
}

}  // namespace

namespace {

/// The table as its file declares it, which runs record: without the key that divides its rows.
/// Where that is not known, what is given.
const TableSpec& as_in_file(const TableSpec& declared, const AblationOptions& options) {
  if (declared.by.empty()) return declared;
  const auto& tables = options.project_tables;
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const TableSpec& table) {
    return table.name == declared.name;
  });
  return found == tables.end() ? declared : *found;
}

}  // namespace

Ablation build_ablation(const TableSpec& declared,
                        const std::vector<ConfiguredRun>& runs,
                        const AblationOptions& options) {
  const Runs own = of_table(declared, newest_first(runs));
  Ablation ablation;
  ablation.table = declared;
  ablation.profile = options.profile;
  ablation.published = options.published;
  const TableSpec& table = ablation.table;
  std::optional<RowBuilder> rows_of;
  do {
    ablation.rows.clear();
    ablation.excluded.clear();
    rows_of.emplace(table, options.profile, own, options);
    for (const RowSpec& spec : table.rows)
      for (AblationRow& row : rows_of->rows_of(spec, ablation.excluded))
        ablation.rows.push_back(std::move(row));
  } while (goes_on(ablation, declared));
  const RowBuilder& builder = *rows_of;
  Runs completed;
  for (AblationRow& row : ablation.rows) {
    if (row.is_comparable()) {
      for (const store::RunSummary& run : row.runs) completed.push_back(builder.find(run.id));
      if (row.run && ablation.profile.empty()) ablation.profile = row.run->profile;
    }
    const PublishedResult* result =
        options.published ? options.published->find(row.spec.config) : nullptr;
    if (result) row.published = *result;
  }
  ablation.busy = busy_times(runs, options);
  ablation.setup = describe_setup(completed);
  if (const std::string keys = first_of(differing_keys(completed, table)); !keys.empty())
    ablation.setup.push_back({"Rows differ in", keys, "rows differ in " + keys});
  if (SetupEntry entry = describe_beginnings(ablation.rows, table); !entry.name.empty())
    ablation.setup.push_back(std::move(entry));
  if (declared.best_of) mark_wanted(*declared.best_of, ablation.rows);
  std::set<const AblationRow*> are_of_table;
  for (const AblationRow& row : ablation.rows)
    if (row.is_comparable()) are_of_table.insert(&row);
  for (AblationRow& row : ablation.rows)
    check_completeness(table, own, options, row.run ? builder.find(row.run->id) : nullptr, row);
  if (declared.best_of && declared.best_of->extend) check_grid_has_ended(are_of_table, ablation);
  add_hidden_runs(builder, options, ablation);
  const MadeRuns made(runs, options);
  count_other_sets(made, declared, options, ablation);
  check_seed_choice(made, declared, ablation);
  add_other_seeds(runs, options, ablation);
  if (const std::string filter = join(options.filter, ", "); !filter.empty())
    ablation.setup.push_back({"Filter", "only runs with " + filter, "only runs with " + filter});
  if (table.best_of && !completed.empty()) ablation.setup.push_back(describe_choice(table));
  if (table.tokens_per_second == SpeedSource::benchmark)
    add_speeds(options.benchmarks, builder, ablation);
  compare_ways_of_computing(ablation);
  for (SetupEntry entry :
       {describe_tuning_seeds(ablation), describe_backends(ablation), describe_programs(ablation)})
    if (!entry.name.empty()) ablation.setup.push_back(std::move(entry));
  if (options.evaluation_rows) add_evaluation_rows(options.evaluation_rows, ablation);
  if (options.evaluations && shows_equal_budgets(table)) {
    const auto baseline =
        std::find_if(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& row) {
          return row.spec.config == table.baseline && row.completed();
        });
    const ConfiguredRun* const beside =
        baseline == ablation.rows.end() ? nullptr : builder.find(baseline->run->id);
    add_equal_budgets(ablation, options.evaluations, [&](const store::RunSummary& run) {
      const ConfiguredRun& found = *builder.find(run.id);
      return why_flops_not_known(found, beside).empty() ? flops_per_token(found) : std::nan("");
    });
    count_other_budgets(made, ablation);
  }
  if (table.budget && !completed.empty()) ablation.setup.push_back(describe_budget(ablation));
  for (SetupEntry& entry : describe_history(as_in_file(declared, options), ablation))
    ablation.setup.push_back(std::move(entry));
  if (options.evaluation_rows) {
    if (const SetupEntry rows = describe_unknown_rows(ablation); !rows.name.empty())
      ablation.setup.push_back(rows);
  }
  if (!completed.empty()) ablation.setup.push_back(describe_uncertainty(ablation));
  if (!completed.empty() && options.current_config)
    add_run_options(completed, options.current_config, ablation);
  for (const AblationRow& baseline : ablation.rows) {
    if (baseline.spec.config != table.baseline) continue;
    for (AblationRow& row : ablation.rows) {
      if (row.group == baseline.group) check_size(builder, options, baseline, table, row);
      add_changes(baseline, table, row);
    }
  }
  return ablation;
}

std::optional<double> tokens_per_second_of(const AblationRow& row, const TableSpec& table) {
  if (table.tokens_per_second == SpeedSource::runs) {
    const std::optional<double> mean = mean_of(row.runs, results::tokens_per_second_name);
    return mean && std::isnan(*mean) ? std::nullopt : mean;
  }
  if (!row.speed) return std::nullopt;
  return row.speed->record.tokens_per_second;
}

const AblationRow* find_row(const Ablation& ablation,
                            const std::string& config,
                            const std::string& group) {
  const auto found =
      std::find_if(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& row) {
        return row.spec.config == config && row.group == group;
      });
  return found == ablation.rows.end() ? nullptr : &*found;
}

void RunTimes::add(const store::RunSummary& run) {
  add(RunTimes{run.created, made_at(run), std::max(made_at(run), run.updated)});
}

void RunTimes::add(const RunTimes& times) {
  if (planned.empty() || times.planned < planned) planned = times.planned;
  made = std::max(made, times.made);
  ended = std::max(ended, times.ended);
}

std::set<std::string> declared_configs(const Ablation& ablation) {
  std::set<std::string> configs;
  for (const AblationRow& row : ablation.rows) configs.insert(row.spec.config);
  return configs;
}

const store::RunSummary* shown_of_seed(const AblationRow& row, int64_t seed) {
  const auto found = std::find_if(
      row.runs.begin(), row.runs.end(), [&](const auto& run) { return run.seed == seed; });
  return found == row.runs.end() ? nullptr : &*found;
}

namespace {

/// Whether the values of the runs have a mean.
bool has_mean(const std::vector<store::RunSummary>& runs, const std::string& metric) {
  return !results::metric_named(metric).depends_on_device || why_not_one_sample(runs).empty();
}

}  // namespace

std::vector<double> values_of(const AblationRow& row, const std::string& metric) {
  if (metric == results::loss_at_equal_time_name) return row.loss_at_equal_time;
  if (metric == results::loss_at_equal_flops_name) return row.loss_at_equal_flops;
  std::vector<double> values;
  if (!has_mean(row.runs, metric)) return values;
  for (const store::RunSummary& run : row.runs) {
    const std::optional<double> value = run.metric(metric);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

namespace {

/// Tokens of one answer are right or wrong together: each row counts as one case.
int64_t independent_cases(const store::RunSummary& run,
                          const std::string& metric,
                          const worker::Score& score) {
  const int64_t rows = std::atoll(run.evaluation.c_str());  // "256 rows of 16 tokens"
  const bool counts_tokens = metric.rfind("token_", 0) == 0;
  return counts_tokens && rows > 0 ? std::min(rows, score.count) : score.count;
}

}  // namespace

double sampling_error_of(const AblationRow& row, const std::string& metric) {
  if (!results::metric_named(metric).is_fraction()) return 0;
  double largest = 0;
  for (const store::RunSummary& run : row.runs) {
    const auto score = run.scores.find(metric);
    if (score != run.scores.end())
      largest = std::max(largest,
                         statistics::sampling_error_of_fraction(
                             score->second.value, independent_cases(run, metric, score->second)));
  }
  return largest;
}

int64_t cases_of(const AblationRow& row, const std::string& metric) {
  if (!results::metric_named(metric).is_fraction()) return 0;
  int64_t fewest = 0;
  for (const store::RunSummary& run : row.runs) {
    const auto score = run.scores.find(metric);
    if (score == run.scores.end()) continue;
    const int64_t cases = independent_cases(run, metric, score->second);
    if (cases > 0 && (fewest == 0 || cases < fewest)) fewest = cases;
  }
  return fewest;
}

std::optional<double> mean_of(const std::vector<store::RunSummary>& runs,
                              const std::string& metric) {
  if (runs.empty() || !has_mean(runs, metric)) return std::nullopt;
  double sum = 0;
  for (const store::RunSummary& run : runs) {
    const std::optional<double> value = run.metric(metric);
    if (!value) return std::nullopt;
    sum += *value;
  }
  return sum / static_cast<double>(runs.size());
}

std::string state_text(const AblationRow& row) {
  if (row.run) return state_text(*row.run);
  if (row.filtered_out > 0) return "left out";
  return row.archived.empty() ? "missing" : "archived";
}

}  // namespace forge::tables
