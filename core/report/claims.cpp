#include "core/report/claims.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"

namespace forge::report {
namespace {

const AblationRow& row_of(const Ablation& ablation, const std::string& config) {
  return *std::find_if(ablation.rows.begin(), ablation.rows.end(), [&](const AblationRow& row) {
    return row.spec.config == config;
  });
}

bool has_loss(const AblationRow& row) {
  return row.completed() && row.run->eval_loss && std::isfinite(*row.run->eval_loss);
}

Verdict judge(const ClaimSpec& claim, const Ablation& ablation) {
  const AblationRow& own = row_of(ablation, claim.config);
  const AblationRow& other = row_of(ablation, claim.below);
  Verdict verdict;
  verdict.claim = own.spec.name + " has a lower eval loss than " + other.spec.name;
  std::vector<std::string> missing;
  const bool other_profile = !ablation.profile.empty() && ablation.profile != claim.profile;
  for (const AblationRow* row : {&own, &other}) {
    if (other_profile || !has_loss(*row)) missing.push_back(row->spec.config);
  }
  if (!missing.empty()) {
    verdict.reason = "no completed run of " + join(missing, " and ") + " in profile " +
                     claim.profile + (other_profile ? " shown" : "");
    return verdict;
  }
  const double difference = *own.run->eval_loss - *other.run->eval_loss;
  verdict.kind = difference < 0 ? Verdict::Kind::one_seed_for : Verdict::Kind::one_seed_against;
  char text[64];
  std::snprintf(text, sizeof text, "%+.4f; a decision takes several seeds", difference);
  verdict.reason = text;
  return verdict;
}

}  // namespace

const char* name_of(Verdict::Kind kind) {
  switch (kind) {
    case Verdict::Kind::not_decidable: return "not decidable";
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
