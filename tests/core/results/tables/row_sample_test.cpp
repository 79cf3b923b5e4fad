#include "core/results/tables/row_sample.h"
#include "core/base/text.h"

#include <string>
#include <vector>

#include "core/results/tables/estimate.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tables {
namespace {

using namespace tests;

/// Three seeds of llama and of canon_a, which is slower each time by the same.
struct SpeedLab : Lab {
  explicit SpeedLab(const Outcome& last_of_canon = {}) {
    for (int seed = 0; seed < 3; ++seed) {
      add("llama", seed, {3.25, 4300.0 + 1.37 * seed});
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
  claim.expression = difference_of(*claim.comparison);
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
  CHECK(contains(text, "not decidable: Canon-A is slower ("));
  CHECK(contains(text, "; of canon_a, other processes kept 21.0 %"));
  const std::vector<Cell> cells = cells_of(table, results::tokens_per_second_name);
  CHECK(cells[1].standing == Standing::not_comparable);
  CHECK_FALSE(cells[0].best);
  CHECK(cells_of(table, results::eval_loss_name)[1].standing != Standing::not_comparable);
  CHECK(to_json(table)["rows"][1]["disturbance"] ==
        "other processes kept 21.0 % of the machine busy");
}

TEST_CASE("a run whose files were changed while it trained is marked, and so is what it decides",
          "[report][hostile]") {
  Outcome edited;
  edited.changed_inputs = {"net.py", "data/train.tokens"};
  const SpeedLab lab(edited);
  const Ablation table = with_claim(lab);
  const std::string text = to_terminal(table, {false, 400});
  INFO(text);
  const std::string files =
      ": files that it reads were changed while it trained: net.py, data/train.tokens";
  const std::string run = table.rows[1].run->id;
  CHECK(contains(text, "[1] " + run + files));
  CHECK(contains(text, "holds: Canon-A is slower ("));
  CHECK(contains(text, "; " + run + files + ")"));
  CHECK(to_json(table)["rows"][1]["changed_inputs"] == run + files);
  CHECK(to_json(table)["rows"][0]["changed_inputs"] == "");
}

TEST_CASE("rows of a busy machine share one footnote", "[report][disturbance]") {
  SpeedLab lab(busy(0.21));
  lab.add("llama", 9, busy(0.35));
  const std::string text = to_terminal(with_claim(lab), {false, 200});
  INFO(text);
  CHECK(contains(text,
                 "[1] llama, canon_a: other processes kept 35.0 % of the machine busy at the most: "
                 "timing unreliable; measure with 'forge bench' on an idle machine"));
  CHECK_FALSE(contains(text, "[2]"));
}

TEST_CASE("runs that are left out for one reason stand on one line with their ids", "[report]") {
  Lab lab;
  std::vector<std::string> ids;
  for (int minute = 10; minute < 15; ++minute)
    ids.push_back(make_completed_run(lab.runs, Lab::run("llama", minute)).id());
  const std::string text = to_terminal(build_ablation(small_table(), lab.read()), {false, 200});
  INFO(text);
  CHECK(contains(text,
                 "llama: older than the run shown (4 runs: " + ids[3] + ", " + ids[2] + ", " +
                     ids[1] + ", \u2026)\n"));
}

TEST_CASE("a quiet machine is not spoken of", "[report][disturbance]") {
  const SpeedLab lab(busy(0.02));
  const Ablation table = with_claim(lab);
  CHECK_FALSE(contains(to_terminal(table, {false, 200}), "busy"));
  CHECK(cells_of(table, results::tokens_per_second_name)[1].standing == Standing::worse);
  CHECK(judge_claims(table)[0].verdict == Verdict::holds);
}

TEST_CASE("a run on a GPU is disturbed by more than one on the CPU", "[report][disturbance]") {
  store::RunSummary run;
  run.busy_elsewhere = 0.06;
  run.device_type = "cpu";
  CHECK(was_loaded(run));
  CHECK(load_text(run) == "other processes kept 6.0 % of the machine busy");
  run.device_type = "cuda";
  CHECK_FALSE(was_loaded(run));
  CHECK(load_text(run).empty());
  run.busy_elsewhere = 0.25;
  CHECK(was_loaded(run));
}

TEST_CASE("a worker that was stopped disturbs its own speed", "[report][disturbance]") {
  store::RunSummary run;
  run.stopped_seconds = 7.5;
  CHECK(was_loaded(run));
  CHECK(load_text(run) == "its worker was stopped for " + human_duration(7.5));
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
  append_attempt(folder, 2, "a checkpoint");
  append_ended(folder, "completed", "", 0.25);
  REQUIRE(lab.read().at(0).summary.busy_elsewhere == 0.5);
}

}  // namespace forge::tables
