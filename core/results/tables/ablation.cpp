#include "core/results/tables/ablation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/budget.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/provenance.h"
#include "core/run/identity.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

/// Counts the seeds that the command of the second run asked for, with that of the first run.
size_t planned_seeds_of(std::vector<store::RunSummary> runs) {
  if (runs.size() < 2) return 0;
  std::sort(runs.begin(), runs.end(), [](const store::RunSummary& a, const store::RunSummary& b) {
    return std::tie(a.created, a.id) < std::tie(b.created, b.id);
  });
  if (runs[1].planned_seeds.empty()) return 0;
  const std::vector<std::string> planned = split(runs[1].planned_seeds, ',');
  if (planned.size() < 2) return 0;
  std::set<std::string> seeds(planned.begin(), planned.end());
  seeds.insert(std::to_string(runs[0].seed));
  return seeds.size();
}

/// A run of the table's configs.
struct Candidate {
  const ConfiguredRun* run = nullptr;
  std::string group;
  bool has_profile = false;             ///< the one that the table shows
  std::vector<std::string> violations;  ///< of the table's conditions; "" is none of these
};

/// In what each run differs from its config as it is now; runs that do not have no entry.
using ConfigDifferences = std::map<const ConfiguredRun*, std::vector<std::string>>;

ConfigDifferences find_config_differences(const TableSpec& table,
                                          const Runs& runs,
                                          const CurrentConfig& current_config) {
  ConfigDifferences differences;
  if (!current_config) return differences;
  for (const ConfiguredRun* run : runs) {
    const store::RunSummary& summary = run->summary;
    const nlohmann::json& current =
        current_config(summary.config, summary.profile, summary.device_type);
    if (current.is_null()) continue;
    std::vector<std::string> found = differences_from_config(*run, current, table);
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
        differences_(find_config_differences(table, runs, options.current_config)),
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
      if (candidate.has_profile)
        candidate.violations = violations(conditions_of(*run, table), *shown);
      candidates_.push_back(std::move(candidate));
    }
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
      static_cast<Sample&>(row) = sample_of(runs, excluded, SampleOf::one_setup, is_current_);
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
  if (!row.completed() || !baseline.completed() || !row.same_micro_batch) return;
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

/// Compares with the baseline's run of the same division; where there is none, with runs that
/// compute all rows of a step at once.
void compare_micro_batches(Ablation& ablation) {
  for (AblationRow& row : ablation.rows) {
    std::optional<int64_t> usual;
    for (const AblationRow& other : ablation.rows) {
      const bool is_baseline = other.spec.config == ablation.table.baseline;
      if (is_baseline && other.group == row.group && other.completed())
        usual = other.run->micro_batch_size;
    }
    row.same_micro_batch =
        std::all_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
          return run.micro_batch_size == usual;
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
  for (size_t i = 0; i < speeds.size(); ++i) ablation.rows[i].speed = std::move(speeds[i]);
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

/// The seeds of completed runs that belong to the row's sample and are not shown.
std::set<int64_t> seeds_not_shown(const std::vector<ConfiguredRun>& runs,
                                  const RowBuilder& builder,
                                  const AblationRow& row) {
  std::set<int64_t> missing;
  if (runs.empty()) return missing;
  const std::string shown = run::run_key(identity_without_seed(*builder.find(row.run->id)));
  for (const ConfiguredRun& run : runs) {
    if (run.summary.config == row.spec.config && is_completed(&run) &&
        run::run_key(identity_without_seed(run)) == shown)
      missing.insert(run.summary.seed);
  }
  for (const store::RunSummary& run : row.runs) missing.erase(run.seed);
  return missing;
}

/// "3 of its 8 seeds".
std::string part_of_seeds(size_t missing, const AblationRow& row) {
  return std::to_string(missing) + " of its " + std::to_string(missing + row.runs.size()) +
         " seeds";
}

/// Runs that somebody chose from a sample are no sample: chosen by their losses, any row could be
/// made the best. A row that lacks runs of its sample because of a filter or because they are
/// archived is compared with nothing.
void check_completeness(const AblationOptions& options,
                        const RowBuilder& builder,
                        AblationRow& row) {
  if (row.runs.empty()) {
    row.filtered_out = static_cast<size_t>(std::count_if(
        options.filtered_out.begin(), options.filtered_out.end(), [&](const ConfiguredRun& run) {
          return run.summary.config == row.spec.config && is_completed(&run);
        }));
    return;
  }
  const size_t filtered = seeds_not_shown(options.filtered_out, builder, row).size();
  if (filtered > 0) {
    row.filtered_out = filtered;
    row.violations.push_back("--where leaves out " + part_of_seeds(filtered, row) +
                             ", and a chosen part is no sample");
  }
  const size_t archived = seeds_not_shown(options.archived, builder, row).size();
  if (archived > 0)
    row.violations.push_back(
        part_of_seeds(archived, row) +
        " are archived, and a chosen part is no sample (--archived shows all)");
  // A model that diverges fails, a poor run is stopped: those that remain are the better ones.
  if (row.runs.size() > 1 && !row.ended_early.empty())
    row.violations.push_back(part_of_seeds(row.ended_early.size(), row) +
                             " failed or were stopped, and those that remain are no sample "
                             "(complete them: 'forge runs resume')");
}

/// Whether as many seeds were trained as were planned before anything could be compared.
SetupEntry describe_plan(const Ablation& ablation) {
  constexpr size_t most = std::numeric_limits<size_t>::max();
  size_t fewest_seeds = most, most_seeds = 0, fewest_planned = most, most_planned = 0;
  bool is_short = false;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable() || row.runs.size() < 2) continue;
    fewest_seeds = std::min(fewest_seeds, row.runs.size());
    most_seeds = std::max(most_seeds, row.runs.size());
    fewest_planned = std::min(fewest_planned, row.planned_seeds);
    most_planned = std::max(most_planned, row.planned_seeds);
    is_short = is_short || row.runs.size() < row.planned_seeds;
  }
  if (most_seeds == 0) return {};
  const auto range = [](size_t low, size_t high) {
    return low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
  };
  if (fewest_planned < 2) {
    const std::string asked =
        ablation.table.seeds > 0
            ? "; the table asks for " + std::to_string(ablation.table.seeds) + ", its runs did not"
            : "";
    return {"Plan",
            "no number of seeds was planned before the second seed: every number of them counts as "
            "a look, and differences must be clearer" +
                asked,
            "number of seeds not planned"};
  }
  const std::string planned = range(fewest_planned, most_planned);
  if (is_short)
    return {"Plan",
            "interim: " + planned + " seeds were planned, and not all rows have them yet",
            "interim: " + planned + " seeds planned"};
  if (most_seeds > most_planned || fewest_seeds > fewest_planned)
    return {"Plan",
            "reopened: " + planned +
                " seeds were planned, and others were added when these were known; differences "
                "must be clearer",
            "reopened: " + planned + " seeds planned"};
  return {"Plan", planned + " seeds were planned, and all are there", "as planned"};
}

/// Whether the table is as it was when its runs were made: rows, columns and conditions that are
/// chosen when results are known favour what they show.
SetupEntry describe_design(const TableSpec& declared, const Ablation& ablation) {
  const std::string& name = declared.name;
  const std::string design = design_key(declared);
  size_t runs = 0, without = 0, other = 0;
  for (const AblationRow& row : ablation.rows) {
    if (!row.is_comparable() || row.runs.size() < 2) continue;
    for (const store::RunSummary& run : row.first_runs) {
      if (run.planned_tables.empty()) continue;
      const nlohmann::json planned = parse_json(run.planned_tables);
      ++runs;
      if (!planned.contains(name)) {
        ++without;
      } else if (planned[name] != design) {
        ++other;
      }
    }
  }
  if (without + other == 0 || !declared.by.empty()) return {};
  const std::string verb = without > 0 ? "written" : "changed";
  return {"Table",
          verb + " after " + std::to_string(without + other) + " of its " + std::to_string(runs) +
              " runs were made: rows, columns and claims may have been chosen by what they show",
          "table " + verb + " after its runs"};
}

/// Runs that were repeated until they completed are the better ones if what made them fail was
/// their result.
SetupEntry describe_repeated(const Ablation& ablation) {
  size_t repeated = 0, runs = 0;
  for (const AblationRow& row : ablation.rows) {
    repeated += row.repeated.size();
    runs += row.runs.size();
  }
  if (repeated == 0) return {};
  const std::string count = std::to_string(repeated) + " of " + counted(runs, "run");
  return {"Repeated",
          count +
              " completed only when repeated, after one of the same seed had failed or was "
              "stopped: the losses that made runs fail are not among those shown",
          count + " repeated after a failure"};
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
  return {"Uncertainty",
          "mean \u00b1 half of its 95 % interval over seeds (Student's t; from 20 seeds on a "
          "bootstrap); \u2248 within noise of " +
              baseline +
              " (paired test where the seeds match, else Welch's; p > 0.05 when adjusted for all "
              "that the table tests); bold: better than every other row by the same test",
          "\u00b1 95 % interval over seeds, \u2248 within noise of " + baseline};
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
  for (AblationRow& row : ablation.rows) check_completeness(options, builder, row);
  if (const std::string filter = join(options.filter, ", "); !filter.empty())
    ablation.setup.push_back({"Filter", "only runs with " + filter, "only runs with " + filter});
  if (table.best_of && !completed.empty()) ablation.setup.push_back(describe_choice(table));
  if (table.tokens_per_second == SpeedSource::benchmark) add_speeds(options.benchmarks, ablation);
  compare_micro_batches(ablation);
  if (options.evaluation_rows) add_evaluation_rows(options.evaluation_rows, ablation);
  if (options.evaluations && shows_equal_budgets(table))
    add_equal_budgets(ablation, options.evaluations, [&](const store::RunSummary& run) {
      return flops_per_token(*builder.find(run.id));
    });
  if (table.budget && !completed.empty()) ablation.setup.push_back(describe_budget(ablation));
  const SetupEntry plan = describe_plan(ablation);
  if (!plan.name.empty()) ablation.setup.push_back(plan);
  if (const SetupEntry design = describe_design(declared, ablation); !design.name.empty())
    ablation.setup.push_back(design);
  if (const SetupEntry repeated = describe_repeated(ablation); !repeated.name.empty())
    ablation.setup.push_back(repeated);
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

std::vector<double> values_of(const AblationRow& row, const std::string& metric) {
  if (metric == results::loss_at_equal_time_name) return row.loss_at_equal_time;
  if (metric == results::loss_at_equal_flops_name) return row.loss_at_equal_flops;
  std::vector<double> values;
  for (const store::RunSummary& run : row.runs) {
    const std::optional<double> value = run.metric(metric);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

double sampling_error_of(const AblationRow& row, const std::string& metric) {
  if (!results::metric_named(metric).is_fraction()) return 0;
  double largest = 0;
  for (const store::RunSummary& run : row.runs) {
    const auto score = run.scores.find(metric);
    if (score != run.scores.end())
      largest = std::max(
          largest,
          statistics::sampling_error_of_fraction(score->second.value, score->second.count));
  }
  return largest;
}

std::optional<double> mean_of(const std::vector<store::RunSummary>& runs,
                              const std::string& metric) {
  double sum = 0;
  for (const store::RunSummary& run : runs) {
    const std::optional<double> value = run.metric(metric);
    if (!value) return std::nullopt;
    sum += *value;
  }
  if (runs.empty()) return std::nullopt;
  return sum / static_cast<double>(runs.size());
}

bool same_setup(const Sample& a, const Sample& b) {
  if (!a.completed() || !b.completed()) return false;
  const auto way_of = [](const store::RunSummary& run) {
    return std::tie(run.device_type, run.device_name, run.threads, run.micro_batch_size);
  };
  const auto is_alike = [&](const store::RunSummary& run) {
    return way_of(run) == way_of(a.runs.front());
  };
  return std::all_of(a.runs.begin(), a.runs.end(), is_alike) &&
         std::all_of(b.runs.begin(), b.runs.end(), is_alike);
}

std::string state_text(const AblationRow& row) {
  if (row.run) return state_text(*row.run);
  return row.filtered_out > 0 ? "left out" : "missing";
}

}  // namespace forge::tables
