#include "core/results/tables/comparability.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/estimate.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tables {
namespace {

using namespace tests;

TableSpec table() {
  TableSpec table;
  table.name = "t";
  table.title = "T";
  table.baseline = "llama";
  table.rows = {{"llama", "Llama", "", ""}, {"canon", "Canon", "A", ""}};
  table.columns = {{ColumnKind::model, "Model"},
                   {ColumnKind::metric, "Eval Loss", "eval_loss"},
                   {ColumnKind::overhead, "Overhead"}};
  return table;
}

store::ConfiguredRun run_of(const std::string& config, const std::string& backend, double speed) {
  store::ConfiguredRun run;
  run.summary.id = config + "-" + backend;
  run.summary.config = config;
  run.summary.backend = backend;
  run.summary.profile = "quick";
  run.summary.seed = 1;
  run.summary.created = "2026-01-01T00:00:00Z";
  run.summary.status = run::RunState::completed;
  run.summary.metrics["eval_loss"] = 2;
  run.summary.metrics["tokens_per_second"] = speed;
  run.config = {{"seed", 1}, {"optimizer", {{"lr", backend == "b" ? 0.2 : 0.1}}}};
  return run;
}

const std::vector<store::ConfiguredRun> runs = {run_of("llama", "a", 100),
                                                run_of("canon", "a", 50),
                                                run_of("llama", "b", 10),
                                                run_of("canon", "b", 9)};

TEST_CASE("runs of two backends do not mix in one table", "[report]") {
  const Ablation ablation = build_ablation(table(), runs);
  REQUIRE(ablation.rows.size() == 2);
  CHECK(ablation.rows[0].run->backend == ablation.rows[1].run->backend);
  REQUIRE(ablation.excluded.size() == 2);
  CHECK(contains(ablation.excluded[0].reason, "backend "));
}

TEST_CASE("a table that is divided by backend has a row for each, against its own baseline",
          "[report]") {
  TableSpec divided = table();
  group_by(divided, "backend");
  const Ablation ablation = build_ablation(divided, runs);
  REQUIRE(ablation.rows.size() == 4);
  CHECK(ablation.excluded.empty());
  CHECK(ablation.rows[0].group == "a");
  CHECK(ablation.rows[1].group == "b");
  CHECK(*ablation.rows[2].throughput_change == Approx(-0.5));
  CHECK(*ablation.rows[3].throughput_change == Approx(-0.1));
  const Sheet sheet = make_sheet(ablation);
  CHECK(sheet.columns[1].title == "Backend");
  CHECK(sheet.rows[3][1].text == "b");
  CHECK(to_json(ablation).at("by") == "backend");
  CHECK(to_json(ablation).at("rows")[3].at("backend") == "b");
  CHECK(contains(to_csv(ablation), ",backend\r\n"));
}

TEST_CASE("a table can be divided by any key, and a config without runs stays one row",
          "[report]") {
  TableSpec divided = table();
  divided.must_be_equal = {"optimizer"};
  divided.rows.push_back({"none", "None", "", ""});
  group_by(divided, "optimizer.lr");
  std::vector<store::ConfiguredRun> same = runs;
  for (store::ConfiguredRun& run : same) run.summary.backend = "a";
  const Ablation ablation = build_ablation(divided, same);
  REQUIRE(ablation.rows.size() == 5);
  CHECK(ablation.rows[0].group == "0.1");
  CHECK(ablation.rows[4].group.empty());
  CHECK_FALSE(ablation.rows[4].run);
  CHECK(contains(error_of([] {
                   TableSpec wrong = table();
                   group_by(wrong, "optimizer.lrr");
                 }),
                 "optimizer.lr"));
}

TEST_CASE("a run that does not compare is left out once, whatever the rows are divided by",
          "[report]") {
  TableSpec divided = table();
  divided.must_be_equal = {"device"};
  group_by(divided, "backend");
  std::vector<store::ConfiguredRun> more = runs;
  more.push_back(run_of("llama", "c", 1));
  more.back().summary.threads = 7;
  const Ablation ablation = build_ablation(divided, more);
  CHECK(ablation.rows.size() == 4);
  REQUIRE(ablation.excluded.size() == 1);
  CHECK(ablation.excluded[0].runs.size() == 1);
}

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
  CHECK(
      contains(text, "not decidable: Canon-A is slower (of canon_a, other processes kept 21.0 %"));
  const std::vector<Cell> cells = cells_of(table, results::tokens_per_second_name);
  CHECK(cells[1].standing == Standing::not_comparable);
  CHECK_FALSE(cells[0].best);
  CHECK(cells_of(table, results::eval_loss_name)[1].standing != Standing::not_comparable);
  CHECK(to_json(table)["rows"][1]["disturbance"] ==
        "other processes kept 21.0 % of the machine busy");
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

}  // namespace forge::tables
