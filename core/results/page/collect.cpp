#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/page/page.h"
#include "core/results/store/result_store.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/provenance.h"

namespace forge::page {
namespace {

/// Differences of differences of such counts, and twice those, are exact in a script's numbers.
constexpr int64_t largest_count = int64_t{1} << 49;

/// Adds the points of a bucket that are kept, in their order.
void add_extremes(const Curve& curve, size_t begin, size_t end, Curve& chosen) {
  constexpr size_t none = std::numeric_limits<size_t>::max();
  std::array<size_t, 3> kept = {none, none, none};
  auto& [lowest, highest, no_number] = kept;
  for (size_t i = begin; i < end; ++i) {
    const double loss = curve[i].loss;
    if (!std::isfinite(loss)) {
      if (no_number == none) no_number = i;
      continue;
    }
    if (lowest == none || loss < curve[lowest].loss) lowest = i;
    if (highest == none || loss > curve[highest].loss) highest = i;
  }
  std::sort(kept.begin(), kept.end());
  const auto last = std::unique(kept.begin(), kept.end());
  for (auto i = kept.begin(); i != last && *i != none; ++i) chosen.push_back(curve[*i]);
}

double power_of_ten(int exponent) { return std::pow(10.0, exponent); }

/// How many decimals the losses keep.
int digits_of_losses(const Curve& curve) {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const store::LossPoint& point : curve) {
    const double size = std::abs(point.loss);
    if (!std::isfinite(size)) continue;
    largest = std::max(largest, size);
    if (size > 0) smallest = std::min(smallest, size);
  }
  int digits = 4;
  if (std::isfinite(smallest))
    digits = std::clamp(3 - static_cast<int>(std::floor(std::log10(smallest))), 4, 9);
  while (largest * power_of_ten(digits) > static_cast<double>(largest_count)) --digits;
  return digits;
}

/// Decimals that make five digits of the longest time.
int digits_of_seconds(const Curve& curve) {
  double longest = 0;
  for (const store::LossPoint& point : curve) {
    if (std::isfinite(point.elapsed_seconds)) longest = std::max(longest, point.elapsed_seconds);
  }
  if (longest <= 0) return 0;
  return std::clamp(5 - static_cast<int>(std::ceil(std::log10(longest))), 0, 6);
}

/// Writes whole numbers as differences in base64 VLQ.
class DifferenceWriter {
 public:
  /// `order` 1: differences, 2: differences of differences, which are 0 on an even grid.
  explicit DifferenceWriter(int order) : order_(order) {}

  /// A number that is too large for a script becomes a gap.
  void number(int64_t value) {
    if (value > largest_count || value < -largest_count) {
      text_ += '~';
      return;
    }
    const int64_t change = value - last_;
    write(order_ == 2 ? change - last_change_ : change);
    last_ = value;
    last_change_ = change;
  }

  void number(double value, double scale) {
    const double count = value * scale;
    if (!std::isfinite(count) || std::abs(count) > static_cast<double>(largest_count)) {
      text_ += '~';
    } else {
      number(static_cast<int64_t>(std::llround(count)));
    }
  }

  const std::string& text() const { return text_; }

 private:
  void write(int64_t value) {
    static const char* const letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t rest =
        value < 0 ? (static_cast<uint64_t>(-value) << 1) | 1 : static_cast<uint64_t>(value) << 1;
    do {
      const uint64_t low = rest & 31;
      rest >>= 5;
      text_ += letters[low | (rest > 0 ? 32 : 0)];
    } while (rest > 0);
  }

  int order_;
  int64_t last_ = 0;
  int64_t last_change_ = 0;
  std::string text_;
};

}  // namespace

Curve downsampled(const Curve& curve, size_t limit) {
  if (curve.size() <= limit) return curve;
  const bool has_gaps = std::any_of(curve.begin(), curve.end(), [](const store::LossPoint& point) {
    return !std::isfinite(point.loss);
  });
  const size_t inner = curve.size() - 2;
  const size_t buckets = (limit - 2) / (has_gaps ? 3 : 2);
  Curve chosen = {curve.front()};
  chosen.reserve(limit);
  for (size_t i = 0; i < buckets; ++i) {
    add_extremes(curve, 1 + i * inner / buckets, 1 + (i + 1) * inner / buckets, chosen);
  }
  chosen.push_back(curve.back());
  return chosen;
}

nlohmann::ordered_json encoded(const Curve& curve) {
  const int loss_digits = digits_of_losses(curve);
  const int seconds_digits = digits_of_seconds(curve);
  DifferenceWriter tokens(2), seconds(2), losses(1);
  for (const store::LossPoint& point : curve) {
    tokens.number(point.tokens);
    seconds.number(point.elapsed_seconds, power_of_ten(seconds_digits));
    losses.number(point.loss, power_of_ten(loss_digits));
  }
  nlohmann::ordered_json json;
  json["count"] = curve.size();
  json["tokens"] = tokens.text();
  json["seconds"] = seconds.text();
  json["seconds_digits"] = seconds_digits;
  json["loss"] = losses.text();
  json["loss_digits"] = loss_digits;
  return json;
}

namespace {

constexpr size_t points_of_a_page = 100000;
constexpr size_t most_varied_keys = 8;  // of a random search
constexpr size_t fewest_points_of_a_curve = 100;
constexpr size_t most_points_of_a_curve = 1000;

size_t points_of_a_curve(size_t runs) {
  return std::clamp(points_of_a_page / std::max<size_t>(runs, 1),
                    fewest_points_of_a_curve,
                    most_points_of_a_curve);
}

/// The column at `place` of the sheet.
ColumnInfo info_of(const tables::ColumnSpec& column,
                   size_t place,
                   const tables::Sheet& sheet,
                   const tables::Ablation& ablation) {
  if (column.kind == tables::ColumnKind::overhead)
    return {results::Direction::higher_is_better, true, results::Unit::fraction};
  if (column.kind == tables::ColumnKind::published)
    return {std::nullopt, results::metric_named(column.metric).is_cost};
  const std::optional<results::Metric> metric = metric_of(column);
  if (!metric) return {};
  ColumnInfo info{metric->better, false, metric->unit};
  if (column.kind == tables::ColumnKind::difference) return info;
  info.is_cost = metric->is_cost;
  if (shows_benchmark(column, ablation.table) || metric->source == results::Source::model)
    return info;
  for (const auto& row : sheet.rows) info.intervals.push_back(row[place].interval);
  return info;
}

/// Why the times of each row cannot be compared; "" where they can.
std::vector<std::string> timing_doubts(const tables::Ablation& ablation) {
  return texts_of(ablation.rows, [](const tables::AblationRow& row) {
    const std::string load = load_text(row);
    return load.empty() ? "" : "timing unreliable: " + load;
  });
}

/// The run that a row shows first, then its other seeds, then those that it was chosen from.
std::vector<std::string> runs_of(const tables::AblationRow& row) {
  std::vector<std::string> ids;
  const auto add = [&](const store::RunSummary& run) {
    if (std::find(ids.begin(), ids.end(), run.id) == ids.end()) ids.push_back(run.id);
  };
  const auto add_all = [&](const tables::Sample& sample) {
    if (sample.run) add(*sample.run);
    for (const store::RunSummary& run : sample.runs) add(run);
  };
  add_all(row);
  for (const tables::SweepPoint& point : row.points) add_all(point);
  return ids;
}

RowSource source_of(const tables::AblationRow& row) {
  const std::string group = row.group.empty() ? "" : " (" + row.group + ")";
  return {row.spec.name + group, runs_of(row), row.violations};
}

Table table_of(const tables::Ablation& ablation) {
  Table table;
  table.name = ablation.table.name;
  table.sheet = make_sheet(ablation);
  table.setup = ablation.setup;
  for (const tables::ColumnSpec& column : shown_columns(ablation)) {
    table.columns.push_back(info_of(column, table.columns.size(), table.sheet, ablation));
    if (depends_on_time(column, ablation.table))
      table.columns.back().doubts = timing_doubts(ablation);
  }
  for (const tables::AblationRow& row : ablation.rows) table.row_sources.push_back(source_of(row));
  return table;
}

/// The wall time at a step: that of the last training metrics up to it; NaN before the first.
double seconds_at(int64_t step, const Curve& losses) {
  const auto after = std::upper_bound(
      losses.begin(), losses.end(), step, [](int64_t wanted, const store::LossPoint& point) {
        return wanted < point.step;
      });
  if (after == losses.begin()) return std::numeric_limits<double>::quiet_NaN();
  return std::prev(after)->elapsed_seconds;
}

Run run_of(store::ConfiguredRun&& configured, const store::ResultStore& store, size_t limit) {
  Run run;
  run.summary = std::move(configured.summary);
  run.config = std::move(configured.config);
  const Curve losses = store.training_losses(run.summary.id);
  Curve evaluations = store.evaluation_losses(run.summary.id);
  for (store::LossPoint& point : evaluations)
    point.elapsed_seconds = seconds_at(point.step, losses);
  run.total_points = losses.size();
  run.training = downsampled(losses, limit);
  run.evaluations = downsampled(evaluations, limit);
  return run;
}

/// By what they are, not by the order of their import.
bool comes_before(const store::ConfiguredRun& a, const store::ConfiguredRun& b) {
  const auto rank = [](const store::RunSummary& run) {
    return std::tie(run.config, run.profile, run.seed, run.created, run.id);
  };
  return rank(a.summary) < rank(b.summary);
}

std::set<std::string> runs_in(const std::vector<tables::Ablation>& tables) {
  std::set<std::string> ids;
  for (const tables::Ablation& table : tables)
    for (const tables::AblationRow& row : table.rows)
      for (const store::RunSummary& run : row.runs) ids.insert(run.id);
  return ids;
}

/// Those of the project; archived ones where a table shows them.
std::vector<store::ConfiguredRun> runs_below(const store::ResultStore& store,
                                             const std::filesystem::path& runs_dir,
                                             const std::string& project,
                                             const std::string& workspace,
                                             const std::set<std::string>& in_tables) {
  store::RunFilter filter;
  filter.project = project;
  filter.workspace = workspace;
  filter.runs_dir = runs_dir;
  filter.archived = true;
  std::vector<store::ConfiguredRun> configured = store.configured_runs(filter);
  const auto is_hidden = [&](const store::ConfiguredRun& run) {
    return run.summary.archived != 0 && in_tables.count(run.summary.id) == 0;
  };
  configured.erase(std::remove_if(configured.begin(), configured.end(), is_hidden),
                   configured.end());
  std::sort(configured.begin(), configured.end(), comes_before);
  return configured;
}

void add_runs(const std::filesystem::path& runs_dir,
              const std::string& workspace,
              const std::set<std::string>& in_tables,
              const CountProgress& progress,
              Page& page) {
  const store::ResultStore store(store::store_path(runs_dir));
  std::vector<store::ConfiguredRun> configured =
      runs_below(store, runs_dir, page.project, workspace, in_tables);
  page.varied = store::varied_keys(configured, most_varied_keys);
  const size_t limit = points_of_a_curve(configured.size());
  for (store::ConfiguredRun& run : configured) {
    page.runs.push_back(run_of(std::move(run), store, limit));
    if (progress) progress(page.runs.size(), configured.size());
  }
}

}  // namespace

Page collect_page(const std::string& project,
                  const std::string& workspace,
                  const std::string& title,
                  const std::vector<tables::Ablation>& tables,
                  const std::filesystem::path& runs_dir,
                  const CountProgress& progress) {
  Page page;
  page.project = project;
  page.title = title;
  for (const tables::Ablation& table : tables) page.tables.push_back(table_of(table));
  if (std::filesystem::exists(runs_dir))
    add_runs(runs_dir, workspace, runs_in(tables), progress, page);
  page.commands = reproduction_commands(tables);
  page.commands.push_back("forge report");
  return page;
}

}  // namespace forge::page
