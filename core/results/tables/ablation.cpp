#include "core/results/tables/ablation.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/cost.h"
#include "core/results/metrics.h"
#include "core/results/statistics/sample.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/provenance.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

}  // namespace

std::string no_metric_reason(const BestOfSpec& best_of) {
  const bool holds_out_none =
      best_of.by == results::validation_loss_name && best_of.validation_rows == 0;
  return "no " + best_of.by + " to choose it by" +
         (holds_out_none ? ": validation_rows in best_of holds out rows for it" : "");
}

namespace {

/// The number that the run has of a key; NaN where it has none.
double number_of(const ConfiguredRun& run, const std::string& key) {
  const nlohmann::json value = store::value_of(run, key);
  return value.is_number() ? value.get<double>() : std::nan("");
}

/// Whether the point is to be shown rather than the other one: it is completed and has the better
/// mean, or neither is completed and it has the newer run.
bool is_better(const SweepPoint& point, const SweepPoint& other, const BestOfSpec& spec) {
  if (point.completed() != other.completed()) return point.completed();
  if (!point.completed()) return point.run->created > other.run->created;
  const double own = mean_of(point.runs, spec.by).value_or(std::nan(""));
  const double theirs = mean_of(other.runs, spec.by).value_or(std::nan(""));
  if (std::isnan(own) || std::isnan(theirs)) return std::isnan(theirs) && !std::isnan(own);
  return spec.take == Extreme::highest ? own > theirs : own < theirs;
}

/// Why best_of cannot choose the run; "" where it can.
std::string why_not_chosen(const BestOfSpec& spec, const ConfiguredRun& run) {
  const double given = number_of(run, "train.validation_rows");
  const double rows = std::isnan(given) ? 0 : given;  // an older config lacks the key
  if (spec.validation_rows > 0 && rows != static_cast<double>(spec.validation_rows))
    return "train.validation_rows " + std::to_string(std::llround(rows)) + ", best_of asks for " +
           std::to_string(spec.validation_rows);
  if (is_completed(&run) && !run.summary.metric(spec.by)) return no_metric_reason(spec);
  const double value = number_of(run, spec.key);
  if (std::find(spec.values.begin(), spec.values.end(), value) != spec.values.end()) return "";
  return spec.key + " " + shortest(value) + ", not in best_of";
}

/// Fills in the sweep and shows its best value.
void fill_best(const BestOfSpec& spec,
               const Runs& runs,
               const IsCurrent& is_current,
               AblationRow& row,
               std::vector<ExcludedRuns>& excluded) {
  std::vector<Runs> of_value(spec.values.size());
  for (const ConfiguredRun* run : runs) {
    const std::string reason = why_not_chosen(spec, *run);
    if (!reason.empty()) {
      exclude(run->summary, reason, excluded);
      continue;
    }
    const auto found = std::find(spec.values.begin(), spec.values.end(), number_of(*run, spec.key));
    of_value[static_cast<size_t>(found - spec.values.begin())].push_back(run);
  }
  for (size_t i = 0; i < spec.values.size(); ++i)
    row.points.push_back(
        {sample_of(of_value[i], excluded, SampleOf::one_setup, is_current), spec.values[i]});
  const SweepPoint* best = nullptr;
  for (const SweepPoint& point : row.points) {
    if (point.run && (!best || is_better(point, *best, spec))) best = &point;
  }
  if (!best) return;
  static_cast<Sample&>(row) = *best;
  row.varied = best->value;
}

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
             const CurrentConfig& current_config)
      : table_(table),
        profile_(profile),
        differences_(find_config_differences(table, runs, current_config)),
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
      row.planned_seeds = planned_seeds_of(row.runs);
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

double flops_per_token(const ConfiguredRun& run) {
  const config::Experiment experiment = config::experiment_from_json(run.config);
  return static_cast<double>(
      model::flops_per_token(experiment.model, experiment.train.seq_len).total());
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

/// Rows that are tested are those of several seeds; their runs evaluate the same rows.
void add_evaluation_rows(const EvaluationRowsOf& rows_of, Ablation& ablation) {
  for (AblationRow& row : ablation.rows) {
    if (row.runs.size() < 2) continue;
    store::EvaluationRows mean;
    for (const store::RunSummary& run : row.runs) {
      const store::EvaluationRows own = rows_of(run.id);
      if (mean.losses.empty()) {
        mean = {std::vector<double>(own.losses.size()), own.tokens};
      }
      if (own.losses.empty() || own.tokens != mean.tokens) {
        mean = {};
        break;
      }
      for (size_t i = 0; i < own.losses.size(); ++i)
        mean.losses[i] += own.losses[i] / static_cast<double>(row.runs.size());
    }
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

/// Warns where the metric that chose the runs is also shown: it is biased by the choice.
std::string selection_note(const TableSpec& table) {
  const bool is_shown =
      std::any_of(table.columns.begin(), table.columns.end(), [&](const ColumnSpec& column) {
        return metric_of(column) && column.metric == table.best_of->by;
      });
  if (!is_shown || table.best_of->by == results::train_loss_name) return "";
  return ", which is the metric that is shown: this favours rows with many values or noisy metrics "
         "(by: validation_loss with train.validation_rows avoids it)";
}

SetupEntry describe(const TableSpec& table) {
  const BestOfSpec& best_of = *table.best_of;
  std::vector<std::string> values;
  for (const double value : best_of.values) values.push_back(shortest(value));
  const std::string text = best_of.key + " " + join(values, ", ") + " by " + best_of.by;
  return {"Best of", text + selection_note(table), "best of " + text};
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

Ablation build_ablation(const TableSpec& table,
                        const std::vector<ConfiguredRun>& runs,
                        const AblationOptions& options) {
  Ablation ablation;
  ablation.table = table;
  ablation.profile = options.profile;
  ablation.published = options.published;
  const RowBuilder builder(
      table, options.profile, of_table(table, newest_first(runs)), options.current_config);
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
  if (table.best_of && !completed.empty()) ablation.setup.push_back(describe(table));
  if (table.tokens_per_second == SpeedSource::benchmark) add_speeds(options.benchmarks, ablation);
  compare_micro_batches(ablation);
  if (options.evaluation_rows) add_evaluation_rows(options.evaluation_rows, ablation);
  if (options.evaluations && shows_equal_budgets(table))
    add_equal_budgets(ablation, options.evaluations, [&](const store::RunSummary& run) {
      return flops_per_token(*builder.find(run.id));
    });
  const SetupEntry plan = describe_plan(ablation);
  if (!plan.name.empty()) ablation.setup.push_back(plan);
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
  return row.run ? state_text(*row.run) : "missing";
}

std::vector<std::string> missing_values(const AblationRow& row) {
  std::vector<std::string> values;
  for (const SweepPoint& point : row.points) {
    if (!point.completed()) values.push_back(shortest(point.value));
  }
  return values;
}

}  // namespace forge::tables
