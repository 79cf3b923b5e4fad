#include "core/report/ablation.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "core/base/text.h"
#include "core/report/comparison.h"
#include "core/report/setup.h"

namespace forge::report {
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
               std::vector<LeftOut>& left_out) {
  for (LeftOut& entry : left_out) {
    if (entry.config == run.config && entry.reason == reason) {
      ++entry.runs;
      return;
    }
  }
  left_out.push_back({run.config, reason, 1});
}

bool is_completed(const ConfiguredRun* run) {
  return run->summary.status == run::RunState::completed;
}

/// The number at a dotted key of a config; NaN where there is none.
double number_at(const nlohmann::json& config, const std::string& key) {
  const nlohmann::json* value = &config;
  for (const std::string& part : split(key, '.')) {
    const auto found = value->find(part);
    if (found == value->end()) return std::nan("");
    value = &*found;
  }
  return value->is_number() ? value->get<double>() : std::nan("");
}

/// Whether the run is to be shown rather than the other one: it is completed and has the better
/// figure, or neither is completed and it is the newer one.
bool is_better(const ConfiguredRun& run, const ConfiguredRun& other, const BestOfSpec& spec) {
  if (is_completed(&run) != is_completed(&other)) return is_completed(&run);
  if (!is_completed(&run)) return run.summary.created > other.summary.created;
  const double own = figure_of(run.summary, spec.by).value_or(std::nan(""));
  const double theirs = figure_of(other.summary, spec.by).value_or(std::nan(""));
  if (std::isnan(own) || std::isnan(theirs)) return std::isnan(theirs) && !std::isnan(own);
  return spec.take == Extreme::highest ? own > theirs : own < theirs;
}

/// Builds the rows of a table one after the other.
class Builder {
 public:
  Builder(const TableSpec& table, const std::string& profile, Runs runs)
      : table_(table), profile_(profile), runs_(std::move(runs)) {
    Runs candidates;
    for (const ConfiguredRun* run : runs_) {
      if (has_wanted_profile(*run)) candidates.push_back(run);
    }
    group_ = choose_group(table_, candidates);
  }

  /// What comparable runs of the config have of the key that rows are divided by, sorted; one that
  /// is empty where they are not, or there is no such run.
  std::vector<std::string> divisions_of(const RowSpec& row) const {
    std::set<std::string> values;
    for (const ConfiguredRun* run : runs_) {
      if (run->summary.config == row.config && !reason_against(*run))
        values.insert(division_of(*run, table_));
    }
    if (values.empty()) values.insert("");
    return {values.begin(), values.end()};
  }

  void leave_out_incomparable(const RowSpec& row, std::vector<LeftOut>& left_out) const {
    for (const ConfiguredRun* run : runs_) {
      if (run->summary.config != row.config) continue;
      if (const auto reason = reason_against(*run)) leave_out(run->summary, *reason, left_out);
    }
  }

  /// Fills in the run that the row shows and returns it, null where there is none; the others that
  /// are comparable, of its config and division, are left out.
  const ConfiguredRun* fill(AblationRow& row, std::vector<LeftOut>& left_out) const {
    const Runs runs = comparable(row);
    const ConfiguredRun* shown =
        table_.best_of ? best_of(*table_.best_of, runs, row, left_out) : choose(runs, left_out);
    if (shown) row.run = shown->summary;
    return shown;
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
          division_of(*run, table_) == row.division)
        comparable.push_back(run);
    }
    return comparable;
  }

  /// The newest completed one, else the newest.
  static const ConfiguredRun* choose(const Runs& runs, std::vector<LeftOut>& left_out) {
    const auto completed = std::find_if(runs.begin(), runs.end(), is_completed);
    const ConfiguredRun* shown = completed != runs.end() ? *completed
                                 : runs.empty()          ? nullptr
                                                         : runs.front();
    for (const ConfiguredRun* run : runs) {
      if (run != shown) leave_out(run->summary, reason_beside(run->summary), left_out);
    }
    return shown;
  }

  static const ConfiguredRun* best_of(const BestOfSpec& spec,
                                      const Runs& runs,
                                      AblationRow& row,
                                      std::vector<LeftOut>& left_out) {
    std::vector<Runs> of_value(spec.values.size());
    for (const ConfiguredRun* run : runs) {
      const double value = number_at(run->config, spec.key);
      const auto found = std::find(spec.values.begin(), spec.values.end(), value);
      if (found == spec.values.end()) {
        leave_out(run->summary, spec.key + " " + shortest(value) + ", not in best_of", left_out);
      } else {
        of_value[static_cast<size_t>(found - spec.values.begin())].push_back(run);
      }
    }
    const ConfiguredRun* best = nullptr;
    for (size_t i = 0; i < spec.values.size(); ++i) {
      const ConfiguredRun* shown = choose(of_value[i], left_out);
      row.points.push_back({spec.values[i], std::nullopt});
      if (!shown) continue;
      row.points.back().run = shown->summary;
      if (best && !is_better(*shown, *best, spec)) continue;
      best = shown;
      row.varied = spec.values[i];
    }
    return best;
  }

  std::optional<std::string> reason_against(const ConfiguredRun& run) const {
    if (!has_wanted_profile(run)) {
      return "profile " + run.summary.profile + ", this table shows " + profile_;
    }
    return difference(conditions_of(run, table_), *group_);
  }

  /// Why a run is not shown though it is comparable.
  static std::string reason_beside(const store::RunSummary& run) {
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

/// The speed to compare; none where it was measured otherwise than the others.
std::optional<double> comparable_speed(const AblationRow& row, const TableSpec& table) {
  if (table.tokens_per_second == SpeedSource::benchmark && row.speed &&
      !row.speed->otherwise.empty()) {
    return std::nullopt;
  }
  if (table.tokens_per_second == SpeedSource::runs && !row.same_micro_batch) return std::nullopt;
  return tokens_per_second_of(row, table);
}

void add_changes(const AblationRow& baseline, const TableSpec& table, AblationRow& row) {
  if (&row == &baseline || row.division != baseline.division) return;
  row.throughput_change = change(comparable_speed(row, table).value_or(0),
                                 comparable_speed(baseline, table).value_or(0));
  if (!row.completed() || !baseline.completed() || !row.same_micro_batch) return;
  row.memory_change = change(static_cast<double>(row.run->peak_memory_bytes.value_or(0)),
                             static_cast<double>(baseline.run->peak_memory_bytes.value_or(0)));
}

/// Compares with the baseline's run of the same division; where there is none, with runs that
/// compute all rows of a step at once.
void compare_micro_batches(Ablation& ablation) {
  for (AblationRow& row : ablation.rows) {
    std::optional<int64_t> usual;
    for (const AblationRow& other : ablation.rows) {
      const bool is_baseline = other.spec.config == ablation.table.baseline;
      if (is_baseline && other.division == row.division && other.completed())
        usual = other.run->micro_batch_size;
    }
    row.same_micro_batch = !row.completed() || row.run->micro_batch_size == usual;
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

SetupEntry describe(const BestOfSpec& best_of) {
  std::vector<std::string> values;
  for (const double value : best_of.values) values.push_back(shortest(value));
  const std::string text = best_of.key + " " + join(values, ", ") + " by " + best_of.by;
  return {"Best of", text, "best of " + text};
}

}  // namespace

Ablation build_ablation(const TableSpec& table,
                        const std::vector<ConfiguredRun>& runs,
                        const AblationOptions& options) {
  Ablation ablation;
  ablation.table = table;
  ablation.profile = options.profile;
  ablation.published = options.published;
  const Builder builder(table, options.profile, of_table(table, newest_first(runs)));
  Runs completed;
  for (const RowSpec& spec : table.rows) {
    builder.leave_out_incomparable(spec, ablation.left_out);
    for (const std::string& division : builder.divisions_of(spec)) {
      AblationRow row;
      row.spec = spec;
      row.division = division;
      if (const ConfiguredRun* run = builder.fill(row, ablation.left_out)) {
        if (row.completed()) completed.push_back(run);
        if (ablation.profile.empty()) ablation.profile = run->summary.profile;
      }
      const PublishedFigure* figure =
          options.published ? options.published->find(spec.config) : nullptr;
      if (figure) row.published = *figure;
      ablation.rows.push_back(std::move(row));
    }
  }
  ablation.setup = describe_setup(completed);
  if (table.best_of && !completed.empty()) ablation.setup.push_back(describe(*table.best_of));
  if (table.tokens_per_second == SpeedSource::benchmark) add_speeds(options.benchmarks, ablation);
  compare_micro_batches(ablation);
  for (const AblationRow& baseline : ablation.rows) {
    if (baseline.spec.config != table.baseline) continue;
    for (AblationRow& row : ablation.rows) add_changes(baseline, table, row);
  }
  return ablation;
}

std::optional<double> tokens_per_second_of(const AblationRow& row, const TableSpec& table) {
  if (table.tokens_per_second == SpeedSource::runs) {
    return row.completed() ? row.run->tokens_per_second : std::nullopt;
  }
  if (!row.speed) return std::nullopt;
  return row.speed->record.tokens_per_second;
}

std::string state_text(const AblationRow& row) {
  return row.run ? state_text(*row.run) : "missing";
}

std::vector<std::string> open_values(const AblationRow& row) {
  std::vector<std::string> values;
  for (const Point& point : row.points) {
    if (!point.completed()) values.push_back(shortest(point.value));
  }
  return values;
}

}  // namespace forge::report
