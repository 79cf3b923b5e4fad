#include "core/report/judge.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/statistics/difference.h"

namespace forge::report {
namespace {

using statistics::Difference;
using statistics::Moments;

/// A name of the expression with its sample.
struct Figure {
  Name name;
  FigureSample sample;
  Moments moments;
};

std::vector<double> values_of(const FigureSample& sample) {
  std::vector<double> values;
  for (const SeededValue& each : sample.values) values.push_back(each.value);
  return values;
}

/// The figures that the expression names; `lacking` says what of them there is not.
std::vector<Figure> figures_of(const Expression& expression,
                               const Samples& samples,
                               std::string& lacking) {
  std::vector<Figure> figures;
  for (const Name& name : names_of(expression)) {
    std::optional<FigureSample> sample = samples(name);
    if (!sample || sample->values.empty()) {
      lacking = "no run has " + text_of(name);
      return {};
    }
    const std::optional<Moments> moments = statistics::moments_of(values_of(*sample));
    if (!moments) {
      lacking = text_of(name) + " is no number in one of the runs";
      return {};
    }
    figures.push_back({name, std::move(*sample), *moments});
  }
  return figures;
}

/// The expression's value where each figure is what `value_of` makes of it.
template <class ValueOf>
std::optional<double> evaluate_with(const Expression& expression,
                                    const std::vector<Figure>& figures,
                                    const ValueOf& value_of) {
  return evaluate(expression, [&](const Name& name) -> std::optional<double> {
    for (size_t i = 0; i < figures.size(); ++i)
      if (figures[i].name == name) return value_of(i);
    return std::nullopt;
  });
}

/// The seeds that every figure has once; none where one has others.
std::optional<std::set<int64_t>> common_seeds(const std::vector<Figure>& figures) {
  std::optional<std::set<int64_t>> common;
  for (const Figure& figure : figures) {
    std::set<int64_t> seeds;
    for (const SeededValue& each : figure.sample.values) seeds.insert(each.seed);
    if (seeds.size() != figure.sample.values.size()) return std::nullopt;
    if (common && *common != seeds) return std::nullopt;
    common = std::move(seeds);
  }
  return common;
}

double value_at(const FigureSample& sample, int64_t seed) {
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
                      const std::vector<Figure>& figures,
                      const std::set<int64_t>& seeds,
                      double confidence) {
  std::vector<double> values;
  for (const int64_t seed : seeds) {
    const std::optional<double> value = evaluate_with(
        expression, figures, [&](size_t i) { return value_at(figures[i].sample, seed); });
    if (!value) return false;
    values.push_back(*value);
  }
  const auto found = statistics::one_sample_test(values, 0, confidence);
  if (!found) return false;
  take(estimate, *found, EstimateMethod::paired_by_seed);
  return true;
}

/// How fast the expression changes with each figure, at their means; none where that is not known.
std::optional<std::vector<double>> slopes(const Expression& expression,
                                          const std::vector<Figure>& figures) {
  std::vector<double> result;
  for (size_t moved = 0; moved < figures.size(); ++moved) {
    const Moments& moments = figures[moved].moments;
    // Small against what the figure varies, and not lost in its rounding.
    const double step = std::max(1e-2 * moments.standard_error(), 1e-6 * std::fabs(moments.mean));
    if (step == 0) {  // always 0: it adds nothing
      result.push_back(0);
      continue;
    }
    const auto value_beside = [&](double offset) {
      return evaluate_with(expression, figures, [&](size_t i) {
        return figures[i].moments.mean + (i == moved ? offset : 0);
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

/// Of the figures of one row, which the same runs made: what each run moves the expression by.
Contribution contribution_of(const std::vector<size_t>& row,
                             const std::vector<Figure>& figures,
                             const std::vector<double>& slope) {
  // A run is known by its seed and, where there are several of one, by its place among them.
  std::map<std::pair<int64_t, int>, double> moved_by;
  size_t fewest = figures[row.front()].moments.n;
  for (const size_t i : row) {
    const Moments& moments = figures[i].moments;
    fewest = std::min(fewest, moments.n);
    std::map<int64_t, int> seen;
    for (const SeededValue& each : figures[i].sample.values) {
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
                        const std::vector<Figure>& figures,
                        double confidence) {
  const std::optional<std::vector<double>> slope = slopes(expression, figures);
  if (!slope) return false;
  std::map<std::string, std::vector<size_t>> rows;
  for (size_t i = 0; i < figures.size(); ++i) rows[figures[i].sample.row].push_back(i);

  std::vector<Contribution> contributions;
  double variance = 0;
  double degrees_of_freedom = 0;
  for (const auto& [name, row] : rows) {
    contributions.push_back(contribution_of(row, figures, *slope));
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
  const std::vector<Figure> figures = figures_of(expression, samples, result.lacking);
  if (!result.lacking.empty()) return result;
  result.value =
      evaluate_with(expression, figures, [&](size_t i) { return figures[i].moments.mean; });
  if (!result.value) {
    result.lacking = "it has no value: a division by zero or a result that is no number";
    return result;
  }
  if (figures.empty()) return constant(*result.value);

  const auto fewest =
      std::min_element(figures.begin(), figures.end(), [](const Figure& a, const Figure& b) {
        return a.moments.n < b.moments.n;
      });
  result.runs = fewest->moments.n;
  if (result.runs < 2) {
    result.lacking = "there is one run with " + text_of(fewest->name);
    return result;
  }
  const std::optional<std::set<int64_t>> seeds = common_seeds(figures);
  const bool known = seeds ? estimate_by_seed(result, expression, figures, *seeds, confidence)
                           : estimate_by_slopes(result, expression, figures, confidence);
  if (!known) result.lacking = "it has no value for all that the runs vary over";
  return result;
}

const char* name_of(Judgement judgement) {
  switch (judgement) {
    case Judgement::holds: return "holds";
    case Judgement::fails: return "fails";
    case Judgement::not_decidable: return "not decidable";
  }
  return "";
}

Judged judge(const Comparison& comparison, const Samples& samples, double confidence) {
  Judged judged;
  judged.left = estimate(comparison.left, samples, confidence);
  judged.right = estimate(comparison.right, samples, confidence);
  judged.margin = estimate(difference_of(comparison), samples, confidence);
  if (!judged.margin.interval) {
    judged.reason = judged.margin.lacking;
    return judged;
  }
  const auto [low, high] = *judged.margin.interval;
  bool holds = false;
  bool fails = false;
  switch (comparison.relation) {
    case Relation::less: holds = high < 0, fails = low >= 0; break;
    case Relation::at_most: holds = high <= 0, fails = low > 0; break;
    case Relation::greater: holds = low > 0, fails = high <= 0; break;
    case Relation::at_least: holds = low >= 0, fails = high < 0; break;
  }
  if (holds) judged.judgement = Judgement::holds;
  if (fails) judged.judgement = Judgement::fails;
  if (!holds && !fails) judged.reason = "what the runs vary is more than the difference";
  return judged;
}

}  // namespace forge::report
