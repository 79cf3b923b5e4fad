#include "core/results/tables/ablation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/model/cost.h"
#include "core/results/metrics.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/provenance.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

std::string state_text(const store::RunSummary& run) {
  const std::string percent = std::to_string(store::progress_percent(run)) + " %";
  switch (run.status) {
    case run::RunState::running: return "running " + percent;
    case run::RunState::stopped: return "stopped at " + percent;
    default: return run::name_of(run.status);
  }
}

/// Newest first; the names decide between runs of one moment, so that the order is always the same.
Runs newest_first(const std::vector<ConfiguredRun>& runs) {
  Runs sorted;
  for (const ConfiguredRun& run : runs) sorted.push_back(&run);
  std::sort(sorted.begin(), sorted.end(), [](const ConfiguredRun* a, const ConfiguredRun* b) {
    return std::tie(a->summary.created, a->summary.id) >
           std::tie(b->summary.created, b->summary.id);
  });
  return sorted;
}

void leave_out(const store::RunSummary& run,
               const std::string& reason,
               std::vector<ExcludedRuns>& excluded) {
  for (ExcludedRuns& entry : excluded) {
    if (entry.config == run.config && entry.reason == reason) {
      ++entry.runs;
      return;
    }
  }
  excluded.push_back({run.config, reason, 1});
}

bool is_completed(const ConfiguredRun* run) {
  return run->summary.status == run::RunState::completed;
}

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
  const double own = mean_of(point.runs, spec.by);
  const double theirs = mean_of(other.runs, spec.by);
  if (std::isnan(own) || std::isnan(theirs)) return std::isnan(theirs) && !std::isnan(own);
  return spec.take == Extreme::highest ? own > theirs : own < theirs;
}

bool by_seed(const store::RunSummary& a, const store::RunSummary& b) { return a.seed < b.seed; }

/// Builds the rows of a table one after the other.
class RowBuilder {
 public:
  RowBuilder(const TableSpec& table, const std::string& profile, Runs runs)
      : table_(table), profile_(profile), runs_(std::move(runs)) {
    Runs candidates;
    for (const ConfiguredRun* run : runs_) {
      if (has_wanted_profile(*run)) candidates.push_back(run);
    }
    group_ = choose_group(table_, candidates);
  }

  /// What comparable runs of the config have of the key that rows are divided by, sorted; one that
  /// is empty where they are not, or there is no such run.
  std::vector<std::string> groups_of(const RowSpec& row) const {
    std::set<std::string> values;
    for (const ConfiguredRun* run : runs_) {
      if (run->summary.config == row.config && !reason_against(*run))
        values.insert(group_of(*run, table_));
    }
    if (values.empty()) values.insert("");
    return {values.begin(), values.end()};
  }

  void exclude_incomparable(const RowSpec& row, std::vector<ExcludedRuns>& excluded) const {
    for (const ConfiguredRun* run : runs_) {
      if (run->summary.config != row.config) continue;
      if (const auto reason = reason_against(*run)) leave_out(run->summary, *reason, excluded);
    }
  }

  /// The run of that id, which is one of the table's.
  const ConfiguredRun* find(const std::string& id) const {
    return *std::find_if(runs_.begin(), runs_.end(), [&](const ConfiguredRun* run) {
      return run->summary.id == id;
    });
  }

  /// Fills in what the row shows; the others that are comparable, of its config and division, are
  /// left out.
  void fill(AblationRow& row, std::vector<ExcludedRuns>& excluded) const {
    const Runs runs = comparable(row);
    if (table_.best_of) {
      fill_best(*table_.best_of, runs, row, excluded);
    } else {
      static_cast<Sample&>(row) = sample_of(runs, excluded);
    }
    if (!row.run) fill_incomparable(row, excluded);
  }

 private:
  bool has_wanted_profile(const ConfiguredRun& run) const {
    return profile_.empty() || run.summary.profile == profile_;
  }

  /// The comparable runs of the row.
  Runs comparable(const AblationRow& row) const {
    Runs comparable;
    for (const ConfiguredRun* run : runs_) {
      if (run->summary.config == row.spec.config && !reason_against(*run) &&
          group_of(*run, table_) == row.group)
        comparable.push_back(run);
    }
    return comparable;
  }

  /// The newest completed run of each seed; without any the newest run.
  static Sample sample_of(const Runs& runs, std::vector<ExcludedRuns>& excluded) {
    Sample sample;
    std::set<int64_t> seeds;
    for (const ConfiguredRun* run : runs) {
      if (!is_completed(run) || !seeds.insert(run->summary.seed).second) continue;
      if (!sample.run) sample.run = run->summary;
      sample.runs.push_back(run->summary);
    }
    if (!sample.run && !runs.empty()) sample.run = runs.front()->summary;
    const auto is_shown = [&](const ConfiguredRun* run) {
      const auto same = [&](const store::RunSummary& shown) { return shown.id == run->summary.id; };
      return std::any_of(sample.runs.begin(), sample.runs.end(), same) ||
             (sample.run && sample.run->id == run->summary.id);
    };
    for (const ConfiguredRun* run : runs) {
      if (!is_shown(run)) leave_out(run->summary, why_not_shown(run->summary), excluded);
    }
    std::sort(sample.runs.begin(), sample.runs.end(), by_seed);
    return sample;
  }

  static void fill_best(const BestOfSpec& spec,
                        const Runs& runs,
                        AblationRow& row,
                        std::vector<ExcludedRuns>& excluded) {
    std::vector<Runs> of_value(spec.values.size());
    for (const ConfiguredRun* run : runs) {
      const double value = number_of(*run, spec.key);
      const auto found = std::find(spec.values.begin(), spec.values.end(), value);
      if (is_completed(run) && !run->summary.metric(spec.by)) {
        leave_out(run->summary, "no " + spec.by + " to choose it by", excluded);
      } else if (found == spec.values.end()) {
        leave_out(run->summary, spec.key + " " + shortest(value) + ", not in best_of", excluded);
      } else {
        of_value[static_cast<size_t>(found - spec.values.begin())].push_back(run);
      }
    }
    for (size_t i = 0; i < spec.values.size(); ++i)
      row.points.push_back({sample_of(of_value[i], excluded), spec.values[i]});
    const SweepPoint* best = nullptr;
    for (const SweepPoint& point : row.points) {
      if (point.run && (!best || is_better(point, *best, spec))) best = &point;
    }
    if (!best) return;
    static_cast<Sample&>(row) = *best;
    row.varied = best->value;
  }

  /// Lets a row that has nothing comparable show what it has: the newest completed run, with the
  /// other seeds that break the same.
  void fill_incomparable(AblationRow& row, std::vector<ExcludedRuns>& excluded) const {
    Runs alike;
    for (const ConfiguredRun* run : runs_) {
      if (run->summary.config != row.spec.config || !is_completed(run)) continue;
      if (!has_wanted_profile(*run) || group_of(*run, table_) != row.group) continue;
      const std::vector<std::string> broken = differences(conditions_of(*run, table_), *group_);
      if (alike.empty()) row.violations = broken;
      if (broken == row.violations) alike.push_back(run);
    }
    std::vector<ExcludedRuns> told;  // what is not comparable is left out with its reason anyway
    static_cast<Sample&>(row) = sample_of(alike, told);
    for (const store::RunSummary& run : row.runs) show_after_all(run, excluded);
  }

  /// A run that is shown after all.
  void show_after_all(const store::RunSummary& run, std::vector<ExcludedRuns>& excluded) const {
    for (const ConfiguredRun* own : runs_) {
      if (own->summary.id != run.id) continue;
      const std::string reason = reason_against(*own).value_or("");
      const auto is_its = [&](const ExcludedRuns& entry) {
        return entry.config == run.config && entry.reason == reason;
      };
      const auto found = std::find_if(excluded.begin(), excluded.end(), is_its);
      if (found != excluded.end() && --found->runs == 0) excluded.erase(found);
    }
  }

  std::optional<std::string> reason_against(const ConfiguredRun& run) const {
    if (!has_wanted_profile(run)) {
      return "profile " + run.summary.profile + ", this table shows " + profile_;
    }
    return difference(conditions_of(run, table_), *group_);
  }

  /// Why a run is not shown though it is comparable.
  static std::string why_not_shown(const store::RunSummary& run) {
    if (run.status == run::RunState::completed) return "older than the run shown";
    return state_text(run);
  }

  const TableSpec& table_;
  std::string profile_;
  Runs runs_;
  std::optional<std::vector<Condition>> group_;  ///< set where a run has the wanted profile
};

std::optional<double> change(double own, double baseline) {
  if (!(own > 0) || !(baseline > 0)) return std::nullopt;
  return own / baseline - 1;
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
    row.throughput_change = change(tokens_per_second_of(row, table).value_or(0),
                                   tokens_per_second_of(baseline, table).value_or(0));
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

/// What the metrics' uncertainty is, and how differences are judged.
SetupEntry describe_uncertainty(const Ablation& ablation) {
  const auto has_several = [](const AblationRow& row) { return row.runs.size() > 1; };
  if (std::none_of(ablation.rows.begin(), ablation.rows.end(), has_several)) {
    const std::string text = "one seed a row: nothing here tells a difference from noise";
    return {"Uncertainty", text, text + " (--seeds 3 makes runs that do)"};
  }
  const std::string& baseline =
      std::find_if(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& row) {
        return row.spec.config == ablation.table.baseline;
      })->spec.name;
  return {"Uncertainty",
          "mean \u00b1 half of its 95 % interval over seeds (Student's t; from 20 seeds on a "
          "bootstrap); \u2248 within noise of " +
              baseline +
              " (paired test where the seeds match, else Welch's; Holm's correction over the rows; "
              "p > 0.05); bold: better than every other row by the same test",
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
  const RowBuilder builder(table, options.profile, of_table(table, newest_first(runs)));
  Runs completed;
  for (const RowSpec& spec : table.rows) {
    builder.exclude_incomparable(spec, ablation.excluded);
    for (const std::string& group : builder.groups_of(spec)) {
      AblationRow row;
      row.spec = spec;
      row.group = group;
      builder.fill(row, ablation.excluded);
      if (row.is_comparable()) {
        for (const store::RunSummary& run : row.runs) completed.push_back(builder.find(run.id));
        if (row.run && ablation.profile.empty()) ablation.profile = row.run->profile;
      }
      const PublishedResult* metric =
          options.published ? options.published->find(spec.config) : nullptr;
      if (metric) row.published = *metric;
      ablation.rows.push_back(std::move(row));
    }
  }
  ablation.setup = describe_setup(completed);
  if (table.best_of && !completed.empty()) ablation.setup.push_back(describe(table));
  if (table.tokens_per_second == SpeedSource::benchmark) add_speeds(options.benchmarks, ablation);
  compare_micro_batches(ablation);
  if (options.evaluations && shows_equal_budgets(table))
    add_equal_budgets(ablation, options.evaluations, [&](const store::RunSummary& run) {
      return flops_per_token(*builder.find(run.id));
    });
  if (!completed.empty()) ablation.setup.push_back(describe_uncertainty(ablation));
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
    if (!row.completed()) return std::nullopt;
    const double mean = mean_of(row.runs, results::tokens_per_second_name);
    return std::isnan(mean) ? std::nullopt : std::optional<double>(mean);
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

double mean_of(const std::vector<store::RunSummary>& runs, const std::string& metric) {
  double sum = 0;
  for (const store::RunSummary& run : runs) sum += run.metric(metric).value_or(std::nan(""));
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
