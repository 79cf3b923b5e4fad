#include "core/report/claims.h"

#include "core/report/machine_formats.h"
#include "core/report/markdown.h"
#include "core/report/terminal.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::report {
namespace {

using tests::contains;

/// A table of the three rows with one claim, and the losses of its runs; none: no run.
Ablation ablation(std::optional<double> llama,
                  std::optional<double> canon_a,
                  const std::string& profile = "full") {
  Ablation ablation;
  ablation.table = tests::small_table();
  ablation.table.claims = {{"canon_a", "llama", "", {}, {}, "eval_loss", "full"}};
  for (const RowSpec& spec : ablation.table.rows) {
    AblationRow row;
    row.spec = spec;
    const std::optional<double> loss = spec.config == "llama"     ? llama
                                       : spec.config == "canon_a" ? canon_a
                                                                  : std::nullopt;
    if (loss) {
      row.run.emplace();
      row.run->status = run::RunState::completed;
      row.run->eval_loss = loss;
      ablation.profile = profile;
    }
    ablation.rows.push_back(row);
  }
  return ablation;
}

std::string verdict(const Ablation& ablation) {
  const std::vector<Verdict> verdicts = judge_claims(ablation);
  REQUIRE(verdicts.size() == 1);
  return verdict_line(verdicts.front());
}

TEST_CASE("a claim is not decidable without the runs that it is about", "[report]") {
  CHECK(contains(verdict(ablation({}, {})), "not decidable: "));
  CHECK(contains(verdict(ablation({}, {})),
                 "(no completed run of canon_a and llama in profile full)"));
  CHECK(contains(verdict(ablation(1.5, {})), "(no completed run of canon_a in profile full)"));
  CHECK(contains(verdict(ablation({}, 1.5)), "(no completed run of llama in profile full)"));
  CHECK(contains(verdict(ablation(1.5, 1.25, "tiny")), "not decidable: "));
  CHECK(contains(verdict(ablation(1.5, 1.25, "tiny")), "in profile full shown)"));
  CHECK(contains(verdict(ablation(1.5, std::nan(""))), "not decidable: "));
}

TEST_CASE("one run of each decides nothing and says which way it went", "[report]") {
  CHECK(contains(verdict(ablation(1.5, 1.25)), "one seed for it: "));
  CHECK(contains(verdict(ablation(1.5, 1.25)), "(-0.2500; a decision takes several seeds)"));
  CHECK(contains(verdict(ablation(1.25, 1.5)), "one seed against it: "));
}

/// A table with one claim on a score of canon_a and llama.
Ablation scored(const ClaimSpec& claim,
                std::optional<protocol::Score> llama,
                std::optional<protocol::Score> canon_a) {
  Ablation table = ablation(1.5, 1.25);
  table.table.claims = {claim};
  if (llama) table.rows[0].run->scores[claim.score] = *llama;
  if (canon_a) table.rows[1].run->scores[claim.score] = *canon_a;
  return table;
}

ClaimSpec on_score(const std::string& score) {
  ClaimSpec claim;
  claim.config = "canon_a";
  claim.score = score;
  return claim;
}

TEST_CASE("a claim on an accuracy is not decided while the intervals meet", "[report]") {
  ClaimSpec claim = on_score("token_accuracy");
  claim.above = "llama";
  const auto judged = [&](protocol::Score llama, protocol::Score canon_a) {
    return verdict(scored(claim, llama, canon_a));
  };
  CHECK(judged({0.5, 1000}, {0.75, 1000}) ==
        "one seed for it: Canon-A has a higher token_accuracy than Llama 4M (75.0 % (95 %: 72.2 % "
        "to 77.6 %, 1,000 cases) against 50.0 % (95 %: 46.9 % to 53.1 %, 1,000 cases); a decision "
        "takes several seeds)");
  CHECK(contains(judged({0.75, 1000}, {0.5, 1000}), "one seed against it: "));
  CHECK(contains(judged({0.5, 10}, {0.75, 10}), "not decided: "));
  CHECK(contains(judged({0.5, 10}, {0.75, 10}), "; too few cases to tell)"));
  CHECK(contains(verdict(scored(claim, protocol::Score{0.5, 10}, {})),
                 "not decidable: Canon-A has a higher token_accuracy than Llama 4M (no "
                 "token_accuracy of canon_a in profile full)"));
  claim.above.clear();
  claim.below = "llama";
  CHECK(contains(judged({0.5, 1000}, {0.75, 1000}), "one seed against it: Canon-A has a lower"));
}

TEST_CASE("a claim may be on a number that a score reaches or does not exceed", "[report]") {
  ClaimSpec claim = on_score("answer_accuracy.hop_8");
  const auto judged = [&](double value, int64_t count) {
    return verdict(scored(claim, {}, protocol::Score{value, count}));
  };
  claim.at_least = 0.99;
  CHECK(contains(judged(1, 1000),
                 "one seed for it: Canon-A has answer_accuracy.hop_8 of at least "
                 "99 % (100.0 % (95 %: 99.6 % to 100.0 %, 1,000 cases)"));
  CHECK(contains(judged(1, 100), "not decided: "));
  CHECK(contains(judged(0.5, 100), "one seed against it: "));
  claim.at_least.reset();
  claim.at_most = 0.05;
  CHECK(contains(judged(0, 1000), "one seed for it: "));
  CHECK(contains(judged(0, 10), "not decided: "));
  CHECK(contains(judged(0.5, 10),
                 "one seed against it: Canon-A has answer_accuracy.hop_8 of at "
                 "most 5 %"));
}

TEST_CASE("a score that is no share and the loss are compared as they are", "[report]") {
  ClaimSpec claim = on_score("kl_divergence");
  claim.below = "llama";
  CHECK(contains(verdict(scored(claim, protocol::Score{0.5, 2}, protocol::Score{0.25, 2})),
                 "one seed for it: Canon-A has a lower kl_divergence than Llama 4M (-0.2500; "));
  claim = on_score("eval_loss");
  claim.at_most = 1.3;
  CHECK(contains(verdict(scored(claim, {}, {})),
                 "one seed for it: Canon-A has eval loss of at most 1.3 (1.2500; "));
}

TEST_CASE("every format prints the claims of a table without runs", "[report]") {
  const Ablation table = ablation({}, {});
  CHECK(contains(to_terminal(table, {}), "\nClaims\n  not decidable: "));
  CHECK(contains(to_markdown(table), "\nClaims:\n\n- not decidable: "));
  const nlohmann::ordered_json json = to_json(table);
  CHECK(json.at("claims").at(0).at("verdict") == "not decidable");
  CHECK(contains(json.at("claims").at(0).at("reason"), "no completed run"));
}

}  // namespace
}  // namespace forge::report
