#include "core/results/tables/ablation.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/budget.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/completeness.h"
#include "core/results/tables/provenance.h"
#include "core/run/identity.h"
#include "core/run/program_hash.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

/// A run of the table's configs.
struct Candidate {
  const ConfiguredRun* run = nullptr;
  std::string group;
  bool has_profile = false;             ///< the one that the table shows
  std::vector<std::string> violations;  ///< of the table's conditions; "" is none of these
  bool is_of_other_backend = false;     ///< and violates nothing else
};

/// In what each run differs from its config as it is now; runs that do not have no entry.
using ConfigDifferences = std::map<const ConfiguredRun*, std::vector<std::string>>;

ConfigDifferences find_config_differences(const TableSpec& table,
                                          const Runs& runs,
                                          const AblationOptions& options) {
  ConfigDifferences differences;
  if (!options.current_config) return differences;
  std::map<const nlohmann::json*, std::string> programs;  // of the configs
  for (const ConfiguredRun* run : runs) {
    const store::RunSummary& summary = run->summary;
    const nlohmann::json& current =
        options.current_config(summary.config, summary.profile, summary.device_type);
    if (current.is_null()) continue;
    const auto [program, is_new] = programs.try_emplace(&current);
    if (is_new && !summary.program.empty())
      program->second = run::program_hash(config::experiment_from_json(current).external);
    CurrentFiles files{program->second};
    if (options.current_data)
      files.data = options.current_data(with_current_paths(run->config, current));
    std::vector<std::string> found = differences_from_config(*run, current, files, table);
    if (!found.empty()) differences[run] = std::move(found);
  }
  return differences;
}

/// Builds the rows of a table, config by config.
class RowBuilder {
 public:
  RowBuilder(const TableSpec& table,
             const std::string& profile,
             const Runs& runs,
             const AblationOptions& options)
      : table_(table),
        profile_(profile),
        differences_(find_config_differences(table, runs, options)),
        is_current_([this](const ConfiguredRun& run) { return differences_.count(&run) == 0; }) {
    const auto has_profile = [&](const ConfiguredRun* run) {
      return profile.empty() || run->summary.profile == profile;
    };
    Runs of_profile;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(of_profile), has_profile);
    // Runs that no row can choose must not decide what the others are compared with.
    Runs eligible;
    std::copy_if(
        of_profile.begin(), of_profile.end(), std::back_inserter(eligible), [&](const auto* run) {
          return !table.best_of || why_not_chosen(*table.best_of, *run).empty();
        });
    const auto shown = choose_group(table, eligible.empty() ? of_profile : eligible, is_current_);
    for (const ConfiguredRun* run : runs) {
      Candidate candidate{run, group_of(*run, table), has_profile(run), {}};
      if (candidate.has_profile) {
        const std::vector<Condition> conditions = conditions_of(*run, table);
        candidate.violations = violations(conditions, *shown);
        candidate.is_of_other_backend = differs_in_backend_alone(conditions, *shown);
      }
      candidates_.push_back(std::move(candidate));
    }
    for (const RowSpec& row : table.rows) admit_other_backend(row);
    if (table.budget) check_budgets(choose_speeds(table, options.benchmarks));
  }

  /// The rows of a config, one a group. Its other runs are excluded.
  std::vector<AblationRow> rows_of(const RowSpec& spec, std::vector<ExcludedRuns>& excluded) const {
    std::map<std::string, Runs> groups;
    for (const Candidate& candidate : candidates_) {
      if (is_of(candidate, spec) && reason_against(candidate).empty())
        groups[candidate.group].push_back(candidate.run);
    }
    if (groups.empty()) groups[""];
    std::vector<AblationRow> rows;
    std::set<std::string> shown;
    std::vector<ExcludedRuns> not_chosen;
    for (const auto& [group, runs] : groups) {
      AblationRow& row = rows.emplace_back();
      row.spec = spec;
      row.group = group;
      fill(row, runs, not_chosen);
      if (!row.run) fill_incomparable(row);
      add_config_differences(row);
      row.planned_seeds = planned_seeds_of(row.first_runs);
      for (const store::RunSummary& run : row.runs) shown.insert(run.id);
    }
    for (const Candidate& candidate : candidates_) {
      const std::string reason = reason_against(candidate);
      const store::RunSummary& run = candidate.run->summary;
      if (is_of(candidate, spec) && !reason.empty() && shown.count(run.id) == 0)
        exclude(run, reason, excluded);
    }
    excluded.insert(excluded.end(), not_chosen.begin(), not_chosen.end());
    return rows;
  }

  /// The run of that id, which is one of the table's.
  const ConfiguredRun* find(const std::string& id) const {
    return std::find_if(candidates_.begin(),
                        candidates_.end(),
                        [&](const Candidate& candidate) { return candidate.run->summary.id == id; })
        ->run;
  }

 private:
  static bool is_of(const Candidate& candidate, const RowSpec& spec) {
    return candidate.run->summary.config == spec.config;
  }

  /// Where no run of the table's backend completed the config, lets completed ones of another
  /// backend fill its row: of one backend, that of the newest.
  void admit_other_backend(const RowSpec& row) {
    const Candidate* newest = nullptr;
    for (const Candidate& candidate : candidates_) {
      if (!is_of(candidate, row) || !candidate.has_profile || !is_completed(candidate.run))
        continue;
      if (candidate.violations.empty()) return;
      if (!newest && candidate.is_of_other_backend) newest = &candidate;
    }
    if (!newest) return;
    const std::string backend = newest->run->summary.backend;
    for (Candidate& candidate : candidates_) {
      if (is_of(candidate, row) && candidate.is_of_other_backend &&
          candidate.run->summary.backend == backend)
        candidate.violations.clear();
    }
  }

  /// Marks the runs that use more or less than the table's budget.
  void check_budgets(const std::vector<std::optional<MeasuredSpeed>>& speeds) {
    Runs comparable;
    for (const Candidate& candidate : candidates_) {
      if (reason_against(candidate).empty()) comparable.push_back(candidate.run);
    }
    const BudgetCheck budget(table_, comparable, speeds, is_current_);
    for (Candidate& candidate : candidates_) {
      std::string violation = budget.violation(*candidate.run);
      if (!violation.empty()) candidate.violations.push_back(std::move(violation));
    }
  }

  /// "" for a run that is comparable.
  std::string reason_against(const Candidate& candidate) const {
    if (!candidate.has_profile)
      return "profile " + candidate.run->summary.profile + ", this table shows " + profile_;
    return candidate.violations.empty() ? "" : candidate.violations.front();
  }

  void fill(AblationRow& row, const Runs& runs, std::vector<ExcludedRuns>& excluded) const {
    if (table_.best_of) {
      fill_best(*table_.best_of, runs, is_current_, row, excluded);
    } else {
      static_cast<Sample&>(row) = sample_of(runs, excluded, "", is_current_);
    }
  }

  void add_config_differences(AblationRow& row) const {
    if (!row.completed()) return;
    const auto found = differences_.find(find(row.run->id));
    if (found != differences_.end()) row.differs_from_config = found->second;
  }

  /// Lets a row without comparable runs show the newest completed run, with the other seeds that
  /// violate the same conditions. A run that the row would not show if it were comparable, of a
  /// value that best_of does not list, is not shown here either.
  void fill_incomparable(AblationRow& row) const {
    Runs similar;
    for (const Candidate& candidate : candidates_) {
      if (!is_of(candidate, row.spec) || !is_completed(candidate.run)) continue;
      if (!candidate.has_profile || candidate.group != row.group) continue;
      if (candidate.violations.empty()) continue;
      if (table_.best_of && !why_not_chosen(*table_.best_of, *candidate.run).empty()) continue;
      if (similar.empty()) row.violations = candidate.violations;
      if (candidate.violations == row.violations) similar.push_back(candidate.run);
    }
    if (similar.empty()) return;
    std::vector<ExcludedRuns> ignored;  // what is not comparable is excluded with its reason anyway
    row.points.clear();
    fill(row, similar, ignored);
  }

  const TableSpec& table_;
  const std::string profile_;
  const ConfigDifferences differences_;
  const IsCurrent is_current_;
  std::vector<Candidate> candidates_;
};

std::optional<double> change(std::optional<double> own, std::optional<double> baseline) {
  if (!own || !baseline || !(*own > 0) || !(*baseline > 0)) return std::nullopt;
  return *own / *baseline - 1;
}

/// Whether speeds of the two can be compared: of measurements those of one call, of runs those that
/// were computed alike.
bool has_comparable_speed(const AblationRow& row,
                          const AblationRow& baseline,
                          const TableSpec& table) {
  if (table.tokens_per_second == SpeedSource::benchmark)
    return !row.speed || row.speed->not_comparable_because.empty();
  return same_setup(row, baseline);
}

void add_changes(const AblationRow& baseline, const TableSpec& table, AblationRow& row) {
  if (&row == &baseline || row.group != baseline.group) return;
  if (!row.is_comparable() || !baseline.is_comparable()) return;
  if (has_comparable_speed(row, baseline, table) && has_comparable_speed(baseline, baseline, table))
    row.throughput_change =
        change(tokens_per_second_of(row, table), tokens_per_second_of(baseline, table));
  if (!row.completed() || !baseline.completed()) return;
  if (!row.same_micro_batch || !row.same_processes || !row.same_recompute || !row.same_backend ||
      !row.same_device)
    return;
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

/// Marks a row that is larger or dearer than the table allows.
void check_size(const RowBuilder& builder,
                const AblationRow& baseline,
                const TableSpec& table,
                AblationRow& row) {
  if (&row == &baseline || !row.completed() || !baseline.completed()) return;
  const std::string& name = baseline.spec.name;
  std::vector<std::string> texts = {beyond("parameters",
                                           static_cast<double>(row.run->parameters),
                                           static_cast<double>(baseline.run->parameters),
                                           table.parameters_within,
                                           name)};
  if (table.flops_within)
    texts.push_back(beyond("FLOPs a token",
                           flops_per_token(*builder.find(row.run->id)),
                           flops_per_token(*builder.find(baseline.run->id)),
                           table.flops_within,
                           name));
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
    std::optional<int64_t> usual, processes;
    if (baseline) usual = baseline->run->micro_batch_size;
    if (baseline) processes = baseline->run->processes;
    row.same_backend = !baseline || !row.completed() || row.run->backend == baseline->run->backend;
    row.same_micro_batch =
        std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
          return run.micro_batch_size == usual;
        });
    row.same_processes =
        std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
          return run.processes == processes;
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
    for (double& loss : mean.losses) loss /= runs;
    row.evaluation_rows = std::move(mean);
  }
}

void add_speeds(const std::vector<benchmark::Record>& benchmarks, Ablation& ablation) {
  std::vector<std::optional<MeasuredSpeed>> speeds = choose_speeds(ablation.table, benchmarks);
  const std::string text = describe_speeds(speeds);
  if (!text.empty()) ablation.setup.push_back({"Speed", text, "speed: " + text});
  for (size_t i = 0; i < speeds.size(); ++i) {
    AblationRow& row = ablation.rows[i];
    row.speed = std::move(speeds[i]);
    if (row.speed && row.completed() && row.run->program != row.speed->record.program)
      row.speed->not_comparable_because =
          "measured with other files of its command than the runs: 'forge bench' measures anew";
  }
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

/// The runs of the table's own configs.
Runs of_table(const TableSpec& table, const Runs& runs) {
  Runs own;
  for (const ConfiguredRun* run : runs) {
    const auto is_its_row = [&](const RowSpec& row) { return row.config == run->summary.config; };
    if (std::any_of(table.rows.begin(), table.rows.end(), is_its_row)) own.push_back(run);
  }
  return own;
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
    return {"Uncertainty", text, text + " (run more with --seeds 3)"};
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

}  // namespace

Ablation build_ablation(const TableSpec& declared,
                        const std::vector<ConfiguredRun>& runs,
                        const AblationOptions& options) {
  const Runs own = of_table(declared, newest_first(runs));
  Ablation ablation;
  ablation.table = declared;
  if (declared.best_of) ablation.table.best_of->values = grid_with_runs(*declared.best_of, own);
  ablation.profile = options.profile;
  ablation.published = options.published;
  const TableSpec& table = ablation.table;
  const RowBuilder builder(table, options.profile, own, options);
  Runs completed;
  for (const RowSpec& spec : table.rows) {
    for (AblationRow& row : builder.rows_of(spec, ablation.excluded)) {
      if (row.is_comparable()) {
        for (const store::RunSummary& run : row.runs) completed.push_back(builder.find(run.id));
        if (row.run && ablation.profile.empty()) ablation.profile = row.run->profile;
      }
      const PublishedResult* result =
          options.published ? options.published->find(spec.config) : nullptr;
      if (result) row.published = *result;
      ablation.rows.push_back(std::move(row));
    }
  }
  ablation.setup = describe_setup(completed);
  if (const std::string keys = first_of(differing_keys(completed, table)); !keys.empty())
    ablation.setup.push_back({"Rows differ in", keys, "rows differ in " + keys});
  for (AblationRow& row : ablation.rows)
    check_completeness(table, own, options, row.run ? builder.find(row.run->id) : nullptr, row);
  count_other_sets(own, options, ablation);
  add_other_seeds(runs, options, ablation);
  if (const std::string filter = join(options.filter, ", "); !filter.empty())
    ablation.setup.push_back({"Filter", "only runs with " + filter, "only runs with " + filter});
  if (table.best_of && !completed.empty()) ablation.setup.push_back(describe_choice(table));
  if (table.tokens_per_second == SpeedSource::benchmark) add_speeds(options.benchmarks, ablation);
  compare_ways_of_computing(ablation);
  if (SetupEntry backends = describe_backends(ablation); !backends.name.empty())
    ablation.setup.push_back(std::move(backends));
  if (options.evaluation_rows) add_evaluation_rows(options.evaluation_rows, ablation);
  if (options.evaluations && shows_equal_budgets(table))
    add_equal_budgets(ablation, options.evaluations, [&](const store::RunSummary& run) {
      return flops_per_token(*builder.find(run.id));
    });
  if (table.budget && !completed.empty()) ablation.setup.push_back(describe_budget(ablation));
  for (SetupEntry& entry : describe_history(declared, ablation))
    ablation.setup.push_back(std::move(entry));
  if (options.evaluation_rows) {
    if (const SetupEntry rows = describe_unknown_rows(ablation); !rows.name.empty())
      ablation.setup.push_back(rows);
  }
  if (!completed.empty()) ablation.setup.push_back(describe_uncertainty(ablation));
  if (!completed.empty() && options.current_config)
    add_run_options(*completed.front(), options.current_config, ablation);
  for (const AblationRow& baseline : ablation.rows) {
    if (baseline.spec.config != table.baseline) continue;
    for (AblationRow& row : ablation.rows) {
      if (row.group == baseline.group) check_size(builder, baseline, table, row);
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

namespace {

/// Speed and memory have none where other numbers of processes, other devices or another
/// train.recompute trained the runs, or attempts of one of them.
bool has_mean(const std::vector<store::RunSummary>& runs, const std::string& metric) {
  if (!results::metric_named(metric).depends_on_device) return true;
  return std::all_of(runs.begin(), runs.end(), [&](const store::RunSummary& run) {
    return run.processes == runs.front().processes && device_of(run) == device_of(runs.front()) &&
           run.recompute == runs.front().recompute && !has_mixed_attempts(run);
  });
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

bool same_setup(const Sample& a, const Sample& b) {
  if (!a.completed() || !b.completed()) return false;
  const auto way_of = [](const store::RunSummary& run) {
    return std::tie(run.backend,
                    run.device_type,
                    run.device_name,
                    run.threads,
                    run.micro_batch_size,
                    run.processes,
                    run.recompute);
  };
  const auto is_alike = [&](const store::RunSummary& run) {
    return way_of(run) == way_of(a.runs.front()) && !has_mixed_attempts(run);
  };
  return std::all_of(a.runs.begin(), a.runs.end(), is_alike) &&
         std::all_of(b.runs.begin(), b.runs.end(), is_alike);
}

std::string state_text(const AblationRow& row) {
  if (row.run) return state_text(*row.run);
  if (row.filtered_out > 0) return "left out";
  return row.is_archived ? "archived" : "missing";
}

}  // namespace forge::tables
