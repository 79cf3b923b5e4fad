#include "tests/core/results/tables/simulated_tables.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "tests/core/results/tables/lab.h"

namespace forge::tables::simulated {

double normal(RandomStream& random) { return normal_quantile(open_uniform(random.next_u32())); }

namespace {

constexpr double mean_loss = 10;

/// Of mean 0; but for outliers, of variance 1.
double draw(Noise noise, RandomStream& random) {
  const double z = normal(random);
  switch (noise) {
    case Noise::normal: return z;
    case Noise::heavy: {
      const double a = normal(random), b = normal(random), c = normal(random);
      return z / std::sqrt(a * a + b * b + c * c);
    }
    case Noise::outliers: return open_uniform(random.next_u32()) < 0.1F ? 5 * z : z;
    case Noise::skewed: return (std::exp(z) - std::exp(0.5)) / std::sqrt(std::exp(2) - std::exp(1));
  }
  return z;
}

/// What seeds change in all rows alike.
class SharedEffects {
 public:
  SharedEffects(const Scenario& scenario, RandomStream& random)
      : share_(scenario.shared), spread_(scenario.spread), random_(random) {}

  double of(int64_t seed, int row) {
    const auto [found, is_new] = by_seed_.emplace(seed, 0);
    if (is_new) found->second = normal(random_);
    const double size = spread_ * std::sqrt(std::fabs(share_) / (1 - std::fabs(share_)));
    return (share_ < 0 && row % 2 == 1 ? -size : size) * found->second;
  }

 private:
  double share_, spread_;
  RandomStream& random_;
  std::map<int64_t, double> by_seed_;
};

std::string metric_name(int column) {
  return column == 0 ? "eval_loss" : "loss_" + std::to_string(column);
}

/// The row with the losses of its seeds in all columns.
AblationRow made_row(int i, const Scenario& scenario, SharedEffects& shared, RandomStream& random) {
  const bool has_few = scenario.few > 0 && i % 2 == 1;
  AblationRow row =
      row_of("row_" + std::to_string(i), {}, has_few ? scenario.few : scenario.planned);
  double of_text = 0;
  if (scenario.row_effects) {
    const std::vector<double> losses = scenario.row_effects(random);
    for (const double loss : losses) of_text += loss / static_cast<double>(losses.size());
    if (scenario.knows_rows)
      row.evaluation_rows = {losses, std::vector<int64_t>(losses.size(), 512)};
  }
  const double effect = i == scenario.rows ? scenario.effect : 0;
  for (size_t k = 0; k < (has_few ? scenario.few : scenario.seeds); ++k) {
    store::RunSummary run;
    run.status = run::RunState::completed;
    run.seed = static_cast<int64_t>(k + scenario.apart * static_cast<size_t>(i));
    const double own =
        scenario.spread * draw(scenario.noise, random) + of_text + shared.of(run.seed, i) - effect;
    for (int c = 0; c < scenario.columns; ++c) {
      const double loss =
          mean_loss + own + (c == 0 ? 0 : scenario.spread * draw(scenario.noise, random));
      run.metrics[metric_name(c)] =
          scenario.step > 0 ? std::round(loss / scenario.step) * scenario.step : loss;
    }
    row.runs.push_back(run);
  }
  row.run = row.runs.back();
  return row;
}

/// A claim with what is true of it; where its sides are equal it is neither true nor false.
struct TrueClaim {
  ClaimSpec spec;
  Verdict truth = Verdict::not_decidable;
};

std::vector<TrueClaim> claims_of(const Scenario& scenario) {
  const std::string last = "row_" + std::to_string(scenario.rows);
  const auto truth_of = [&](const std::string& lower, const std::string& higher) {
    if (scenario.effect == 0 || (lower != last && higher != last)) return Verdict::not_decidable;
    return lower == last ? Verdict::holds : Verdict::fails;
  };
  std::vector<TrueClaim> claims;
  const auto row = [](int i) { return "row_" + std::to_string(i); };
  for (int c = 0; c < scenario.claims; ++c) {
    TrueClaim claim;
    claim.spec.config = row(1 + c % scenario.rows);
    claim.spec.below = row(c < scenario.rows ? 0 : (c + 2) % scenario.rows);
    if (claim.spec.config == claim.spec.below) continue;
    claim.truth = truth_of(claim.spec.config, claim.spec.below);
    claims.push_back(claim);
  }
  for (int c = 0; c < scenario.limits; ++c) {
    TrueClaim claim;
    claim.spec.config = row(c % (scenario.rows + 1));
    claim.spec.score = metric_name(c / (scenario.rows + 1) % scenario.columns);
    claim.spec.at_most = mean_loss;
    claim.truth = truth_of(claim.spec.config, "");
    claims.push_back(claim);
  }
  for (int c = 0; c < scenario.expressions; ++c) {
    TrueClaim claim;
    const std::string own = row(1 + c % scenario.rows);
    claim.spec.claim = claim.spec.holds =
        "exp(eval_loss[" + own + "]/10) < exp(eval_loss[row_0]/10)";
    claim.spec.comparison = parse_comparison(claim.spec.holds);
    claim.spec.expression = difference_of(*claim.spec.comparison);
    claim.truth = truth_of(own, "row_0");
    claims.push_back(claim);
  }
  return claims;
}

bool is_wrong(const Verdicts& verdicts,
              const std::vector<TrueClaim>& claims,
              const Scenario& scenario) {
  for (const auto& [metric, cells] : verdicts.cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool is_better = scenario.effect > 0 && i + 1 == cells.size();
      const Standing standing = cells[i].standing;
      if (standing == Standing::worse) return true;
      if (!is_better && (cells[i].best || standing == Standing::better)) return true;
    }
  }
  for (size_t i = 0; i < claims.size(); ++i) {
    const Verdict verdict = verdicts.claims[i].verdict;
    if (verdict != Verdict::not_decidable && verdict != claims[i].truth) return true;
  }
  return false;
}

}  // namespace

AblationRow row_of(const std::string& config, const std::vector<double>& losses, size_t planned) {
  AblationRow row;
  row.spec.config = row.spec.name = config;
  for (size_t i = 0; i < losses.size(); ++i) {
    store::RunSummary run;
    run.status = run::RunState::completed;
    run.seed = static_cast<int64_t>(i) + 1;
    run.metrics["eval_loss"] = losses[i];
    row.runs.push_back(run);
  }
  if (!row.runs.empty()) row.run = row.runs.back();
  row.planned_seeds = planned;
  return row;
}

Ablation table_of(const std::vector<AblationRow>& rows) {
  Ablation ablation;
  ablation.table.name = "small";
  ablation.table.baseline = rows.front().spec.config;
  ablation.table.columns = {{ColumnKind::metric, "Eval loss", "eval_loss"}};
  ablation.profile = "full";
  ablation.rows = rows;
  for (const AblationRow& row : rows) ablation.table.rows.push_back(row.spec);
  return ablation;
}

Outcome outcome_of(const Scenario& scenario,
                   RandomStream& random,
                   const std::function<void(Ablation&)>& with_history) {
  SharedEffects shared(scenario, random);
  std::vector<AblationRow> all;
  for (int i = 0; i <= scenario.rows; ++i) all.push_back(made_row(i, scenario, shared, random));
  Ablation table = table_of(all);
  for (int c = 1; c < scenario.columns; ++c)
    table.table.columns.push_back({ColumnKind::metric, "Loss", metric_name(c)});
  const std::vector<TrueClaim> claims = claims_of(scenario);
  for (const TrueClaim& claim : claims) table.table.claims.push_back(claim.spec);
  if (with_history) with_history(table);
  Outcome outcome;
  for (size_t n = scenario.first_look; n <= scenario.seeds; ++n) {
    for (size_t i = 0; i < all.size(); ++i) {
      table.rows[i].runs = all[i].runs;
      if (table.rows[i].runs.size() > n) table.rows[i].runs.resize(n);
    }
    const Verdicts verdicts = verdicts_of(table);
    outcome.wrong = outcome.wrong || is_wrong(verdicts, claims, scenario);
    outcome.found = verdicts.cells.at("eval_loss").back().standing == Standing::better;
  }
  return outcome;
}

Rates rates_of(const Scenario& scenario, int tables, const std::string& name) {
  RandomStream random(simulation_seed(), stream_number(name));
  Rates rates;
  for (int i = 0; i < tables; ++i) {
    const Outcome outcome = outcome_of(scenario, random);
    rates.wrong += outcome.wrong / double(tables);
    rates.found += outcome.found / double(tables);
  }
  return rates;
}

double most_of(int tables) { return 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables); }

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

}  // namespace forge::tables::simulated
