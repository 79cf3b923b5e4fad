#include "core/results/tables/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/results/metrics.h"
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
      missing = not_finite_text(sample->row, name.metric, values_of(*sample));
      if (missing.empty()) missing = text_of(name) + " is too large to compute with";
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

/// A metric's values in the order of the seeds, each of which it has once.
std::vector<double> in_order_of_seeds(const MetricSample& sample) {
  std::map<int64_t, double> by_seed;
  for (const SeededValue& each : sample.values) by_seed.emplace(each.seed, each.value);
  std::vector<double> values;
  for (const auto& [seed, value] : by_seed) values.push_back(value);
  return values;
}

void take(Estimate& estimate, const Difference& found, EstimateMethod method) {
  estimate.value = found.difference;
  estimate.method = method;
  estimate.standard_error = found.standard_error;
  estimate.degrees_of_freedom = found.degrees_of_freedom;
  estimate.interval = found.interval;
  estimate.p = found.p;
}

/// How fast the expression changes with each metric, at their means; none where that is not known.
std::optional<std::vector<double>> slopes(const Expression& expression,
                                          const std::vector<SampledMetric>& metrics) {
  std::vector<double> result;
  for (size_t moved = 0; moved < metrics.size(); ++moved) {
    const Moments& moments = metrics[moved].moments;
    // Small against what the metric varies, and not lost in its rounding.
    const double step = std::max({1e-2 * moments.standard_error(),
                                  1e-2 * metrics[moved].sample.sampling_error,
                                  1e-6 * std::fabs(moments.mean)});
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

/// What evaluating only so many cases leaves open of the expression: a standard error, 0 without
/// fractions; none where the slopes are not known. Metrics of the same cases count as evaluated on
/// cases of their own, which is never too sure.
std::optional<double> sampling_error_of(const Expression& expression,
                                        const std::vector<SampledMetric>& metrics) {
  if (std::all_of(metrics.begin(), metrics.end(), [](const SampledMetric& metric) {
        return metric.sample.sampling_error == 0;
      }))
    return 0;
  const std::optional<std::vector<double>> slope = slopes(expression, metrics);
  if (!slope) return std::nullopt;
  double error = 0;
  for (size_t i = 0; i < metrics.size(); ++i)
    error = std::hypot(error, (*slope)[i] * metrics[i].sample.sampling_error);
  return error;
}

/// The error of an expression with losses because the evaluation is a sample of the text: that of
/// the mean over the rows of what each contributes. Losses of other rows than the first one's add
/// an error of their own; metrics that no row has, such as parameters, add none.
statistics::MeanError evaluation_error_of(const Expression& expression,
                                          const std::vector<SampledMetric>& metrics) {
  const auto rows_of = [&](size_t i) -> const store::EvaluationRows& {
    return metrics[i].sample.evaluation_rows;
  };
  size_t first = 0;
  while (first < metrics.size() && rows_of(first).tokens.empty()) ++first;
  if (first == metrics.size()) return {};
  const std::optional<std::vector<double>> slope = slopes(expression, metrics);
  if (!slope) return {};
  const std::vector<int64_t>& tokens = rows_of(first).tokens;
  std::vector<double> moved(tokens.size());
  std::vector<statistics::MeanError> others;
  for (size_t i = 0; i < metrics.size(); ++i) {
    const bool is_same = rows_of(i).tokens == tokens;
    std::vector<double> own = rows_of(i).losses;
    for (double& loss : own) loss *= (*slope)[i];
    for (size_t row = 0; is_same && row < moved.size(); ++row) moved[row] += own[row];
    if (!is_same) others.push_back(statistics::error_of_weighted_mean(own, rows_of(i).tokens));
  }
  others.push_back(statistics::error_of_weighted_mean(moved, tokens));
  return statistics::joint_error(others);
}

/// The values of the expression where the metrics are what `value_of(metric, seed)` says, one for
/// each of n seeds; none where it has no value for one of them.
template <class ValueOf>
std::optional<std::vector<double>> evaluate_each(const Expression& expression,
                                                 const std::vector<SampledMetric>& metrics,
                                                 size_t n,
                                                 const ValueOf& value_of) {
  std::vector<double> values;
  for (size_t seed = 0; seed < n; ++seed) {
    const std::optional<double> value =
        evaluate_with(expression, metrics, [&](size_t i) { return value_of(i, seed); });
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

/// By how much the rounding of the metrics' values, of each by seed, may move the expression, as
/// the step of is_hidden_by_rounding: that of each metric times its slope. 0 where none was
/// rounded.
double rounding_step_of(const Expression& expression,
                        const std::vector<SampledMetric>& metrics,
                        const std::vector<std::vector<double>>& by_seed) {
  std::vector<double> steps;
  for (const std::vector<double>& values : by_seed) {
    const bool varies =
        std::any_of(values.begin(), values.end(), [&](double x) { return x != values[0]; });
    steps.push_back(varies ? statistics::rounding_step(values) : 0);
  }
  if (std::all_of(steps.begin(), steps.end(), [](double step) { return step == 0; })) return 0;
  const std::optional<std::vector<double>> slope = slopes(expression, metrics);
  double squares = 0;
  for (size_t i = 0; slope && i < steps.size(); ++i)
    squares += (*slope)[i] * (*slope)[i] * steps[i] * steps[i];
  return std::sqrt(squares / 2);  // the step itself of a difference of two equally rounded values
}

/// Quenouille's and Tukey's jackknife: n numbers whose mean is the expression of the means but for
/// its bias, and whose spread says how sure that is: n f(means) - (n - 1) f(means without a seed).
/// Of an expression without bends they are its values for each seed, whose mean is biased for any
/// other: the mean of squares is no square of means. False where the expression has no value for
/// one of the seeds, or none of them changes it.
bool estimate_by_seed(Estimate& estimate,
                      const Expression& expression,
                      const std::vector<SampledMetric>& metrics,
                      size_t seeds,
                      double confidence) {
  std::vector<std::vector<double>> by_seed;
  for (const SampledMetric& metric : metrics) by_seed.push_back(in_order_of_seeds(metric.sample));
  const auto n = static_cast<double>(seeds);
  const auto values = evaluate_each(
      expression, metrics, seeds, [&](size_t i, size_t seed) { return by_seed[i][seed]; });
  const auto without = evaluate_each(expression, metrics, seeds, [&](size_t i, size_t seed) {
    const double mean = metrics[i].moments.mean;
    return mean + (mean - by_seed[i][seed]) / (n - 1);
  });
  if (!values || !without) return false;
  const std::optional<double> sampling_error = sampling_error_of(expression, metrics);
  if (!sampling_error) return false;
  const double step = rounding_step_of(expression, metrics, by_seed);
  if (*sampling_error == 0 && (statistics::is_hidden_by_rounding(*values) ||
                               statistics::is_hidden_by_rounding(*values, step)))
    return false;
  std::vector<double> unbiased;
  for (const double part : *without)
    unbiased.push_back(*estimate.value + (n - 1) * (*estimate.value - part));
  const statistics::MeanError evaluation_error = evaluation_error_of(expression, metrics);
  const auto found =
      statistics::one_sample_test(unbiased, 0, confidence, *sampling_error, evaluation_error);
  if (!found) return false;
  take(estimate, *found, EstimateMethod::paired_by_seed);
  return true;
}

/// Whether the expression bends within what chance moves a metric by, two standard errors: a mean
/// of squares is no square of means, and a slope says nothing of what lies at the side.
bool is_bent(const Expression& expression, const std::vector<SampledMetric>& metrics) {
  constexpr double most = 0.25;  // of what it moves from one side to the other
  const auto value_beside = [&](size_t moved, double offset) {
    return evaluate_with(expression, metrics, [&](size_t i) {
      return metrics[i].moments.mean + (i == moved ? offset : 0);
    });
  };
  double bend = 0, move = 0;
  for (size_t i = 0; i < metrics.size(); ++i) {
    const double offset =
        2 * std::hypot(metrics[i].moments.standard_error(), metrics[i].sample.sampling_error);
    const auto below = value_beside(i, -offset), at = value_beside(i, 0),
               above = value_beside(i, offset);
    if (!below || !at || !above) return false;  // it has no value there: said elsewhere
    bend = std::max(bend, std::fabs(*above + *below - 2 * *at));
    move = std::max(move, std::fabs(*above - *below));
  }
  return bend > most * move;
}

/// The variance that a row's runs bring into the expression, and its degrees of freedom.
struct Contribution {
  double variance = 0;
  double degrees_of_freedom = 0;
  /// By how much each run moves it. A run is known by its seed and, where there are several of one,
  /// by its place among them.
  std::map<std::pair<int64_t, int>, double> moved_by;
};

/// What rows add to the variance because runs of a seed that both have move the expression in one
/// direction, as in Welch's test; 0 where they do not.
double variance_of_common_seeds(const std::vector<Contribution>& rows) {
  double variance = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      double products = 0, common = 0;
      for (const auto& [run, moved] : rows[i].moved_by) {
        const auto other = rows[j].moved_by.find(run);
        if (other == rows[j].moved_by.end()) continue;
        products += moved * other->second;
        ++common;
      }
      variance += std::max(0.0, 2 * products * common / std::max(common - 1, 1.0));
    }
  }
  return variance;
}

/// Of the metrics of one row, which the same runs made: what each run moves the expression by.
Contribution contribution_of(const std::vector<size_t>& row,
                             const std::vector<SampledMetric>& metrics,
                             const std::vector<double>& slope) {
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
  return {squares * n / (n - 1), n - 1, std::move(moved_by)};
}

/// False where the slopes are not known, and where the metrics do not vary.
bool estimate_by_slopes(Estimate& estimate,
                        const Expression& expression,
                        const std::vector<SampledMetric>& metrics,
                        double confidence) {
  const std::optional<std::vector<double>> slope = slopes(expression, metrics);
  const std::optional<double> sampling_error = sampling_error_of(expression, metrics);
  if (!slope || !sampling_error) return false;
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
  // As in Welch's test: of samples of unequal size the smallest tells how much is known.
  const auto [least, most] = std::minmax_element(
      contributions.begin(), contributions.end(), [](const Contribution& a, const Contribution& b) {
        return a.degrees_of_freedom < b.degrees_of_freedom;
      });
  const double of_common_seeds = variance_of_common_seeds(contributions);
  if (least->degrees_of_freedom != most->degrees_of_freedom || of_common_seeds > 0)
    degrees_of_freedom = least->degrees_of_freedom;
  variance += of_common_seeds;
  const auto found = statistics::student_t_test(*estimate.value,
                                                std::sqrt(variance),
                                                degrees_of_freedom,
                                                confidence,
                                                *sampling_error,
                                                evaluation_error_of(expression, metrics));
  if (!found) return false;
  take(estimate, *found, EstimateMethod::independent_rows);
  return true;
}

/// Of an expression that chance does not move, such as the number on a claim's right side.
void take_as_exact(Estimate& estimate) {
  estimate.standard_error = 0;
  estimate.interval = statistics::Interval{*estimate.value, *estimate.value};
}

bool evaluates_one_row(const std::vector<SampledMetric>& metrics) {
  return std::any_of(metrics.begin(), metrics.end(), [](const SampledMetric& metric) {
    return metric.sample.evaluation_rows.tokens.size() == 1;
  });
}

bool has_no_error(const SampledMetric& metric) {
  return results::metric_named(metric.name.metric).is_exact();
}

/// The estimate of an expression without minima, maxima and absolute values. Its metrics are known.
Estimate estimate_smooth(const Expression& expression, const Samples& samples, double confidence) {
  Estimate result;
  const std::vector<SampledMetric> metrics = metrics_of(expression, samples, result.missing);
  result.value =
      evaluate_with(expression, metrics, [&](size_t i) { return metrics[i].moments.mean; });
  if (!result.value) {
    result.missing = "it has no value: a division by zero or a result that is no number";
    return result;
  }
  const auto fewest = std::min_element(
      metrics.begin(), metrics.end(), [](const SampledMetric& a, const SampledMetric& b) {
        return a.moments.n < b.moments.n;
      });
  if (fewest != metrics.end()) result.runs = fewest->moments.n;
  if (std::all_of(metrics.begin(), metrics.end(), has_no_error)) {
    take_as_exact(result);
    return result;
  }
  if (result.runs < 2) {
    result.missing = "one run counts with " + text_of(fewest->name);
    return result;
  }
  if (is_bent(expression, metrics)) {
    result.missing = "it bends within what chance moves it by: compare the metrics themselves";
    return result;
  }
  const std::optional<std::set<int64_t>> seeds = common_seeds(metrics);
  const bool known = seeds
                         ? estimate_by_seed(result, expression, metrics, seeds->size(), confidence)
                         : estimate_by_slopes(result, expression, metrics, confidence);
  if (!known) result.missing = "it has no value for all that the runs vary over, or does not vary";
  if (!known && evaluates_one_row(metrics))
    result.missing = "one row of text was evaluated: nothing says how much another would change";
  return result;
}

/// What the parts of a minimum or maximum say of it, if the intervals hold for all of them at once.
Estimate joined(const Pieces& pieces, const Samples& samples, double confidence) {
  if (pieces.kind == Pieces::Kind::smooth)
    return estimate_smooth(pieces.smooth, samples, confidence);
  Estimate result;
  statistics::Interval interval;
  for (const Pieces& part : pieces.parts) {
    const Estimate found = joined(part, samples, confidence);
    if (!found.missing.empty()) result.missing = found.missing;
    const bool is_first = &part == &pieces.parts.front();
    if (is_first || (found.runs > 0 && (result.runs == 0 || found.runs < result.runs)))
      result.runs = found.runs;
    if (is_first || found.method != EstimateMethod::none) result.method = found.method;
    if (!found.interval) continue;
    const auto [low, high] = *found.interval;
    const bool takes_less = pieces.kind != Pieces::Kind::maximum;
    const bool takes_more = pieces.kind != Pieces::Kind::minimum;
    interval =
        is_first ? *found.interval
                 : statistics::Interval{
                       takes_less ? std::min(interval.low, low) : std::max(interval.low, low),
                       takes_more ? std::max(interval.high, high) : std::min(interval.high, high)};
  }
  if (result.missing.empty()) result.interval = interval;
  return result;
}

}  // namespace

std::string not_finite_text(const std::string& row,
                            const std::string& metric,
                            const std::vector<double>& values) {
  const auto bad = std::count_if(
      values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
  if (bad == 0) return "";
  const std::string in_runs = " in " + std::to_string(bad) + " of " + counted(values.size(), "run");
  const results::Metric kind = results::metric_named(metric);
  // A loss at an equal budget is none before the first evaluation, which is no divergence.
  const bool is_loss_of_run =
      kind.unit == results::Unit::nats_per_token && kind.source != results::Source::table;
  return is_loss_of_run ? row + " diverged" + in_runs + ": its " + metric + " is inf or NaN"
                        : "the " + metric + " of " + row + " is inf or NaN" + in_runs;
}

Estimate estimate(const Expression& expression, const Samples& samples, double confidence) {
  Estimate result;
  const std::vector<SampledMetric> metrics = metrics_of(expression, samples, result.missing);
  if (!result.missing.empty()) return result;
  const std::optional<Pieces> pieces = pieces_of(expression);
  if (pieces && pieces->kind == Pieces::Kind::smooth)
    return estimate_smooth(expression, samples, confidence);
  if (pieces)
    result =
        joined(*pieces, samples, 1 - (1 - confidence) / static_cast<double>(count_of(*pieces)));
  else
    result.missing = "it has too many minima and maxima for an interval";
  result.value =
      evaluate_with(expression, metrics, [&](size_t i) { return metrics[i].moments.mean; });
  if (!result.value)
    result.missing = "it has no value: a division by zero or a result that is no number";
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
  return MetricSample{row.spec.config, {{0, row.speed->record.tokens_per_second}}, 0, {}};
}

std::optional<MetricSample> sample_of(const AblationRow& row, const std::string& metric) {
  MetricSample sample{row.spec.config, {}, sampling_error_of(row, metric), {}};
  if (results::metric_named(metric).is_eval_loss()) sample.evaluation_rows = row.evaluation_rows;
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
