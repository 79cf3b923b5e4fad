#include "core/report/disturbance.h"

#include "core/report/cells.h"
#include "core/report/claims.h"
#include "core/report/machine_formats.h"
#include "core/report/terminal.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::report {
namespace {

using namespace tests;

/// Three seeds of llama and of canon_a, which is slower each time by the same.
struct SpeedLab : Lab {
  explicit SpeedLab(const Outcome& last_of_canon = {}) {
    for (int seed = 0; seed < 3; ++seed) {
      add("llama", seed, {3.25, 4300.0 + seed});
      Outcome canon = seed == 2 ? last_of_canon : Outcome();
      canon.tokens_per_second = 4000.0 + 1.1 * seed;
      add("canon_a", seed, canon);
    }
  }
  void add(const std::string& config, int seed, const Outcome& outcome) {
    MadeRun made = run(config, 10 + seed);
    made.experiment.seed = 42 + seed;
    make_completed_run(runs, made, outcome);
  }
};

Outcome busy(double elsewhere) {
  Outcome outcome;
  outcome.busy_elsewhere = elsewhere;
  return outcome;
}

Ablation with_claim(const Lab& lab) {
  TableSpec table = small_table();
  ClaimSpec claim;
  claim.claim = "Canon-A is slower";
  claim.profile = "quick";
  claim.holds = "tokens_per_second[canon_a] < tokens_per_second[llama]";
  claim.comparison = parse_comparison(claim.holds, {});
  table.claims = {claim};
  return build_ablation(table, lab.read());
}

}  // namespace

TEST_CASE("a speed of a busy machine is marked and decides nothing", "[report][disturbance]") {
  const SpeedLab lab(busy(0.21));
  const Ablation table = with_claim(lab);
  const std::string text = to_terminal(table, {false, 200});
  INFO(text);
  CHECK(contains(text, "4,001 \u00b1 0.1 % [1]"));
  CHECK(contains(text, "memory +0.0 % [1]"));
  CHECK(contains(text, "[1] canon_a: other processes kept 21.0 % of the machine busy"));
  CHECK(
      contains(text, "not decidable: Canon-A is slower (of canon_a, other processes kept 21.0 %"));
  const std::vector<Cell> cells = cells_of(table, tokens_per_second_name);
  CHECK(cells[1].standing == Standing::not_alike);
  CHECK_FALSE(cells[0].best);
  CHECK(cells_of(table, eval_loss_name)[1].standing != Standing::not_alike);
  CHECK(to_json(table)["rows"][1]["disturbance"] ==
        "other processes kept 21.0 % of the machine busy");
}

TEST_CASE("a quiet machine is not spoken of", "[report][disturbance]") {
  const SpeedLab lab(busy(0.02));
  const Ablation table = with_claim(lab);
  CHECK_FALSE(contains(to_terminal(table, {false, 200}), "busy"));
  CHECK(cells_of(table, tokens_per_second_name)[1].standing == Standing::worse);
  CHECK(judge_claims(table)[0].kind == Verdict::Kind::holds);
}

TEST_CASE("a GPU with another user disturbs, too", "[report][disturbance]") {
  Outcome shared;
  shared.shared_device = true;
  const SpeedLab lab(shared);
  CHECK(contains(to_terminal(with_claim(lab), {false, 200}),
                 "canon_a: another process held memory of its GPU"));
}

TEST_CASE("the most disturbed attempt counts", "[report][disturbance]") {
  Lab lab;
  MadeRun made = Lab::run("llama", 10);
  const run::RunFolder folder = make_stopped_run(lab.runs, made, 10);
  append_ended(folder, "stopped", "", 0.5);
  append_attempt(folder, 2);
  append_ended(folder, "completed", "", 0.25);
  REQUIRE(lab.read().at(0).summary.busy_elsewhere == 0.5);
}

}  // namespace forge::report
