#include "core/results/tables/estimate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/row_comparison.h"

namespace forge::tables {
namespace {

/// What a row has of the claim's metric.
struct Measured {
  std::vector<double> values;  ///< one a seed
  statistics::Summary summary;
  /// Of one seed: where the share lies that its cases are a sample of; the value itself where it is
  /// no share.
  statistics::Interval of_cases;
  std::string text;
};

std::string interval_text(const std::string& mean,
                          const std::string& low,
                          const std::string& high) {
  return mean + " (95 %: " + low + " to " + high + ")";
}

Measured measured(const AblationRow& row, const std::string& name) {
  Measured metric;
  for (const store::RunSummary& run : row.runs) metric.values.push_back(*run.metric(name));
  metric.summary = statistics::summarize(metric.values, 0);
  const results::Metric kind = results::metric_named(name);
  const auto text = [&](double value) { return results::text(value, kind); };
  const double mean = metric.summary.mean;
  metric.of_cases = {mean, mean};
  metric.text = text(mean);
  if (const auto& interval = metric.summary.interval) {
    metric.text = interval_text(text(mean), text(interval->low), text(interval->high)) + " over " +
                  std::to_string(metric.values.size()) + " seeds";
  } else if (kind.is_fraction()) {
    const worker::Score& score = row.runs.front().scores.at(name);
    metric.of_cases = statistics::wilson_interval(score.value, score.count);
    metric.text = interval_text(text(mean), text(metric.of_cases.low), text(metric.of_cases.high)) +
                  " of " + with_thousands(score.count) + " cases";
  }
  return metric;
}

bool is_one_seed(const Measured& metric) { return metric.values.size() < 2; }

/// What keeps the claim about these rows from being judged, "" where nothing does.
std::string missing_for(const std::vector<const AblationRow*>& rows,
                        const ClaimSpec& claim,
                        const Ablation& ablation) {
  for (const AblationRow* row : rows) {
    if (!row->is_comparable())
      return row->spec.config + " cannot be compared: " + join(row->violations, "; ");
  }
  const std::string where = " in profile " + claim.profile;
  const auto rows_where = [&](const std::function<bool(const AblationRow&)>& lacks) {
    std::vector<std::string> configs;
    for (const AblationRow* row : rows) {
      if (lacks(*row)) configs.push_back(row->spec.config);
    }
    return join(configs, " and ");
  };
  const auto is_missing = [&](const AblationRow& row) { return !row.completed(); };
  const auto has_no_metric = [&](const AblationRow& row) {
    return std::any_of(row.runs.begin(), row.runs.end(), [&](const store::RunSummary& run) {
      const std::optional<double> metric = run.metric(claim.score);
      return !metric || !std::isfinite(*metric);
    });
  };
  if (const std::string configs = rows_where(is_missing); !configs.empty()) {
    return "no completed run of " + configs + where;
  }
  for (const AblationRow* row : rows) {
    const std::vector<std::string> values = missing_values(*row);
    if (values.empty()) continue;
    return "no completed run of " + row->spec.config + " with " + ablation.table.best_of->key +
           " " + join(values, ", ") + where;
  }
  if (const std::string configs = rows_where(has_no_metric); !configs.empty()) {
    return "no " + claim.score + " of " + configs + where;
  }
  return "";
}

enum class Direction { supports, contradicts, neither };

/// Whether `low` lies below `high`, which need not be strictly.
Direction order_of(const statistics::Interval& low,
                   const statistics::Interval& high,
                   bool strictly) {
  if (strictly ? low.high < high.low : low.high <= high.low) return Direction::supports;
  if (strictly ? low.low >= high.high : low.low > high.high) return Direction::contradicts;
  return Direction::neither;
}

Verdict decided(Direction direction, std::string reason) {
  switch (direction) {
    case Direction::supports: return {Verdict::Kind::holds, "", std::move(reason), true};
    case Direction::contradicts: return {Verdict::Kind::fails, "", std::move(reason), true};
    case Direction::neither: break;
  }
  return {Verdict::Kind::not_decidable, "", reason + "; within noise", true};
}

/// What one seed speaks for, which is no verdict.
Verdict of_one_seed(Direction direction, const std::string& reason) {
  const char* const words = direction == Direction::supports      ? "; one seed, for it"
                            : direction == Direction::contradicts ? "; one seed, against it"
                                                                  : "; one seed, too few cases";
  return {Verdict::Kind::not_decidable, "", reason + words + ": a verdict takes several", true};
}

Verdict judge_against_row(const ClaimSpec& claim,
                          const AblationRow& row,
                          const AblationRow& other_row) {
  const Measured own = measured(row, claim.score), other = measured(other_row, claim.score);
  const bool below = claim.above.empty();
  const results::Metric metric = results::metric_named(claim.score);
  const auto text = [&](double value) {
    return (value < 0 ? "\u2212" : "+") + results::text(std::abs(value), metric);
  };
  if (is_one_seed(own) || is_one_seed(other)) {
    const std::string reason = metric.is_fraction() ? own.text + " against " + other.text
                                                    : text(own.summary.mean - other.summary.mean);
    return of_one_seed(below ? order_of(own.of_cases, other.of_cases, true)
                             : order_of(other.of_cases, own.of_cases, true),
                       reason);
  }
  const std::optional<statistics::Difference> found =
      difference_between(row, own.values, other_row, other.values);
  if (!found) return {Verdict::Kind::not_decidable, "", "a metric is no number"};
  const std::string reason =
      interval_text(
          text(found->difference), text(found->interval.low), text(found->interval.high)) +
      ", " + results::p_value_text(found->p) + ", " + std::to_string(own.values.size()) + " and " +
      std::to_string(other.values.size()) + " seeds";
  if (found->p > significance) return decided(Direction::neither, reason);
  const bool is_below = found->difference < 0;
  return decided(is_below == below ? Direction::supports : Direction::contradicts, reason);
}

Verdict judge_against_number(const ClaimSpec& claim, const AblationRow& row) {
  const Measured own = measured(row, claim.score);
  const statistics::Interval range = own.summary.interval.value_or(own.of_cases);
  const double number = claim.at_least ? *claim.at_least : *claim.at_most;
  const Direction direction = claim.at_least ? order_of({number, number}, range, false)
                                             : order_of(range, {number, number}, false);
  return is_one_seed(own) ? of_one_seed(direction, own.text) : decided(direction, own.text);
}

std::string claim_text(const ClaimSpec& claim, const AblationRow& own, const AblationRow* other) {
  const std::string metric = claim.score == results::eval_loss_name ? "eval loss" : claim.score;
  if (other) {
    return own.spec.name + " has a " + (claim.above.empty() ? "lower " : "higher ") + metric +
           " than " + other->spec.name;
  }
  const bool percent = results::metric_named(claim.score).is_fraction();
  const double limit = claim.at_least ? *claim.at_least : *claim.at_most;
  char number[64];
  std::snprintf(number, sizeof number, "%.6g", percent ? 100 * limit : limit);
  return own.spec.name + " has " + metric + (claim.at_least ? " of at least " : " of at most ") +
         number + (percent ? " %" : "");
}

/// "0.0012 against 0.0350, margin −0.0338 (95 %: −0.0340 to −0.0336) over 3 seeds"
std::string reason_of(const ClaimResult& result) {
  const auto text = [](double value) { return results::fixed_text(value, 4); };
  if (!result.left.value || !result.right.value) return result.reason;
  std::string reason = text(*result.left.value) + " against " + text(*result.right.value);
  if (const auto& interval = result.margin.interval)
    reason += ", margin " +
              interval_text(text(*result.margin.value), text(interval->low), text(interval->high)) +
              " over " + std::to_string(result.margin.runs) + " seeds";
  return result.reason.empty() ? reason : reason + "; " + result.reason;
}

/// "2.3 to 3.3 %", "at least 2.3"
std::string limits_text(const ClaimSpec& claim) {
  const std::string unit = claim.unit.empty() ? "" : " " + claim.unit;
  const auto text = [](double limit) {
    return (limit < 0 ? "\u2212" : "") + shortest(std::abs(limit));
  };
  if (!claim.at_most) return "at least " + text(*claim.at_least) + unit;
  if (!claim.at_least) return "at most " + text(*claim.at_most) + unit;
  return text(*claim.at_least) + " to " + text(*claim.at_most) + unit;
}

/// Whether the value lies between the claim's numbers.
Verdict judge_value(const ClaimSpec& claim, const Samples& samples) {
  const Estimate found = estimate(*claim.expression, samples);
  if (!found.value) return {Verdict::Kind::not_decidable, "", found.missing};
  const std::string unit = claim.unit.empty() ? "" : " " + claim.unit;
  const int precision = unit.empty() ? 4 : 2;  // a loss, or a percentage
  const auto text = [&](double value) { return results::fixed_text(value, precision) + unit; };
  const std::string claimed = ", claimed " + limits_text(claim);
  if (!found.interval) {
    const std::string reason = text(*found.value) + claimed + "; " + found.missing;
    return {Verdict::Kind::not_decidable, "", reason, true};
  }
  const std::string reason =
      interval_text(text(*found.value), text(found.interval->low), text(found.interval->high)) +
      " over " + std::to_string(found.runs) + " seeds" + claimed;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double least = claim.at_least.value_or(-infinity), most = claim.at_most.value_or(infinity);
  const bool within = found.interval->low >= least && found.interval->high <= most;
  const bool beyond = found.interval->high < least || found.interval->low > most;
  return decided(within   ? Direction::supports
                 : beyond ? Direction::contradicts
                          : Direction::neither,
                 reason);
}

Verdict judge_comparison(const ClaimSpec& claim, const Samples& samples) {
  const ClaimResult result = tables::judge(*claim.comparison, samples);
  Verdict verdict;
  verdict.reason = reason_of(result);
  verdict.is_measured = result.left.value && result.right.value;
  if (result.judgement == Judgement::holds) verdict.kind = Verdict::Kind::holds;
  if (result.judgement == Judgement::fails) verdict.kind = Verdict::Kind::fails;
  return verdict;
}

/// What disturbed the runs whose times the claim names, "" for nothing.
std::string loaded_runs(const ClaimSpec& claim, const Ablation& ablation) {
  if (ablation.table.tokens_per_second == SpeedSource::benchmark) return "";
  for (const Name& name :
       claim.comparison ? names_of(*claim.comparison) : names_of(*claim.expression)) {
    const bool is_of_other = name.row == Name::Row::of_config;
    const AblationRow* const row =
        find_row(ablation, is_of_other ? name.config : ablation.table.baseline);
    if (results::metric_named(name.metric).is_timing && row && was_loaded(*row))
      return "of " + row->spec.config + ", " + load_text(*row);
  }
  return "";
}

Verdict judge_expression(const ClaimSpec& claim, const Ablation& ablation) {
  Verdict verdict;
  if (std::string disturbed = loaded_runs(claim, ablation); !disturbed.empty()) {
    verdict.reason = std::move(disturbed);
  } else {
    const Samples samples = samples_for(ablation, *find_row(ablation, ablation.table.baseline));
    verdict = claim.comparison ? judge_comparison(claim, samples) : judge_value(claim, samples);
  }
  verdict.claim = claim.claim;
  return verdict;
}

Verdict judge_as_shown(const ClaimSpec& claim, const Ablation& ablation) {
  if (claim.has_own_words()) return judge_expression(claim, ablation);
  const AblationRow& own = *find_row(ablation, claim.config);
  const std::string& other_config = claim.above.empty() ? claim.below : claim.above;
  const AblationRow* other = other_config.empty() ? nullptr : find_row(ablation, other_config);
  std::vector<const AblationRow*> rows = {&own};
  if (other) rows.push_back(other);
  Verdict verdict;
  verdict.reason = missing_for(rows, claim, ablation);
  if (verdict.reason.empty())
    verdict = other ? judge_against_row(claim, own, *other) : judge_against_number(claim, own);
  verdict.claim = claim_text(claim, own, other);
  return verdict;
}

/// A claim about another profile than the one shown is not decided by it; what the runs that are
/// shown say of it is told all the same.
Verdict judge_claim(const ClaimSpec& claim, const Ablation& ablation) {
  if (ablation.profile.empty() || ablation.profile == claim.profile)
    return judge_as_shown(claim, ablation);
  ClaimSpec as_shown = claim;
  as_shown.profile = ablation.profile;
  Verdict verdict = judge_as_shown(as_shown, ablation);
  const std::string measured = verdict.is_measured ? ", where it is " + verdict.reason : "";
  verdict.reason =
      "it is about profile " + claim.profile + ", shown is " + ablation.profile + measured;
  verdict.kind = Verdict::Kind::not_decidable;
  return verdict;
}

}  // namespace

const char* name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::not_decidable: return "not decidable";
    case Verdict::Kind::holds: return "holds";
    case Verdict::Kind::fails: return "fails";
  }
  return "";
}

std::vector<Verdict> judge_claims(const Ablation& ablation) {
  std::vector<Verdict> verdicts;
  for (const ClaimSpec& claim : ablation.table.claims)
    verdicts.push_back(judge_claim(claim, ablation));
  return verdicts;
}

std::string verdict_line(const Verdict& verdict) {
  return std::string(name_of(verdict.kind)) + ": " + verdict.claim + " (" + verdict.reason + ")";
}

}  // namespace forge::tables
