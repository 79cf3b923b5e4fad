#include "core/results/tables/best_of.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/results/metrics.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/run_times.h"

namespace forge::tables {
namespace {

using store::ConfiguredRun;
using Runs = std::vector<const ConfiguredRun*>;

/// The value as a person would have written it: 0.004 and not 0.0040000000000000001.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

/// Whether it is the best value of the row at least as far out as the end of a grid.
bool is_best_beyond(const AblationRow& row, double end, bool upwards) {
  if (!row.varied || (upwards ? *row.varied < end : *row.varied > end)) return false;
  return std::none_of(row.points.begin(), row.points.end(), [&](const SweepPoint& point) {
    return point.value == *row.varied && point.has_diverged();
  });
}

/// "(3 of 3 seeds)".
std::string diverged_seeds_text(const SweepPoint& point) {
  std::set<int64_t> ended = point.ended_early;
  ended.insert(point.diverged.begin(), point.diverged.end());
  return "(" + std::to_string(point.diverged.size()) + " of " +
         counted(point.runs.size() + ended.size(), "seed") +
         (point.hides_diverged ? ", in runs that are archived or left out)" : ")");
}

/// Whether the point is to be shown rather than the other one: it is completed and has the better
/// mean, or neither is completed and it has the newer run. Of a value that diverged with a seed the
/// others may be good: it is behind all that did not.
bool is_better(const SweepPoint& point, const SweepPoint& other, const BestOfSpec& best_of) {
  if (point.completed() != other.completed()) return point.completed();
  if (point.completed() && point.has_diverged() != other.has_diverged())
    return other.has_diverged();
  if (!point.completed()) return made_at(*point.run) > made_at(*other.run);
  return is_preferred(best_of, mean_of(point.runs, best_of.by), mean_of(other.runs, best_of.by));
}

}  // namespace

double number_of(const nlohmann::json& config, const std::string& key) {
  const nlohmann::json* const found = find_value(config, key);
  const config::Key* const known = config::find_key(key);
  const nlohmann::json value = found ? *found
                               : known && !known->default_value.empty()
                                   ? parse_json(known->default_value)
                                   : nlohmann::json();
  return value.is_number() ? value.get<double>() : std::nan("");
}

std::string value_text(double value) {
  const std::string text = shortest(value);
  const bool is_whole = text.size() > 2 && text.compare(text.size() - 2, 2, ".0") == 0;
  return is_whole ? text.substr(0, text.size() - 2) : text;
}

std::optional<double> next_value(const BestOfSpec& best_of,
                                 const std::vector<double>& grid,
                                 bool upwards) {
  const auto [declared_least, declared_most] =
      std::minmax_element(best_of.values.begin(), best_of.values.end());
  std::vector<double> sorted = grid;
  std::sort(sorted.begin(), sorted.end());
  if (!best_of.extend || sorted.size() < 2 || !(sorted.front() > 0)) return std::nullopt;
  const auto added = std::count_if(sorted.begin(), sorted.end(), [&](double value) {
    return upwards ? value > *declared_most : value < *declared_least;
  });
  if (added >= most_extensions) return std::nullopt;
  const double edge = upwards ? sorted.back() : sorted.front();
  const double neighbour = upwards ? sorted[sorted.size() - 2] : sorted[1];
  double next = rounded(edge * (edge / neighbour));
  const config::Key* const key = config::find_key(best_of.key);
  if (key && key->is_integer()) next = std::round(next);
  if ((upwards ? next <= edge : next >= edge) || (key && !key->is_within_limits(next)))
    return std::nullopt;
  return next;
}

std::vector<double> values_beyond(const BestOfSpec& best_of,
                                  const std::vector<double>& grid,
                                  const std::vector<double>& chosen) {
  const auto [least, most] = std::minmax_element(grid.begin(), grid.end());
  std::vector<double> values;
  for (const bool upwards : {false, true}) {
    const double end = upwards ? *most : *least;
    if (std::find(chosen.begin(), chosen.end(), end) == chosen.end()) continue;
    if (const auto next = next_value(best_of, grid, upwards)) values.push_back(*next);
  }
  return values;
}

bool is_preferred(const BestOfSpec& best_of,
                  std::optional<double> own,
                  std::optional<double> other) {
  const double ours = own.value_or(std::nan(""));
  const double theirs = other.value_or(std::nan(""));
  if (std::isnan(ours) || std::isnan(theirs)) return std::isnan(theirs) && !std::isnan(ours);
  return best_of.take == Extreme::highest ? ours > theirs : ours < theirs;
}

bool is_tuning_seed(const BestOfSpec& best_of, int64_t seed) {
  const std::vector<int64_t>& seeds = best_of.tuning_seeds;
  return std::find(seeds.begin(), seeds.end(), seed) != seeds.end();
}

bool decides(const BestOfSpec& best_of, int64_t seed) {
  return best_of.tuning_seeds.empty() || is_tuning_seed(best_of, seed);
}

bool lists_value_of(const BestOfSpec& best_of, const ConfiguredRun& run) {
  const std::vector<double>& values = best_of.values;
  return std::find(values.begin(), values.end(), number_of(run.config, best_of.key)) !=
         values.end();
}

std::string no_metric_reason(const BestOfSpec& best_of) {
  const bool holds_out_none =
      best_of.by == results::validation_loss_name && best_of.validation_rows == 0;
  return "no " + best_of.by + " to choose it by" +
         (holds_out_none ? ": validation_rows in best_of holds out rows for it" : "");
}

std::string why_not_chosen(const BestOfSpec& best_of, const ConfiguredRun& run) {
  const double rows = number_of(run.config, "train.validation_rows");
  if (best_of.validation_rows > 0 && rows != static_cast<double>(best_of.validation_rows))
    return "train.validation_rows " + std::to_string(std::llround(rows)) + ", best_of asks for " +
           std::to_string(best_of.validation_rows);
  if (decides(best_of, run.summary.seed) && is_completed(&run) && !run.summary.metric(best_of.by))
    return no_metric_reason(best_of);
  const double value = number_of(run.config, best_of.key);
  if (std::find(best_of.values.begin(), best_of.values.end(), value) != best_of.values.end())
    return "";
  return best_of.key + " " + value_text(value) + ", not in best_of";
}

namespace {

/// What runs of different values may have in common: all but the value, what follows from it, and
/// the seed.
run::Identity identity_but_value(const TableSpec& table, const ConfiguredRun& run) {
  run::Identity identity = identity_without_seed(run);
  nlohmann::json leaves = nlohmann::json::object();
  for (const auto& [name, value] : run::dotted_leaves(identity.experiment))
    if (name != table.best_of->key && !follows_value(table, run.config, name)) leaves[name] = value;
  identity.experiment = std::move(leaves);
  identity.threads = 0;  // as of sets that were tuned alike (are_tuned_alike)
  return identity;
}

/// Of the completed runs one with the settings that most values have, the newest of equal ones;
/// null where no two values have the same ones, as where something else follows from the value.
const ConfiguredRun* with_common_settings(const TableSpec& table,
                                          const std::vector<Runs>& of_values) {
  struct Setting {
    std::set<size_t> values = {};
    const ConfiguredRun* newest = nullptr;

    auto rank() const { return std::make_pair(values.size(), made_at(newest->summary)); }
  };
  std::map<std::string, Setting> settings;
  for (size_t i = 0; i < of_values.size(); ++i) {
    for (const ConfiguredRun* run : of_values[i]) {
      if (!is_completed(run)) continue;
      Setting& setting = settings[run::identity_hash(identity_but_value(table, *run))];
      setting.values.insert(i);
      if (!setting.newest || made_at(setting.newest->summary) < made_at(run->summary))
        setting.newest = run;
    }
  }
  const auto most = std::max_element(settings.begin(), settings.end(), [](auto& a, auto& b) {
    return a.second.rank() < b.second.rank();
  });
  return most == settings.end() || most->second.values.size() < 2 ? nullptr : most->second.newest;
}

/// Leaves out those of the runs that are not to be kept, and says in what they differ from `usual`.
void keep(const std::function<bool(const ConfiguredRun&)>& is_kept,
          const ConfiguredRun& usual,
          const TableSpec& table,
          std::vector<Runs>& of_values,
          std::vector<ExcludedRuns>& excluded) {
  const run::Identity wanted = identity_but_value(table, usual);
  const auto is_odd = [&](const ConfiguredRun* run) {
    if (is_kept(*run)) return false;
    const std::string differs = difference_text(identity_but_value(table, *run), wanted);
    exclude(run->summary,
            !is_completed(run) ? state_text(run->summary)
            : differs.empty()  ? "made with other settings than the config has now"
                               : differs,
            excluded);
    return true;
  };
  for (Runs& runs : of_values)
    runs.erase(std::remove_if(runs.begin(), runs.end(), is_odd), runs.end());
}

/// Leaves out runs with other settings than the row's, so that values are compared by what they do:
/// one value with another weight decay, say, would be the best whatever the value. The row's are
/// those of the config as it is now, where a run of them is completed, else those that most values
/// have.
void keep_common_settings(const TableSpec& table,
                          const IsCurrent& is_current,
                          std::vector<Runs>& of_values,
                          std::vector<ExcludedRuns>& excluded) {
  const ConfiguredRun* current = nullptr;
  for (const Runs& runs : of_values)
    for (const ConfiguredRun* run : runs)
      if (is_current && is_completed(run) && is_current(*run)) current = run;
  if (current) keep(is_current, *current, table, of_values, excluded);
  const ConfiguredRun* const usual = with_common_settings(table, of_values);
  if (!usual) return;
  const auto settings_of = [&](const ConfiguredRun& run) {
    return run::identity_hash(identity_but_value(table, run));
  };
  const auto has_them = [&, common = settings_of(*usual)](const ConfiguredRun& run) {
    return settings_of(run) == common;
  };
  keep(has_them, *usual, table, of_values, excluded);
}

}  // namespace

void fill_best(const TableSpec& table,
               const Runs& runs,
               const IsCurrent& is_current,
               AblationRow& row,
               std::vector<ExcludedRuns>& excluded) {
  const BestOfSpec& best_of = *table.best_of;
  std::vector<Runs> deciding(best_of.values.size()), others(best_of.values.size());
  for (const ConfiguredRun* run : runs) {
    const std::string reason = why_not_chosen(best_of, *run);
    if (!reason.empty()) {
      exclude(run->summary, reason, excluded);
      continue;
    }
    const auto found = std::find(
        best_of.values.begin(), best_of.values.end(), number_of(run->config, best_of.key));
    const auto place = static_cast<size_t>(found - best_of.values.begin());
    (decides(best_of, run->summary.seed) ? deciding : others)[place].push_back(run);
  }
  keep_common_settings(table, is_current, deciding, excluded);
  for (size_t i = 0; i < best_of.values.size(); ++i)
    row.points.push_back({sample_of(deciding[i], excluded, "", is_current), best_of.values[i]});
  const SweepPoint* best = nullptr;
  for (const SweepPoint& point : row.points) {
    if (point.run && (!best || is_better(point, *best, best_of))) best = &point;
  }
  const bool is_tuned = best && best->completed() && !best_of.tuning_seeds.empty();
  if (best && !is_tuned) static_cast<Sample&>(row) = *best;
  if (best) row.varied = best->value;
  for (size_t i = 0; i < others.size(); ++i) {
    if (is_tuned && best == &row.points[i]) {
      static_cast<Sample&>(row) = sample_of(others[i], excluded, "", is_current);
      continue;
    }
    for (const ConfiguredRun* run : others[i])
      exclude(run->summary,
              best_of.key + " " + value_text(best_of.values[i]) + " is not the value chosen",
              excluded);
  }
}

SetupEntry describe_choice(const TableSpec& table) {
  const BestOfSpec& best_of = *table.best_of;
  std::vector<std::string> values, seeds;
  for (const double value : best_of.values) values.push_back(value_text(value));
  for (const int64_t seed : best_of.tuning_seeds) seeds.push_back(std::to_string(seed));
  const std::string text = best_of.key + " " + join(values, ", ") + " by " + best_of.by;
  const bool is_shown =
      std::any_of(table.columns.begin(), table.columns.end(), [&](const ColumnSpec& column) {
        return metric_of(column) && column.metric == best_of.by;
      });
  std::string note;
  if (!seeds.empty()) {
    note = ", with tuning seeds (" + join(seeds, ", ") + ") that the rows do not show";
    if (results::metric_named(best_of.by).is_eval_loss() && is_shown)
      note +=
          ", but on the rows of text that are shown: this favours rows with many values (by: "
          "validation_loss avoids it)";
  } else if (is_shown && best_of.by != results::train_loss_name) {
    note =
        ", which is the metric that is shown: this favours rows with many values or noisy "
        "metrics (tuning_seeds, and by: validation_loss with validation_rows, avoid it)";
  } else {
    note =
        ", with the seeds that are shown: this favours rows with noisy metrics (tuning_seeds "
        "avoids it)";
  }
  const std::string briefly =
      seeds.empty() ? " with the seeds that are shown, which favours rows with noisy metrics"
                    : " with seeds that are not shown";
  return {"Best of", text + note, "best of " + text + briefly};
}

void mark_wanted(const BestOfSpec& declared, std::vector<AblationRow>& rows) {
  const auto [least, most] = std::minmax_element(declared.values.begin(), declared.values.end());
  for (AblationRow& row : rows) {
    for (size_t i = 0; i < row.points.size(); ++i) {  // sorted, where the grid goes on
      const double value = row.points[i].value;
      const bool upwards = value > *most;
      if (!upwards && value >= *least) continue;
      const double end = row.points[upwards ? i - 1 : i + 1].value;
      row.points[i].is_wanted =
          std::any_of(rows.begin(), rows.end(), [&](const AblationRow& other) {
            return other.group == row.group && is_best_beyond(other, end, upwards);
          });
    }
  }
}

std::set<int64_t> missing_tuning_seeds(const SweepPoint& point, const BestOfSpec& best_of) {
  if (point.has_diverged()) return {};
  std::set<int64_t> missing(best_of.tuning_seeds.begin(), best_of.tuning_seeds.end());
  for (const store::RunSummary& run : point.runs) missing.erase(run.seed);
  for (const int64_t seed : point.ended_early) missing.erase(seed);
  return missing;
}

namespace {

/// Seeds that the commands of a value's runs planned for it and that it has not: whether it would
/// be the best with them nobody knows. Where tuning seeds decide they are no others.
std::set<int64_t> missing_planned_seeds(const SweepPoint& point, const BestOfSpec& best_of) {
  std::set<int64_t> missing;
  if (point.has_diverged() || !best_of.tuning_seeds.empty()) return missing;
  for (const store::RunSummary& run : point.runs)
    for (const std::string& seed : split(run.planned_seeds, ','))
      if (!seed.empty()) missing.insert(std::stoll(seed));
  for (const store::RunSummary& run : point.runs) missing.erase(run.seed);
  for (const int64_t seed : point.ended_early) missing.erase(seed);
  return missing;
}

}  // namespace

std::string divergence_text(const SweepPoint& point) {
  return point.has_diverged() ? "diverged " + diverged_seeds_text(point) : "";
}

std::string divergence_text(const AblationRow& row, const BestOfSpec& best_of) {
  std::vector<std::string> values;
  for (const SweepPoint& point : row.points)
    if (point.has_diverged())
      values.push_back(value_text(point.value) + " " + diverged_seeds_text(point));
  return values.empty() ? "" : "diverged with " + best_of.key + " " + join(values, ", ");
}

std::string incomplete_choice(const AblationRow& row, const TableSpec& table) {
  const BestOfSpec& best_of = *table.best_of;
  std::vector<std::string> archived, left_out, missing, tuned_in_part, run_in_part, ended_early,
      diverged;
  size_t wanted = 0, whole = 0;
  for (const SweepPoint& point : row.points) {
    const std::string value = value_text(point.value);
    if (point.is_archived) archived.push_back(value);
    if (point.is_left_out) left_out.push_back(value);
    if (!point.is_wanted && !point.is_hidden()) continue;
    ++wanted;
    const bool is_shown = best_of.tuning_seeds.empty() && row.varied == point.value;
    const bool is_part =
        point.completed() && !point.has_diverged() && !point.ended_early.empty() && !is_shown;
    const bool is_no_best = point.has_diverged() && row.varied == point.value;
    if (is_part) ended_early.push_back(value);
    if (is_no_best) diverged.push_back(value);
    if (point.is_hidden()) continue;
    const std::set<int64_t> seeds = missing_tuning_seeds(point, best_of);
    const std::set<int64_t> planned = missing_planned_seeds(point, best_of);
    if (!point.is_tried()) {
      missing.push_back(value);
    } else if (!seeds.empty()) {
      tuned_in_part.push_back(value + " (" + seeds_text(seeds) + ")");
    } else if (!planned.empty() && !is_shown) {
      run_in_part.push_back(value + " (" + seeds_text(planned) + ")");
    } else if (!is_part && !is_no_best) {
      ++whole;
    }
  }
  std::vector<std::string> reasons;
  const std::string runs = "with " + best_of.key + " ";
  if (!left_out.empty())
    reasons.push_back("--where leaves out runs " + runs + join(left_out, ", "));
  if (!archived.empty())
    reasons.push_back("runs " + runs + join(archived, ", ") +
                      " are archived (--archived shows all)");
  if (!missing.empty()) reasons.push_back("no run " + runs + join(missing, ", ") + " is completed");
  const std::string make_them = " are not run (make them: 'forge run --table " +
                                shell_quoted(table.name) + table.project_option + "')";
  if (!tuned_in_part.empty())
    reasons.push_back("tuning seeds " + runs + join(tuned_in_part, ", ") + make_them);
  if (!run_in_part.empty())
    reasons.push_back("planned seeds " + runs + join(run_in_part, ", ") + make_them);
  if (!ended_early.empty())
    reasons.push_back("seeds " + runs + join(ended_early, ", ") +
                      " failed or were stopped (complete them: 'forge runs resume')");
  if (!diverged.empty())
    reasons.push_back("runs " + runs + join(diverged, ", ") + ", which it shows, diverged");
  if (reasons.empty()) return "";
  return "the best of " + std::to_string(whole) + " of " + std::to_string(wanted) +
         " values is no best: " + join(reasons, ", ");
}

}  // namespace forge::tables
