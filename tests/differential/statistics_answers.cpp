#include "tests/differential/statistics_answers.h"

#include <cmath>

#include "core/base/error.h"
#include "core/results/statistics/sample.h"
#include "core/results/statistics/significance.h"

namespace forge::tests {
namespace {

using nlohmann::json;
using Values = std::vector<double>;

json json_of(const std::optional<double>& number) {
  return number && std::isfinite(*number) ? json(*number) : json();
}

json summary_of(const Values& values, double confidence) {
  const statistics::Summary summary = statistics::summarize(values, 1, confidence);
  json answer = {{"n", summary.n},
                 {"mean", summary.mean},
                 {"standard_deviation", json_of(summary.standard_deviation)},
                 {"standard_error", json_of(summary.standard_error)}};
  if (summary.interval) {
    answer["low"] = summary.interval->low;
    answer["high"] = summary.interval->high;
  }
  return answer;
}

json difference_of(const std::optional<statistics::Difference>& found) {
  if (!found) return nullptr;
  return {{"difference", found->difference},
          {"standard_error", found->standard_error},
          {"degrees_of_freedom", found->degrees_of_freedom},
          {"t", json_of(found->t)},
          {"p", found->p},
          {"low", found->interval.low},
          {"high", found->interval.high},
          {"effect_size", json_of(found->effect_size)}};
}

json holm_of(const json& asked) {
  std::vector<std::optional<double>> p;
  for (const json& value : asked)
    p.push_back(value.is_null() ? std::nullopt : std::optional<double>(value.get<double>()));
  json adjusted = json::array();
  for (const std::optional<double>& value : statistics::holm_adjusted(p))
    adjusted.push_back(json_of(value));
  return {{"adjusted", adjusted}};
}

}  // namespace

json answer_statistics(const json& question) {
  const std::string kind = question.contains("what") ? question["what"] : question["kind"];
  const double confidence = question.value("confidence", statistics::default_confidence);
  if (kind == "summary") return summary_of(question["values"].get<Values>(), confidence);
  if (kind == "welch") {
    return difference_of(statistics::welch_test(
        question["own"].get<Values>(), question["baseline"].get<Values>(), confidence));
  }
  if (kind == "paired") {
    return difference_of(statistics::paired_test(
        question["own"].get<Values>(), question["baseline"].get<Values>(), confidence));
  }
  if (kind == "holm") return holm_of(question["p"]);
  if (kind == "bootstrap") {
    const statistics::Interval interval = statistics::bootstrap_interval(
        question["values"].get<Values>(), question["seed"].get<uint64_t>(), confidence);
    return {{"low", interval.low}, {"high", interval.high}};
  }
  throw Error("no such kind of case: " + kind);
}

}  // namespace forge::tests
