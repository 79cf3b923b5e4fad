#include "core/report/claims.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "core/base/text.h"
#include "core/report/figures.h"

namespace forge::report {
namespace {

const AblationRow& row_of(const Ablation& ablation, const std::string& config) {
  return *std::find_if(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& row) {
    return row.spec.config == config;
  });
}

/// A row's figure and where the true one may lie. They are one but for a share of cases.
struct Measured {
  double value = 0;
  Interval range;
  std::string text;
};

std::string share_text(const protocol::Score& score, const Interval& range) {
  return score_text(score.value, true) + " (95 %: " + score_text(range.low, true) + " to " +
         score_text(range.high, true) + ", " + with_thousands(score.count) + " cases)";
}

Measured measured(const AblationRow& row, const std::string& name) {
  Measured figure;
  figure.value = *figure_of(*row.run, name);
  figure.range = {figure.value, figure.value};
  figure.text = score_text(figure.value, false);
  if (is_share(name)) {
    const protocol::Score& score = row.run->scores.at(name);
    figure.range = wilson_interval(score.value, score.count);
    figure.text = share_text(score, figure.range);
  }
  return figure;
}

/// What keeps the claim about these rows from being judged, "" where nothing does.
std::string lack_of(const std::vector<const AblationRow*>& rows,
                    const ClaimSpec& claim,
                    const Ablation& ablation) {
  const bool other_profile = !ablation.profile.empty() && ablation.profile != claim.profile;
  const std::string where = " in profile " + claim.profile + (other_profile ? " shown" : "");
  const auto rows_where = [&](const std::function<bool(const AblationRow&)>& lacks) {
    std::vector<std::string> configs;
    for (const AblationRow* row : rows) {
      if (lacks(*row)) configs.push_back(row->spec.config);
    }
    return join(configs, " and ");
  };
  const auto is_missing = [&](const AblationRow& row) { return other_profile || !row.completed(); };
  const auto has_no_figure = [&](const AblationRow& row) {
    const std::optional<double> figure = figure_of(*row.run, claim.score);
    return !figure || !std::isfinite(*figure);
  };
  if (const std::string configs = rows_where(is_missing); !configs.empty()) {
    return "no completed run of " + configs + where;
  }
  for (const AblationRow* row : rows) {
    const std::vector<std::string> values = open_values(*row);
    if (values.empty()) continue;
    return "no completed run of " + row->spec.config + " with " + ablation.table.best_of->key +
           " " + join(values, ", ") + where;
  }
  if (const std::string configs = rows_where(has_no_figure); !configs.empty()) {
    return "no " + claim.score + " of " + configs + where;
  }
  return "";
}

/// Judges that `low` lies below `high`, which need not be strictly.
Verdict::Kind judge_order(const Interval& low, const Interval& high, bool strictly) {
  if (strictly ? low.high < high.low : low.high <= high.low) return Verdict::Kind::one_seed_for;
  if (strictly ? low.low >= high.high : low.low > high.high) return Verdict::Kind::one_seed_against;
  return Verdict::Kind::not_decided;
}

Verdict judge_against_row(const ClaimSpec& claim, const Measured& own, const Measured& other) {
  Verdict verdict;
  verdict.kind = claim.above.empty() ? judge_order(own.range, other.range, true)
                                     : judge_order(other.range, own.range, true);
  char difference[64];
  std::snprintf(difference, sizeof difference, "%+.4f", own.value - other.value);
  verdict.reason = is_share(claim.score) ? own.text + " against " + other.text : difference;
  return verdict;
}

Verdict judge_against_number(const ClaimSpec& claim, const Measured& own) {
  Verdict verdict;
  verdict.kind = claim.at_least ? judge_order({*claim.at_least, *claim.at_least}, own.range, false)
                                : judge_order(own.range, {*claim.at_most, *claim.at_most}, false);
  verdict.reason = own.text;
  return verdict;
}

std::string claim_text(const ClaimSpec& claim, const AblationRow& own, const AblationRow* other) {
  const std::string figure = claim.score == eval_loss_name ? "eval loss" : claim.score;
  if (other) {
    return own.spec.name + " has a " + (claim.above.empty() ? "lower " : "higher ") + figure +
           " than " + other->spec.name;
  }
  const bool percent = is_share(claim.score);
  const double limit = claim.at_least ? *claim.at_least : *claim.at_most;
  char number[64];
  std::snprintf(number, sizeof number, "%.6g", percent ? 100 * limit : limit);
  return own.spec.name + " has " + figure + (claim.at_least ? " of at least " : " of at most ") +
         number + (percent ? " %" : "");
}

Verdict judge(const ClaimSpec& claim, const Ablation& ablation) {
  const AblationRow& own = row_of(ablation, claim.config);
  const std::string& other_config = claim.above.empty() ? claim.below : claim.above;
  const AblationRow* other = other_config.empty() ? nullptr : &row_of(ablation, other_config);
  std::vector<const AblationRow*> rows = {&own};
  if (other) rows.push_back(other);
  Verdict verdict;
  verdict.reason = lack_of(rows, claim, ablation);
  if (verdict.reason.empty()) {
    const Measured figure = measured(own, claim.score);
    verdict = other ? judge_against_row(claim, figure, measured(*other, claim.score))
                    : judge_against_number(claim, figure);
    const bool decided = verdict.kind != Verdict::Kind::not_decided;
    verdict.reason += decided ? "; a decision takes several seeds" : "; too few cases to tell";
  }
  verdict.claim = claim_text(claim, own, other);
  return verdict;
}

}  // namespace

const char* name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::not_decidable: return "not decidable";
    case Verdict::Kind::not_decided: return "not decided";
    case Verdict::Kind::one_seed_for: return "one seed for it";
    case Verdict::Kind::one_seed_against: return "one seed against it";
  }
  return "";
}

std::vector<Verdict> judge_claims(const Ablation& ablation) {
  std::vector<Verdict> verdicts;
  for (const ClaimSpec& claim : ablation.table.claims) verdicts.push_back(judge(claim, ablation));
  return verdicts;
}

std::string verdict_line(const Verdict& verdict) {
  return std::string(name_of(verdict.kind)) + ": " + verdict.claim + " (" + verdict.reason + ")";
}

}  // namespace forge::report
