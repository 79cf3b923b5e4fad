#include "core/results/tables/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/results/statistics/significance.h"

namespace forge::tables {
namespace {

using statistics::Difference;
using statistics::Moments;

/// A name of the expression with its sample.
struct SampledMetric {
  Name name;
  MetricSample sample;
  Moments moments;
};

std::vector<double> values_of(const MetricSample& sample) {
  std::vector<double> values;
  for (const SeededValue& each : sample.values) values.push_back(each.value);
  return values;
}

/// The metrics that the expression names; `missing` says which of them no run has.
std::vector<SampledMetric> metrics_of(const Expression& expression,
                                      const Samples& samples,
                                      std::string& missing) {
  std::vector<SampledMetric> metrics;
  for (const Name& name : names_of(expression)) {
    std::optional<MetricSample> sample = samples(name);
    if (!sample || sample->values.empty()) {
      missing = "no run has " + text_of(name);
      return {};
    }
    const std::optional<Moments> moments = statistics::moments_of(values_of(*sample));
    if (!moments) {
      missing = text_of(name) + " is no number in one of the runs";
      return {};
    }
    metrics.push_back({name, std::move(*sample), *moments});
  }
  return metrics;
}

/// The expression's value where each metric is what `value_of` makes of it.
template <class ValueOf>
std::optional<double> evaluate_with(const Expression& expression,
                                    const std::vector<SampledMetric>& metrics,
                                    const ValueOf& value_of) {
  return evaluate(expression, [&](const Name& name) -> std::optional<double> {
    for (size_t i = 0; i < metrics.size(); ++i)
      if (metrics[i].name == name) return value_of(i);
    return std::nullopt;
  });
}

/// The seeds that every metric has once; none where one has others.
std::optional<std::set<int64_t>> common_seeds(const std::vector<SampledMetric>& metrics) {
  std::optional<std::set<int64_t>> common;
  for (const SampledMetric& metric : metrics) {
    std::set<int64_t> seeds;
    for (const SeededValue& each : metric.sample.values) seeds.insert(each.seed);
    if (seeds.size() != metric.sample.values.size()) return std::nullopt;
    if (common && *common != seeds) return std::nullopt;
    common = std::move(seeds);
  }
  return common;
}

double value_at(const MetricSample& sample, int64_t seed) {
  return std::find_if(sample.values.begin(),
                      sample.values.end(),
                      [&](const SeededValue& each) { return each.seed == seed; })
      ->value;
}

void take(Estimate& estimate, const Difference& found, EstimateMethod method) {
  estimate.value = found.difference;
  estimate.method = method;
  estimate.standard_error = found.standard_error;
  estimate.degrees_of_freedom = found.degrees_of_freedom;
  estimate.interval = found.interval;
  estimate.p = found.p;
}

/// False where the expression has no value for one of the seeds.
bool estimate_by_seed(Estimate& estimate,
                      const Expression& expression,
                      const std::vector<SampledMetric>& metrics,
                      const std::set<int64_t>& seeds,
                      double confidence) {
  std::vector<double> values;
  for (const int64_t seed : seeds) {
    const std::optional<double> value = evaluate_with(
        expression, metrics, [&](size_t i) { return value_at(metrics[i].sample, seed); });
    if (!value) return false;
    values.push_back(*value);
  }
  const auto found = statistics::one_sample_test(values, 0, confidence);
  if (!found) return false;
  take(estimate, *found, EstimateMethod::paired_by_seed);
  return true;
}

/// How fast the expression changes with each metric, at their means; none where that is not known.
std::optional<std::vector<double>> slopes(const Expression& expression,
                                          const std::vector<SampledMetric>& metrics) {
  std::vector<double> result;
  for (size_t moved = 0; moved < metrics.size(); ++moved) {
    const Moments& moments = metrics[moved].moments;
    // Small against what the metric varies, and not lost in its rounding.
    const double step = std::max(1e-2 * moments.standard_error(), 1e-6 * std::fabs(moments.mean));
    if (step == 0) {  // always 0: it adds nothing
      result.push_back(0);
      continue;
    }
    const auto value_beside = [&](double offset) {
      return evaluate_with(expression, metrics, [&](size_t i) {
        return metrics[i].moments.mean + (i == moved ? offset : 0);
      });
    };
    const std::optional<double> above = value_beside(step);
    const std::optional<double> below = value_beside(-step);
    if (!above || !below) return std::nullopt;
    result.push_back((*above - *below) / (2 * step));
  }
  return result;
}

/// The variance that a row's runs bring into the expression, and its degrees of freedom.
struct Contribution {
  double variance = 0;
  double degrees_of_freedom = 0;
};

/// Of the metrics of one row, which the same runs made: what each run moves the expression by.
Contribution contribution_of(const std::vector<size_t>& row,
                             const std::vector<SampledMetric>& metrics,
                             const std::vector<double>& slope) {
  // A run is known by its seed and, where there are several of one, by its place among them.
  std::map<std::pair<int64_t, int>, double> moved_by;
  size_t fewest = metrics[row.front()].moments.n;
  for (const size_t i : row) {
    const Moments& moments = metrics[i].moments;
    fewest = std::min(fewest, moments.n);
    std::map<int64_t, int> seen;
    for (const SeededValue& each : metrics[i].sample.values) {
      moved_by[{each.seed, seen[each.seed]++}] +=
          slope[i] * (each.value - moments.mean) / static_cast<double>(moments.n);
    }
  }
  double squares = 0;
  for (const auto& [run, moved] : moved_by) squares += moved * moved;
  const auto n = static_cast<double>(fewest);
  return {squares * n / (n - 1), n - 1};
}

/// False where the slopes are not known.
bool estimate_by_slopes(Estimate& estimate,
                        const Expression& expression,
                        const std::vector<SampledMetric>& metrics,
                        double confidence) {
  const std::optional<std::vector<double>> slope = slopes(expression, metrics);
  if (!slope) return false;
  std::map<std::string, std::vector<size_t>> rows;
  for (size_t i = 0; i < metrics.size(); ++i) rows[metrics[i].sample.row].push_back(i);

  std::vector<Contribution> contributions;
  double variance = 0;
  double degrees_of_freedom = 0;
  for (const auto& [name, row] : rows) {
    contributions.push_back(contribution_of(row, metrics, *slope));
    variance += contributions.back().variance;
    degrees_of_freedom += contributions.back().degrees_of_freedom;
  }
  if (!std::isfinite(variance)) return false;
  if (variance > 0) {
    double shares = 0;
    for (const Contribution& each : contributions) {
      const double share = each.variance / variance;
      shares += share * share / each.degrees_of_freedom;
    }
    degrees_of_freedom = 1 / shares;
  }
  take(estimate,
       statistics::student_t_test(
           *estimate.value, std::sqrt(variance), degrees_of_freedom, confidence),
       EstimateMethod::independent_rows);
  return true;
}

/// Of an expression without names, such as the number on a claim's right side.
Estimate constant(double value) {
  Estimate estimate;
  estimate.value = value;
  estimate.standard_error = 0;
  estimate.interval = statistics::Interval{value, value};
  return estimate;
}

}  // namespace

Estimate estimate(const Expression& expression, const Samples& samples, double confidence) {
  Estimate result;
  const std::vector<SampledMetric> metrics = metrics_of(expression, samples, result.missing);
  if (!result.missing.empty()) return result;
  result.value =
      evaluate_with(expression, metrics, [&](size_t i) { return metrics[i].moments.mean; });
  if (!result.value) {
    result.missing = "it has no value: a division by zero or a result that is no number";
    return result;
  }
  if (metrics.empty()) return constant(*result.value);

  const auto fewest = std::min_element(
      metrics.begin(), metrics.end(), [](const SampledMetric& a, const SampledMetric& b) {
        return a.moments.n < b.moments.n;
      });
  result.runs = fewest->moments.n;
  if (result.runs < 2) {
    result.missing = "there is one run with " + text_of(fewest->name);
    return result;
  }
  const std::optional<std::set<int64_t>> seeds = common_seeds(metrics);
  const bool known = seeds ? estimate_by_seed(result, expression, metrics, *seeds, confidence)
                           : estimate_by_slopes(result, expression, metrics, confidence);
  if (!known) result.missing = "it has no value for all that the runs vary over";
  return result;
}

const char* name_of(Verdict verdict) {
  constexpr const char* names[] = {"not decidable", "holds", "fails"};
  return names[static_cast<size_t>(verdict)];
}

ClaimResult judge(const Comparison& comparison, const Samples& samples, double confidence) {
  ClaimResult result;
  result.left = estimate(comparison.left, samples, confidence);
  result.right = estimate(comparison.right, samples, confidence);
  result.margin = estimate(difference_of(comparison), samples, confidence);
  if (!result.margin.interval) {
    result.reason = result.margin.missing;
    return result;
  }
  const auto [low, high] = *result.margin.interval;
  bool holds = false;
  bool fails = false;
  switch (comparison.relation) {
    case Relation::less: holds = high < 0, fails = low >= 0; break;
    case Relation::at_most: holds = high <= 0, fails = low > 0; break;
    case Relation::greater: holds = low > 0, fails = high <= 0; break;
    case Relation::at_least: holds = low >= 0, fails = high < 0; break;
  }
  if (holds) result.verdict = Verdict::holds;
  if (fails) result.verdict = Verdict::fails;
  if (!holds && !fails) result.reason = "what the runs vary is more than the difference";
  return result;
}

namespace {

std::optional<MetricSample> measured_speed(const AblationRow& row) {
  if (!row.speed || !row.speed->not_comparable_because.empty()) return std::nullopt;
  return MetricSample{row.spec.config, {{0, row.speed->record.tokens_per_second}}};
}

std::optional<MetricSample> sample_of(const AblationRow& row, const std::string& metric) {
  MetricSample sample{row.spec.config, {}};
  const std::vector<double> values = values_of(row, metric);
  for (size_t i = 0; i < values.size(); ++i) sample.values.push_back({row.runs[i].seed, values[i]});
  if (sample.values.empty()) return std::nullopt;
  return sample;
}

}  // namespace

Samples samples_for(const Ablation& ablation, const AblationRow& row) {
  const AblationRow* const baseline = find_row(ablation, ablation.table.baseline, row.group);
  return [&ablation, &row, baseline](const Name& name) -> std::optional<MetricSample> {
    const AblationRow* named = &row;
    if (name.row == Name::Row::baseline) named = baseline;
    if (name.row == Name::Row::of_config) named = find_row(ablation, name.config, row.group);
    if (!named) return std::nullopt;
    if (named != &row && !(named->is_comparable() && row.is_comparable())) return std::nullopt;
    if (name.metric == results::tokens_per_second_name &&
        ablation.table.tokens_per_second == SpeedSource::benchmark)
      return measured_speed(*named);
    const bool not_comparable_because = results::metric_named(name.metric).depends_on_device &&
                                        named->completed() && baseline && baseline->completed() &&
                                        !same_setup(*named, *baseline);
    return not_comparable_because ? std::nullopt : sample_of(*named, name.metric);
  };
}

}  // namespace forge::tables
