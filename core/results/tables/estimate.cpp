#include "core/results/tables/estimate.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/statistics/significance.h"
#include "core/results/statistics/value_range.h"
#include "core/results/tables/comparable_metrics.h"

namespace forge::tables {
namespace {

using statistics::Matrix;
using statistics::Moments;
using statistics::Point;  // a value of each metric
using statistics::product;

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

Point means_of(const std::vector<SampledMetric>& metrics) {
  Point means;
  for (const SampledMetric& metric : metrics) means.push_back(metric.moments.mean);
  return means;
}

/// What the expression makes of the metrics' means.
statistics::FunctionOfMeans function_of(const Expression& expression,
                                        const std::vector<SampledMetric>& metrics) {
  statistics::FunctionOfMeans function;
  // The metrics are in the order of the expression's names.
  function.value_at = [numbered = NumberedExpression(expression)](const Point& point) {
    return numbered.at(point);
  };
  function.means = means_of(metrics);
  // Small against what each metric varies, and not lost in its rounding; 0 if it is always 0.
  for (const auto& [name, sample, moments] : metrics)
    function.steps.push_back(std::max({1e-2 * moments.standard_error(),
                                       1e-2 * sample.sampling_error,
                                       1e-6 * std::fabs(moments.mean)}));
  return function;
}

/// What evaluating only so many cases leaves open of the expression: a standard error, 0 without
/// fractions. Nobody knows which cases two models get right, and where one is right on those that
/// the other is wrong on, their errors add up: so they do here.
double sampling_error_of(const std::vector<SampledMetric>& metrics, const Point& slope) {
  double error = 0;
  for (size_t i = 0; i < metrics.size(); ++i)
    error += std::fabs(slope[i]) * metrics[i].sample.sampling_error;
  return error;
}

Matrix zeros(size_t size) { return Matrix(size, Point(size)); }

/// How the means of losses vary together because the evaluation is a sample of the text: those of
/// the same rows of text do, whichever the expression names first. Others each add an error of
/// their own; metrics that no row has, such as parameters, add none.
Matrix covariance_by_evaluation(const std::vector<SampledMetric>& metrics) {
  const auto rows_of = [&](size_t i) -> const store::EvaluationRows& {
    return metrics[i].sample.evaluation_rows;
  };
  Matrix covariance = zeros(metrics.size());
  for (size_t i = 0; i < metrics.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      if (rows_of(i).tokens.empty() || rows_of(i).tokens != rows_of(j).tokens) continue;
      covariance[i][j] = covariance[j][i] = statistics::covariance_of_weighted_means(
          rows_of(i).losses, rows_of(j).losses, rows_of(i).tokens);
    }
  }
  return covariance;
}

/// The fewest degrees of freedom of the errors of evaluating on a limited number of rows.
double degrees_of_evaluation(const std::vector<SampledMetric>& metrics) {
  std::vector<statistics::MeanError> errors;
  for (const SampledMetric& metric : metrics) {
    const auto& [losses, tokens] = metric.sample.evaluation_rows;
    errors.push_back(statistics::error_of_weighted_mean(losses, tokens));
  }
  return statistics::joint_error(errors).degrees_of_freedom;
}

/// By how much the rounding of the metrics' values may move the expression, as the step of
/// is_hidden_by_rounding: that of each metric times its slope. 0 where none was rounded.
double rounding_step_of(const std::vector<SampledMetric>& metrics, const Point& slope) {
  double squares = 0;
  for (size_t i = 0; i < metrics.size(); ++i) {
    if (metrics[i].moments.standard_deviation == 0) continue;
    const double step = slope[i] * statistics::rounding_step(values_of(metrics[i].sample));
    squares += step * step;
  }
  return std::sqrt(squares / 2);  // the step itself of a difference of two equally rounded values
}

/// Whether the expression's values, one for each seed, vary less than rounding alone lets them.
bool is_hidden_by_rounding(const Expression& expression,
                           const std::vector<SampledMetric>& metrics,
                           const Point& slope) {
  std::vector<std::vector<double>> by_seed;
  for (const SampledMetric& metric : metrics) by_seed.push_back(in_order_of_seeds(metric.sample));
  std::vector<double> values;
  for (size_t seed = 0; seed < by_seed.front().size(); ++seed) {
    const std::optional<double> value =
        evaluate_with(expression, metrics, [&](size_t i) { return by_seed[i][seed]; });
    if (!value) return false;
    values.push_back(*value);
  }
  return statistics::is_hidden_by_rounding(values) ||
         statistics::is_hidden_by_rounding(values, rounding_step_of(metrics, slope));
}

/// What a row's runs bring into the expression.
struct Contribution {
  double variance = 0;
  Matrix covariance;  ///< of the means of the metrics
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

/// Of metrics that the same runs made.
Contribution contribution_of(const std::vector<size_t>& together,
                             const std::vector<SampledMetric>& metrics,
                             const Point& slope) {
  std::map<std::pair<int64_t, int>, Point> means_moved_by;
  size_t fewest = metrics[together.front()].moments.n;
  for (const size_t i : together) {
    const Moments& moments = metrics[i].moments;
    fewest = std::min(fewest, moments.n);
    std::map<int64_t, int> seen;
    for (const SeededValue& each : metrics[i].sample.values) {
      Point& moved = means_moved_by[{each.seed, seen[each.seed]++}];
      moved.resize(metrics.size());
      moved[i] = (each.value - moments.mean) / static_cast<double>(moments.n);
    }
  }
  const auto n = static_cast<double>(fewest);
  Contribution result;
  result.degrees_of_freedom = n - 1;
  result.covariance = zeros(metrics.size());
  for (const auto& [run, moved] : means_moved_by) {
    const double of_expression = product(moved, slope);
    result.moved_by[run] = of_expression;
    result.variance += of_expression * of_expression * n / (n - 1);
    for (const size_t i : together)
      for (const size_t j : together) result.covariance[i][j] += moved[i] * moved[j] * n / (n - 1);
  }
  return result;
}

/// How chance moves the means of an expression's metrics.
struct Chance {
  double variance = 0;  ///< of the expression, by the slopes at the means
  double degrees_of_freedom = 0;
  Matrix by_seeds, by_evaluation;  ///< covariances of the means
  double degrees_of_evaluation = 0;
};

/// All metrics vary together where they have the same seeds, else those of one row.
Chance chance_of(const std::vector<SampledMetric>& metrics, const Point& slope, bool paired) {
  std::map<std::string, std::vector<size_t>> together;
  for (size_t i = 0; i < metrics.size(); ++i)
    together[paired ? "" : metrics[i].sample.row].push_back(i);
  Chance chance;
  chance.by_seeds = zeros(metrics.size());
  chance.by_evaluation = covariance_by_evaluation(metrics);
  chance.degrees_of_evaluation = degrees_of_evaluation(metrics);
  std::vector<Contribution> contributions;
  for (const auto& [name, row] : together) {
    contributions.push_back(contribution_of(row, metrics, slope));
    chance.variance += contributions.back().variance;
    chance.degrees_of_freedom += contributions.back().degrees_of_freedom;
    for (const size_t i : row)
      for (const size_t j : row) chance.by_seeds[i][j] = contributions.back().covariance[i][j];
  }
  if (!(chance.variance > 0)) return chance;
  double shares = 0;
  for (const Contribution& each : contributions) {
    const double share = each.variance / chance.variance;
    shares += share * share / each.degrees_of_freedom;
  }
  chance.degrees_of_freedom = 1 / shares;
  // As in Welch's test: of samples of unequal size the smallest tells how much is known.
  const auto [least, most] = std::minmax_element(
      contributions.begin(), contributions.end(), [](const Contribution& a, const Contribution& b) {
        return a.degrees_of_freedom < b.degrees_of_freedom;
      });
  const double of_common_seeds = variance_of_common_seeds(contributions);
  if (least->degrees_of_freedom != most->degrees_of_freedom || of_common_seeds > 0)
    chance.degrees_of_freedom = least->degrees_of_freedom;
  const double larger = 1 + of_common_seeds / chance.variance;
  chance.variance *= larger;
  for (Point& row : chance.by_seeds)
    for (double& covariance : row) covariance *= larger;
  return chance;
}

/// The matrix of the ellipsoid around the means that moves a sum of metrics by as much as its
/// interval reaches: Student's t for the seeds, and for the rows of text. In more dimensions than
/// one it holds the truth in all of these at once.
Matrix squares_of_chance(const Chance& chance, double confidence, int dimensions) {
  const auto critical_value = [&](double degrees_of_freedom) {
    return statistics::hotelling_critical_value(confidence, dimensions, degrees_of_freedom);
  };
  const double seeds = critical_value(chance.degrees_of_freedom);
  const double evaluation = std::isinf(chance.degrees_of_evaluation)  // no rows are known
                                ? 0
                                : critical_value(chance.degrees_of_evaluation);
  Matrix squares = chance.by_seeds;
  for (size_t i = 0; i < squares.size(); ++i)
    for (size_t j = 0; j < squares.size(); ++j)
      squares[i][j] = seeds * seeds * chance.by_seeds[i][j] +
                      evaluation * evaluation * chance.by_evaluation[i][j];
  return squares;
}

/// Within what the numbers of cases leave open of each fraction, whatever they have in common:
/// never less than its exact interval does, which a normal distribution falls short of at few
/// cases.
statistics::Reach reach_of_cases(const std::vector<SampledMetric>& metrics, double confidence) {
  const double z = statistics::normal_critical_value(confidence);
  Point halves;
  for (const auto& [name, sample, moments] : metrics) {
    halves.push_back(z * sample.sampling_error);
    if (sample.cases <= 0) continue;
    const auto exact =
        statistics::exact_interval_of_fraction(moments.mean, sample.cases, confidence);
    halves.back() = std::max({halves.back(), moments.mean - exact.low, exact.high - moments.mean});
  }
  return statistics::within_box(std::move(halves));
}

/// Fills in what several runs of each metric say; `missing` where they say nothing.
void estimate_by_runs(Estimate& estimate,
                      const Expression& expression,
                      const std::vector<SampledMetric>& metrics,
                      double confidence) {
  const bool paired = common_seeds(metrics).has_value();
  const statistics::FunctionOfMeans function = function_of(expression, metrics);
  const std::optional<Point> slope = statistics::slopes(function, function.means);
  estimate.missing = "it has no value for all that the runs vary over";
  if (!slope) return;
  const double sampling_error = sampling_error_of(metrics, *slope);
  const bool is_one_number = std::none_of(metrics.begin(), metrics.end(), [](const auto& metric) {
    return metric.moments.standard_deviation > 0;
  });
  const std::string constant =
      std::string("it does not vary between the runs by more than rounding does") +
      (is_one_number ? "" : ", though its metrics do");
  if (paired && sampling_error == 0 && is_hidden_by_rounding(expression, metrics, *slope)) {
    estimate.missing = constant;
    return;
  }
  const Chance chance = chance_of(metrics, *slope, paired);
  if (!std::isfinite(chance.variance)) return;
  if (chance.variance == 0 && sampling_error == 0) estimate.missing = constant;
  const statistics::MeanError evaluation_error = {
      std::sqrt(std::max(0.0, product(product(chance.by_evaluation, *slope), *slope))),
      chance.degrees_of_evaluation};
  const auto found = statistics::student_t_test(*estimate.value,
                                                std::sqrt(chance.variance),
                                                chance.degrees_of_freedom,
                                                confidence,
                                                sampling_error,
                                                evaluation_error);
  if (!found) return;
  const auto reach_in = [&](int dimensions) {
    statistics::Reach reach =
        statistics::within_ellipsoid(squares_of_chance(chance, confidence, dimensions));
    if (!(sampling_error > 0)) return reach;
    const double of_each = 1 - (1 - confidence) / dimensions;
    return statistics::within_both(std::move(reach), reach_of_cases(metrics, of_each));
  };
  estimate.missing =
      "it bends within what chance moves it by, or has no value there: compare the metrics "
      "themselves";
  std::optional<statistics::Ends> ends = statistics::ends_within(function, reach_in(1));
  if (!ends) return;
  const int dimensions = statistics::directions_at_ends(
      function, *ends, reach_in(1), squares_of_chance(chance, confidence, 1));
  if (dimensions > 1) {
    if (chance.variance > 0 && !(chance.degrees_of_freedom >= dimensions)) return;
    ends = statistics::ends_within(function, reach_in(dimensions));
    if (!ends) return;
  }
  estimate.missing.clear();
  estimate.method = paired ? EstimateMethod::paired_by_seed : EstimateMethod::independent_rows;
  estimate.standard_error = found->standard_error;
  estimate.degrees_of_freedom = found->degrees_of_freedom;
  estimate.interval = statistics::Interval{ends->low.value, ends->high.value};
  estimate.p = dimensions == 1 ? found->p
                               : statistics::hotelling_p(*estimate.value / found->standard_error,
                                                         dimensions,
                                                         found->degrees_of_freedom);
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
  if (evaluates_one_row(metrics)) {
    result.missing = "one row of text was evaluated: nothing says how much another would change";
    return result;
  }
  estimate_by_runs(result, expression, metrics, confidence);
  return result;
}

/// What the parts of a minimum or maximum say of it, if the intervals hold for all of them at once.
Estimate joined(const Pieces& pieces, const Samples& samples, double confidence) {
  if (pieces.kind == Pieces::Kind::smooth) {
    Estimate found = estimate_smooth(pieces.smooth, samples, confidence);
    // A row is exactly as good as itself: `min(a, b) - a` is at most 0.
    if (found.value && is_constant(pieces.smooth)) {
      found.missing.clear();
      take_as_exact(found);
    }
    if (!found.value)
      found.missing =
          "it has no interval: a minimum, maximum or absolute value chooses between values of "
          "which "
          "one is a division by zero or no number";
    return found;
  }
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
    result = joined(
        *pieces,
        samples,
        1 - (1 - confidence) / static_cast<double>(std::max<size_t>(1, count_of_moved(*pieces))));
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
  MetricSample sample{
      row.spec.config, {}, sampling_error_of(row, metric), {}, cases_of(row, metric)};
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
    return sample_of(*named, name.metric);
  };
}

Estimate derived_value(const ColumnSpec& column, const AblationRow& row, const Ablation& ablation) {
  std::vector<Name> names = names_of(column.expression);
  const std::vector<Name> named = names;
  for (const Name& name : named) names.push_back({name.metric, Name::Row::baseline});
  Estimate result;
  result.missing = why_measured_otherwise(metrics_behind(names, ablation, row), ablation.table);
  return result.missing.empty() ? estimate(column.expression, samples_for(ablation, row)) : result;
}

}  // namespace forge::tables
