#include "core/results/tables/table_spec.h"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/keys.h"

namespace forge::tables {

const PublishedResult* Published::find(const std::string& config) const {
  for (const PublishedResult& result : results) {
    if (result.config == config) return &result;
  }
  return nullptr;
}

void group_by(TableSpec& table, const std::string& key) {
  const std::vector<std::string>& known = config::all_key_paths();
  if (key != "backend" && std::find(known.begin(), known.end(), key) == known.end()) {
    throw Error("there is no key '" + key + "' to divide rows by",
                did_you_mean(key, known, "for example backend, seed or optimizer.lr"));
  }
  if (key == "name" || key == "description")
    throw Error("rows cannot be divided by '" + key +
                    "': each config has its own, and none would stand beside the baseline",
                "'" + key + "' in 'forge runs --columns' lists it",
                ExitCode::usage);
  const bool is_tuned = table.best_of && !table.best_of->tuning_seeds.empty();
  if (key == "seed" && is_tuned)
    throw Error("the rows of table '" + table.name +
                    "' cannot be divided by seed: values are chosen with tuning seeds, and shown "
                    "with others",
                "--points lists what the tuning seeds gave",
                ExitCode::usage);
  table.by = key;
  table.claims_not_judged = std::move(table.claims);
  table.claims.clear();
  // Rows of each value have nothing to choose from.
  if (table.best_of && table.best_of->key == key) {
    table.shown_tuning_seeds = table.best_of->tuning_seeds;
    table.best_of.reset();
    const auto is_varied = [](const ColumnSpec& c) { return c.kind == ColumnKind::varied; };
    table.columns.erase(std::remove_if(table.columns.begin(), table.columns.end(), is_varied),
                        table.columns.end());
  }
  table.tokens_per_second = SpeedSource::runs;
  const auto model = std::find_if(table.columns.begin(), table.columns.end(), [](const auto& c) {
    return c.kind == ColumnKind::model;
  });
  const auto place = model == table.columns.end() ? table.columns.begin() : model + 1;
  table.columns.insert(place, {ColumnKind::by, key == "backend" ? "Backend" : key});
}

const std::vector<std::string>& names_of(ScoreFormat) {
  static const std::vector<std::string> names = {"by_name", "percent", "decimals"};
  return names;
}

const std::vector<std::string>& names_of(Extreme) {
  static const std::vector<std::string> names = {"highest", "lowest"};
  return names;
}

const std::vector<std::string>& names_of(Budget) {
  static const std::vector<std::string> names = {"tokens", "flops", "time"};
  return names;
}

const std::vector<std::string>& names_of(SpeedSource) {
  static const std::vector<std::string> names = {"runs", "benchmark"};
  return names;
}

std::optional<results::Metric> metric_of(const ColumnSpec& column) {
  if (column.kind != ColumnKind::metric && column.kind != ColumnKind::difference)
    return std::nullopt;
  results::Metric metric = results::metric_named(column.metric);
  if (column.format == ScoreFormat::percent) metric.unit = results::Unit::fraction;
  if (column.format == ScoreFormat::decimals) metric.unit = results::Unit::number;
  return metric;
}

bool shows_benchmark(const ColumnSpec& column, const TableSpec& table) {
  return column.kind == ColumnKind::metric && column.metric == results::tokens_per_second_name &&
         table.tokens_per_second == SpeedSource::benchmark;
}

bool is_timed_by_runs(const std::string& metric, const TableSpec& table) {
  const bool has_measured_speeds = table.tokens_per_second == SpeedSource::benchmark;
  return results::metric_named(metric).is_timing &&
         (!has_measured_speeds || metric == results::wall_seconds_name);
}

bool depends_on_time(const ColumnSpec& column, const TableSpec& table) {
  if (column.kind == ColumnKind::overhead)
    return is_timed_by_runs(results::tokens_per_second_name, table);
  if (const auto metric = metric_of(column)) return is_timed_by_runs(metric->name, table);
  const std::vector<Name> names = names_of(column.expression);
  return std::any_of(names.begin(), names.end(), [&](const Name& name) {
    return is_timed_by_runs(name.metric, table);
  });
}

std::vector<ClaimedMetric> metrics_of(const ClaimSpec& claim, const TableSpec& table) {
  std::vector<ClaimedMetric> metrics;
  if (claim.has_own_words()) {
    for (const Name& name : names_of(claim.expression))
      metrics.push_back(
          {name.metric, name.row == Name::Row::of_config ? name.config : table.baseline});
    return metrics;
  }
  for (const std::string& config : {claim.config, claim.below, claim.above})
    if (!config.empty()) metrics.push_back({claim.score, config});
  return metrics;
}

bool shows_equal_budgets(const TableSpec& table) {
  std::vector<std::string> shown;
  const auto add = [&](const std::string& metric, const Expression& expression) {
    shown.push_back(metric);
    for (const Name& name : names_of(expression)) shown.push_back(name.metric);
  };
  for (const ColumnSpec& column : table.columns) add(column.metric, column.expression);
  for (const ClaimSpec& claim : table.claims) add(claim.score, claim.expression);
  return std::any_of(shown.begin(), shown.end(), [](const std::string& name) {
    const results::Metric* const metric = results::find_metric(name);
    return metric && metric->source == results::Source::table;
  });
}

std::string primary_metric(const TableSpec& table) {
  if (!table.primary.empty()) return table.primary;
  for (const ColumnSpec& column : table.columns) {
    if (column.kind == ColumnKind::metric &&
        (column.metric == results::eval_loss_name ||
         results::metric_named(column.metric).source == results::Source::task))
      return column.metric;
  }
  return results::eval_loss_name;
}

std::vector<std::string> scores_of(const TableSpec& table) {
  std::vector<std::string> scores;
  const auto add = [&](const std::string& name) {
    if (results::metric_named(name).source == results::Source::task &&
        std::find(scores.begin(), scores.end(), name) == scores.end())
      scores.push_back(name);
  };
  for (const ColumnSpec& column : table.columns) {
    if (const auto metric = metric_of(column)) add(metric->name);
  }
  if (table.best_of) add(table.best_of->by);
  return scores;
}

}  // namespace forge::tables
