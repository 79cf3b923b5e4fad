#include "core/results/tables/table_design.h"
#include "core/results/tables/verdicts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/comparable_metrics.h"
#include "core/results/tables/completeness.h"
#include "core/results/tables/estimate.h"
#include "core/results/tables/other_budgets.h"
#include "core/results/tables/row_comparison.h"

namespace forge::tables {
namespace {

/// The values of a claim's metric in the runs of a row.
struct ClaimMetric {
  std::vector<double> values;  ///< one a seed
  statistics::Summary summary;
  /// Of one seed's fraction: Wilson's interval over its cases; of other metrics the value itself.
  statistics::Interval of_cases;
  std::string text;

  bool is_one_seed() const { return values.size() < 2; }
};

std::string interval_text(const std::string& mean,
                          const std::string& low,
                          const std::string& high) {
  return mean + " (95 %: " + low + " to " + high + ")";
}

/// `limit`: what its text is to tell it from.
ClaimMetric sampled(const AblationRow& row,
                    const std::string& name,
                    double limit = std::nan(""),
                    double confidence = statistics::default_confidence) {
  ClaimMetric metric;
  metric.values = values_of(row, name);
  metric.summary = statistics::summarize(metric.values, 0, confidence, cases_of(row, name));
  const results::Metric kind = results::metric_named(name);
  if (kind.is_eval_loss()) {
    const auto& [losses, tokens] = row.evaluation_rows;
    const auto over_rows = statistics::one_sample_test(
        metric.values, 0, confidence, 0, statistics::error_of_weighted_mean(losses, tokens));
    if (over_rows) metric.summary.interval = over_rows->interval;
  }
  const double mean = metric.summary.mean;
  metric.of_cases = {mean, mean};
  std::string of_what;
  if (metric.summary.interval) {
    of_what = " over " + std::to_string(metric.values.size()) + " seeds";
  } else if (kind.is_fraction()) {
    const worker::Score& score = row.runs.front().scores.at(name);
    metric.of_cases = statistics::wilson_interval(score.value, score.count);
    of_what = " of " + with_thousands(score.count) + " cases";
  }
  const auto [low, high] = metric.summary.interval.value_or(metric.of_cases);
  const auto text = results::text_beside(limit, {mean, low, high}, kind);
  metric.text =
      of_what.empty() ? text(mean) : interval_text(text(mean), text(low), text(high)) + of_what;
  return metric;
}

/// Why nothing can be said of these rows, "" if it can.
std::string missing_runs(const std::vector<const AblationRow*>& rows, const ClaimSpec& claim) {
  std::vector<std::string> incomplete;
  for (const AblationRow* row : rows) {
    if (!row->is_comparable())
      return row->spec.config + " cannot be compared: " + join(row->violations, "; ");
    if (!row->completed()) incomplete.push_back(row->spec.config);
  }
  if (incomplete.empty()) return "";
  return "no completed run of " + join(incomplete, " and ") + " in profile " + claim.profile;
}

/// Of which of the rows runs lack the claim's metric or have no finite one, "" if none do.
std::string missing_metrics(const std::vector<const AblationRow*>& rows, const ClaimSpec& claim) {
  std::vector<std::string> without_metric;
  for (const AblationRow* row : rows)
    if (values_of(*row, claim.score).empty()) without_metric.push_back(row->spec.config);
  if (!without_metric.empty())
    return "no " + claim.score + " of " + join(without_metric, " and ") + " in profile " +
           claim.profile;
  std::vector<std::string> diverged;
  for (const AblationRow* row : rows) {
    const std::string text =
        not_finite_text(row->spec.config, claim.score, values_of(*row, claim.score));
    if (!text.empty()) diverged.push_back(text);
  }
  return join(diverged, ", ");
}

/// Whether `low` lies below `high`, which need not be strictly.
Verdict order_of(const statistics::Interval& low, const statistics::Interval& high, bool strictly) {
  if (strictly ? low.high < high.low : low.high <= high.low) return Verdict::holds;
  if (strictly ? low.low >= high.high : low.low > high.high) return Verdict::fails;
  return Verdict::not_decidable;
}

JudgedClaim measured(Verdict verdict, const std::string& reason) {
  return {verdict, "", reason, true, std::nullopt, false};
}

/// Why a test over several seeds is not possible.
std::string why_no_interval(const AblationRow& row) {
  if (row.evaluation_rows.losses.size() == 1)
    return "one row of text was evaluated: nothing says how much another would change";
  return "the seeds do not differ, or less than the values are rounded: nothing says how much "
         "chance "
         "does";
}

/// What several seeds say: its p follows (judge_claim).
JudgedClaim tested(Verdict verdict, const std::string& reason) {
  return {verdict, "", reason, true, 1, false};
}

/// What one seed suggests, which is no verdict.
JudgedClaim of_one_seed(Verdict suggested, const std::string& reason) {
  const char* const words = suggested == Verdict::holds   ? "; one seed, for it"
                            : suggested == Verdict::fails ? "; one seed, against it"
                                                          : "; one seed, too few cases";
  return measured(Verdict::not_decidable, reason + words + ": a verdict takes several");
}

/// Writes differences, with as many digits as tell `values` from 0.
std::function<std::string(double)> signed_text(std::vector<double> values,
                                               const results::Metric& metric) {
  for (double& value : values) value = std::abs(value);
  const auto text = results::text_beside(0, values, metric);
  return [text](double value) { return (value < 0 ? "\u2212" : "+") + text(std::abs(value)); };
}

JudgedClaim judge_against_row(const ClaimSpec& claim,
                              const AblationRow& row,
                              const AblationRow& other_row,
                              double confidence) {
  const bool below = claim.above.empty();
  const results::Metric metric = results::metric_named(claim.score);
  const ClaimMetric own = sampled(row, claim.score), other = sampled(other_row, claim.score);
  const double difference = own.summary.mean - other.summary.mean;
  const std::optional<RowDifference> shown = difference_between(row, other_row, claim.score);
  const auto text = signed_text(shown ? std::vector<double>{shown->difference.difference,
                                                            shown->difference.interval.low,
                                                            shown->difference.interval.high}
                                      : std::vector<double>{difference},
                                metric);
  if (metric.is_exact()) {
    const statistics::Interval exact = {difference, difference}, none = {0, 0};
    return measured(below ? order_of(exact, none, true) : order_of(none, exact, true),
                    text(difference));
  }
  if (own.is_one_seed() || other.is_one_seed()) {
    const std::string reason =
        metric.is_fraction() ? own.text + " against " + other.text : text(difference);
    return of_one_seed(below ? order_of(own.of_cases, other.of_cases, true)
                             : order_of(other.of_cases, own.of_cases, true),
                       reason);
  }
  if (!shown)
    return measured(Verdict::not_decidable, text(difference) + "; " + why_no_interval(row));
  const auto& [low, high] = shown->difference.interval;
  const std::string reason =
      interval_text(text(shown->difference.difference), text(low), text(high)) + ", " +
      std::to_string(row.runs.size()) + " and " + std::to_string(other_row.runs.size()) + " seeds";
  const statistics::Interval judged =
      difference_between(row, other_row, claim.score, confidence)->difference.interval;
  const statistics::Interval none = {0, 0};
  return tested(below ? order_of(judged, none, true) : order_of(none, judged, true), reason);
}

JudgedClaim judge_against_number(const ClaimSpec& claim,
                                 const AblationRow& row,
                                 double confidence) {
  const double number = claim.at_least ? *claim.at_least : *claim.at_most;
  const ClaimMetric own = sampled(row, claim.score, number);
  const ClaimMetric at_confidence = sampled(row, claim.score, number, confidence);
  const statistics::Interval range = at_confidence.summary.interval.value_or(own.of_cases);
  const Verdict verdict = claim.at_least ? order_of({number, number}, range, false)
                                         : order_of(range, {number, number}, false);
  if (own.is_one_seed()) return of_one_seed(verdict, own.text);
  const results::Metric metric = results::metric_named(claim.score);
  const bool is_of_one_row = metric.is_eval_loss() && row.evaluation_rows.losses.size() == 1;
  if (is_of_one_row || (range.high == range.low && !metric.is_exact()))
    return measured(Verdict::not_decidable, own.text + "; " + why_no_interval(row));
  return tested(verdict, own.text);
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
  if (!result.left.value || !result.right.value) return result.reason;
  int decimals = results::decimals_beside({*result.left.value}, {*result.right.value}, 4);
  const auto& interval = result.margin.interval;
  if (interval)
    decimals = results::decimals_beside(
        {0}, {*result.margin.value, interval->low, interval->high}, decimals);
  const auto text = [&](double value) { return results::fixed_text(value, decimals); };
  const std::string reason = text(*result.left.value) + " against " + text(*result.right.value);
  if (interval)
    return reason + ", margin " +
           interval_text(text(*result.margin.value), text(interval->low), text(interval->high)) +
           " over " + counted(result.margin.runs, "seed");
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
JudgedClaim judge_value(const ClaimSpec& claim, const Samples& samples, double confidence) {
  const Estimate found = estimate(claim.expression, samples);
  if (!found.value) return {Verdict::not_decidable, "", found.missing, false, std::nullopt, false};
  const std::string unit = claim.unit.empty() ? "" : " " + claim.unit;
  std::vector<double> limits, values = {*found.value};
  for (const auto& limit : {claim.at_least, claim.at_most})
    if (limit) limits.push_back(*limit);
  if (found.interval) values.insert(values.end(), {found.interval->low, found.interval->high});
  const int usual = unit.empty() ? 4 : 2;  // a loss, or a percentage
  const int decimals = results::decimals_beside(limits, values, usual);
  const auto text = [&](double value) { return results::fixed_text(value, decimals) + unit; };
  const std::string claimed = ", claimed " + limits_text(claim);
  if (!found.interval)
    return measured(Verdict::not_decidable, text(*found.value) + claimed + "; " + found.missing);
  const std::string reason =
      interval_text(text(*found.value), text(found.interval->low), text(found.interval->high)) +
      " over " + counted(found.runs, "seed") + claimed;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double least = claim.at_least.value_or(-infinity), most = claim.at_most.value_or(infinity);
  const auto judged = estimate(claim.expression, samples, confidence).interval;
  if (!judged) return tested(Verdict::not_decidable, reason);  // it bends, so far from the means
  const auto [low, high] = *judged;
  if (low >= least && high <= most) return tested(Verdict::holds, reason);
  return tested(high < least || low > most ? Verdict::fails : Verdict::not_decidable, reason);
}

JudgedClaim judge_comparison(const ClaimSpec& claim, const Samples& samples, double confidence) {
  const ClaimResult shown = judge(*claim.comparison, samples);
  const ClaimResult result = judge(*claim.comparison, samples, confidence);
  const std::string reason = reason_of(shown);
  if (shown.margin.interval) return tested(result.verdict, reason);
  const bool is_measured = shown.left.value && shown.right.value;
  return {Verdict::not_decidable, "", reason, is_measured, std::nullopt, false};
}

/// The rows whose metrics a claim is about, of those that `is_meant` says.
std::vector<const AblationRow*> rows_of(
    const ClaimSpec& claim,
    const Ablation& ablation,
    const std::function<bool(const std::string& metric)>& is_meant = {}) {
  std::vector<const AblationRow*> rows;
  for (const ClaimedMetric& claimed : metrics_of(claim, ablation.table)) {
    const AblationRow* const row = find_row(ablation, claimed.config);
    const bool is_new = row && std::find(rows.begin(), rows.end(), row) == rows.end();
    if (is_new && (!is_meant || is_meant(claimed.metric))) rows.push_back(row);
  }
  return rows;
}

/// Whether no seed changes what the claim is about.
bool is_exact(const ClaimSpec& claim) {
  if (!claim.has_own_words()) return results::metric_named(claim.score).is_exact();
  const std::vector<Name> names = names_of(claim.expression);
  return std::all_of(names.begin(), names.end(), [](const Name& name) {
    return results::metric_named(name.metric).is_exact();
  });
}

/// What a claim's own words or its metric name, in rows, and what that is computed with.
std::vector<RowMetric> metrics_behind(const ClaimSpec& claim, const Ablation& ablation) {
  std::vector<Name> names;
  for (const ClaimedMetric& claimed : metrics_of(claim, ablation.table))
    names.push_back({claimed.metric, Name::Row::of_config, claimed.config});
  return metrics_behind(names, ablation, *find_row(ablation, ablation.table.baseline));
}

/// Why the metrics that the claim names were not measured alike, "" if they were.
std::string why_measured_otherwise(const ClaimSpec& claim, const Ablation& ablation) {
  return why_measured_otherwise(metrics_behind(claim, ablation), ablation.table);
}

/// The configs of the claim whose measured speeds the table does not have, "" without such.
std::string not_measured(const ClaimSpec& claim, const Ablation& ablation) {
  if (ablation.table.tokens_per_second != SpeedSource::benchmark) return "";
  std::vector<std::string> configs;
  for (const AblationRow* row : rows_of(claim, ablation, [](const std::string& metric) {
         return metric == results::tokens_per_second_name;
       }))
    if (!row->speed || !row->speed->not_comparable_because.empty())
      configs.push_back(row->spec.config);
  if (configs.empty()) return "";
  return "no comparable speed of " + join(configs, " and ") + " by 'forge bench' ('" +
         bench_command(ablation.table) + "' measures all rows in one call)";
}

/// The rows of which the claim is about runs: speeds that `forge bench` measured need none.
std::vector<const AblationRow*> rows_with_runs_for(const ClaimSpec& claim,
                                                   const Ablation& ablation) {
  return rows_of(claim, ablation, [&](const std::string& metric) {
    return ablation.table.tokens_per_second != SpeedSource::benchmark ||
           metric != results::tokens_per_second_name;
  });
}

JudgedClaim judge_expression(const ClaimSpec& claim, const Ablation& ablation, double confidence) {
  JudgedClaim judged;
  judged.reason = not_measured(claim, ablation);
  if (judged.reason.empty())
    judged.reason = missing_runs(rows_with_runs_for(claim, ablation), claim);
  if (judged.reason.empty()) judged.reason = why_measured_otherwise(claim, ablation);
  if (judged.reason.empty()) {
    const Samples samples = samples_for(ablation, *find_row(ablation, ablation.table.baseline));
    judged = claim.comparison ? judge_comparison(claim, samples, confidence)
                              : judge_value(claim, samples, confidence);
  }
  judged.claim = claim.claim;
  return judged;
}

bool shows_measured_speeds(const ClaimSpec& claim, const TableSpec& table) {
  return table.tokens_per_second == SpeedSource::benchmark &&
         claim.score == results::tokens_per_second_name;
}

/// What `forge bench` says of rows: one number each, and no verdict.
JudgedClaim judge_measured_speeds(const ClaimSpec& claim,
                                  const Ablation& ablation,
                                  const std::vector<const AblationRow*>& rows) {
  JudgedClaim judged;
  judged.reason = not_measured(claim, ablation);
  if (!judged.reason.empty()) return judged;
  std::vector<std::string> speeds;
  for (const AblationRow* row : rows)
    speeds.push_back(results::throughput_text(row->speed->record.tokens_per_second));
  return measured(Verdict::not_decidable,
                  join(speeds, " against ") +
                      " by 'forge bench', in one process of each: nothing says how much another "
                      "would change");
}

/// The verdict is what an interval of this confidence says, the reason has the usual one.
JudgedClaim judge_as_shown(const ClaimSpec& claim, const Ablation& ablation, double confidence) {
  if (claim.has_own_words()) return judge_expression(claim, ablation, confidence);
  const AblationRow& own = *find_row(ablation, claim.config);
  const std::string& other_config = claim.above.empty() ? claim.below : claim.above;
  const AblationRow* other = other_config.empty() ? nullptr : find_row(ablation, other_config);
  std::vector<const AblationRow*> rows = {&own};
  if (other) rows.push_back(other);
  JudgedClaim judged;
  if (shows_measured_speeds(claim, ablation.table)) {
    judged = judge_measured_speeds(claim, ablation, rows);
    judged.claim = claim_text(claim, own, other);
    return judged;
  }
  judged.reason = missing_runs(rows, claim);
  if (judged.reason.empty()) judged.reason = why_measured_otherwise(claim, ablation);
  if (judged.reason.empty()) judged.reason = missing_metrics(rows, claim);
  if (judged.reason.empty())
    judged = other ? judge_against_row(claim, own, *other, confidence)
                   : judge_against_number(claim, own, confidence);
  judged.claim = claim_text(claim, own, other);
  return judged;
}

/// Whether all rows are of one profile, whichever of them are shown.
bool shows_one_profile(const TableSpec& table) {
  const std::vector<std::string>& equal = table.must_be_equal;
  return table.by != "profile" && std::find(equal.begin(), equal.end(), "profile") != equal.end();
}

/// Why the runs shown are not those that the claim is about, "" where they are.
std::string why_not_about(const ClaimSpec& claim, const Ablation& ablation) {
  if (shows_one_profile(ablation.table) && !ablation.profile.empty() &&
      ablation.profile != claim.profile)
    return "it is about profile " + claim.profile + ", shown is " + ablation.profile;
  for (const AblationRow* row : rows_of(claim, ablation)) {
    const std::string profile = row->run ? row->run->profile : "";
    if (!profile.empty() && profile != claim.profile)
      return "it is about profile " + claim.profile + ", shown of " + row->spec.config + " is " +
             profile;
    if (!row->differs_from_config.empty())
      return "it is about the configs as they are now, " + row->spec.config + " ran with " +
             first_of(row->differs_from_config);
  }
  return "";
}

/// Whether a run of the rows was made before anybody made the claim. Runs without a plan do not
/// say.
bool was_asked_afterwards(const ClaimSpec& claim, const std::vector<const AblationRow*>& rows) {
  const std::string key = claim_key(claim);
  return std::any_of(rows.begin(), rows.end(), [&](const AblationRow* row) {
    const auto& runs = row->first_runs;
    return std::any_of(runs.begin(), runs.end(), [&](const store::RunSummary& run) {
      return !run.planned_seeds.empty() && run.planned_claims.find(key) == std::string::npos;
    });
  });
}

/// What is to be said of the files that the rows' runs read, "" for nothing.
std::string changed_inputs_of(const std::vector<const AblationRow*>& rows) {
  std::vector<std::string> texts;
  for (const AblationRow* row : rows) {
    const std::string text = changed_inputs_text(*row);
    if (!text.empty()) texts.push_back(text);
  }
  return join(texts, "; ");
}

/// The smallest error at which the claim is decided, for a single look; 1 if it is not decided at
/// any.
double p_of(const std::function<Verdict(double confidence)>& verdict_at) {
  constexpr double smallest = 1e-12, largest = 1 - 1e-6;
  constexpr int steps = 24;  // each halves the logarithm: to within 2 parts in a million
  if (verdict_at(1 - largest) == Verdict::not_decidable) return 1;
  if (verdict_at(1 - smallest) != Verdict::not_decidable) return 0;
  double low = std::log(smallest), high = std::log(largest);
  for (int i = 0; i < steps; ++i) {
    const double middle = (low + high) / 2;
    (verdict_at(1 - std::exp(middle)) == Verdict::not_decidable ? low : high) = middle;
  }
  return std::exp(high);
}

/// The table with these seeds alone in the rows.
Ablation with_seeds_in(const std::vector<const AblationRow*>& rows,
                       const Ablation& ablation,
                       const std::set<int64_t>& seeds) {
  Ablation seen = ablation;
  for (const AblationRow* row : rows) {
    const auto place = static_cast<size_t>(row - ablation.rows.data());
    seen.rows[place] = with_seeds(*row, seeds);
  }
  return seen;
}

/// A claim is about runs of its profile, of the configs as they are now. Where others are shown it
/// is not decidable, and its reason says what they suggest.
JudgedClaim judge_claim(const ClaimSpec& claim, const Ablation& ablation) {
  const std::string not_about = why_not_about(claim, ablation);
  if (!not_about.empty()) {
    ClaimSpec as_shown = claim;
    if (!ablation.profile.empty()) as_shown.profile = ablation.profile;
    JudgedClaim judged = judge_as_shown(as_shown, ablation, statistics::default_confidence);
    judged.reason = not_about + (judged.is_measured ? ", where it is " + judged.reason : "");
    judged.verdict = Verdict::not_decidable;
    judged.p.reset();
    return judged;
  }
  const std::vector<const AblationRow*> rows = rows_of(claim, ablation);
  const std::string doubt = why_not_tested(metrics_behind(claim, ablation), ablation);
  // Asked of all runs, also where fewer of them are tested: as in the columns.
  if (!doubt.empty() || !why_measured_otherwise(claim, ablation).empty()) {
    JudgedClaim judged = judge_as_shown(claim, ablation, statistics::default_confidence);
    if (judged.is_measured) judged.reason += "; " + doubt;
    judged.verdict = Verdict::not_decidable;
    judged.p.reset();
    return judged;
  }
  const Look look = look_at(rows);
  if (look.is_chosen) {
    JudgedClaim judged = judge_as_shown(claim, ablation, statistics::default_confidence);
    judged.reason = why_chosen(rows);
    judged.verdict = Verdict::not_decidable;
    judged.p.reset();
    return judged;
  }
  const std::vector<RowMetric> metrics = metrics_behind(claim, ablation);
  const bool are_finite = std::all_of(metrics.begin(), metrics.end(), [](const RowMetric& each) {
    return is_finite(*each.row, each.metric);
  });
  std::optional<Ablation> less;
  if (look.seeds && are_finite) less = with_seeds_in(rows, ablation, *look.seeds);
  const Ablation& seen = less ? *less : ablation;
  const auto verdict_at = [&](double confidence) {
    return judge_as_shown(claim, seen, confidence).verdict;
  };
  // With hardly any confidence the interval is the value itself: that is what the runs suggest.
  JudgedClaim judged = judge_as_shown(claim, seen, 1e-6);
  if (!judged.p) return judged;
  if (is_exact(claim))
    judged.p.reset();
  else
    judged.p = std::min(1.0, look.factor * p_of(verdict_at));
  judged.asked_afterwards = was_asked_afterwards(claim, rows);
  return judged;
}

}  // namespace

size_t claims_to_test(const Ablation& ablation) {
  size_t count = 0;
  for (const auto* claims : {&ablation.table.claims, &ablation.table.claims_not_judged})
    count += static_cast<size_t>(
        std::count_if(claims->begin(), claims->end(), [&](const ClaimSpec& claim) {
          const bool is_of_profile = !shows_one_profile(ablation.table) ||
                                     ablation.profile.empty() || ablation.profile == claim.profile;
          return is_of_profile && !is_exact(claim);
        }));
  return count;
}

std::vector<JudgedClaim> measured_claims(const Ablation& ablation) {
  std::vector<JudgedClaim> judged;
  for (const ClaimSpec& claim : ablation.table.claims) {
    judged.push_back(judge_claim(claim, ablation));
    const std::vector<const AblationRow*> rows = rows_of(claim, ablation);
    judged.back().changed_inputs = changed_inputs_of(rows);
    std::vector<std::string> metrics;
    for (const ClaimedMetric& claimed : metrics_of(claim, ablation.table))
      metrics.push_back(claimed.metric);
    judged.back().place = place_at_budget(rows, metrics, ablation);
  }
  return judged;
}

}  // namespace forge::tables
