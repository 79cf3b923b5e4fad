#include "core/results/tables/ablation.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/benchmark/maker.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;
using benchmark::Record;

TableSpec measured_table() {
  TableSpec table = small_table();
  table.tokens_per_second = SpeedSource::benchmark;
  return table;
}

/// What each row of the small table shows: its speed and what is said of it.
std::vector<std::string> shown(const std::vector<Record>& records) {
  std::vector<std::string> texts;
  for (const auto& speed : choose_speeds(measured_table(), records)) {
    texts.push_back(
        speed
            ? std::to_string(std::lround(speed->record.tokens_per_second)) +
                  (speed->not_comparable_because.empty() ? "" : " " + speed->not_comparable_because)
            : "none");
  }
  return texts;
}

using Texts = std::vector<std::string>;

Ablation ablation_of(const Lab& lab, const std::vector<Record>& records) {
  return build_ablation(measured_table(), lab.read(), {"", std::nullopt, records});
}

TEST_CASE("rows show the newest call that measured the most of them", "[report]") {
  REQUIRE(shown({}) == Texts{"none", "none", "none"});
  // Newest first, as the store gives them; two of the small table's three configs on day 20.
  REQUIRE(shown({made_record("llama", 20, 4000),
                 made_record("canon_a", 20, 3000),
                 made_record("llama", 19, 1000),
                 made_record("canon_a", 19, 2000)}) == Texts{"4000", "3000", "none"});
}

TEST_CASE("a row of another call says so", "[report]") {
  REQUIRE(shown({made_record("canon_b", 21, 500),
                 made_record("llama", 20, 4000),
                 made_record("canon_a", 20, 3000)}) ==
          Texts{"4000", "3000", "500 measured in another call, on 2026-11-21"});
  // Of calls with as many rows the one with the baseline is shown, though another is newer.
  REQUIRE(shown({made_record("canon_a", 21, 3000), made_record("llama", 20, 4000)}) ==
          Texts{"4000", "3000 measured in another call, on 2026-11-21", "none"});
}

TEST_CASE("a row of another number of processes says so", "[report]") {
  Record by_two = made_record("canon_a", 20, 7000);
  by_two.processes = 2;
  REQUIRE(shown({made_record("llama", 20, 4000), by_two}) ==
          Texts{"4000", "7000 by 2 processes", "none"});
}

TEST_CASE("a row of another device or other settings says so", "[report]") {
  Record other = made_record("canon_b", 21, 500);
  other.device = {"cuda", "NVIDIA H200", 8, {}, "libtorch", "0.1.0", 1};
  REQUIRE(shown({other, made_record("llama", 20, 4000), made_record("canon_a", 20, 3000)})[2] ==
          "500 measured in another call, on 2026-11-21, on NVIDIA H200");
  Record larger = made_record("canon_a", 20, 3000);
  larger.train["batch_size"] = 8;
  larger.train["z_loss"]["kind"] = "palm";
  REQUIRE(shown({made_record("llama", 20, 4000), larger})[1] ==
          "3000 train.batch_size 8 where others have 32, train.z_loss.kind \"palm\" where others "
          "have \"none\"");
}

TEST_CASE("what is no row's and no training is passed over", "[report]") {
  Record operations;
  operations.kind = benchmark::Kind::operations;
  operations.config = "llama";
  REQUIRE(shown({made_record("other", 21, 1), operations}) == Texts{"none", "none", "none"});
}

TEST_CASE("a measured speed stands in the table with how it was measured", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  make_completed_run(lab.runs, Lab::run("canon_a", 20), {3.0, 4100, 3 << 19});
  const Ablation ablation = ablation_of(lab,
                                        {made_record("canon_b", 21, 500),
                                         made_record("llama", 20, 8000),
                                         made_record("canon_a", 20, 6000)});
  const AblationRow& canon_a = ablation.rows[1];
  REQUIRE(tokens_per_second_of(canon_a, ablation.table) == 6000);
  REQUIRE(*canon_a.throughput_change == Approx(-0.25));
  REQUIRE(*canon_a.memory_change == Approx(0.5));  // of the runs
  REQUIRE_FALSE(ablation.rows[2].throughput_change);

  const Sheet sheet = make_sheet(ablation);
  REQUIRE(sheet.rows[0][3].text == "8,000");
  REQUIRE(sheet.rows[1][3].text == "6,000");
  // A row without a run has a speed all the same, and its own column says what is missing.
  REQUIRE(contains(sheet.rows[2][2].text, "missing"));
  REQUIRE(sheet.rows[2][3].text == "500 [1]");
  REQUIRE(sheet.footnotes == std::vector<std::string>{"measured in another call, on 2026-11-21"});
  const SetupEntry& speed = ablation.setup[ablation.setup.size() - 2];
  REQUIRE(speed.name == "Speed");
  REQUIRE(speed.value ==
          "forge bench on 2026-11-20, Test CPU, 2 threads, 32 × 512 tokens, float32, median of 3 "
          "windows, spread within one process at most 0.5 %");
  REQUIRE(contains(to_terminal(ablation, {}), "speed: forge bench"));
}

TEST_CASE("a row that was not measured names the command for all rows", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  const Sheet sheet = make_sheet(ablation_of(lab, {made_record("llama", 20, 8000)}));
  REQUIRE(sheet.rows[0][3].text == "8,000");
  REQUIRE(sheet.rows[1][3].text == "\u2014 [1]");
  REQUIRE(sheet.rows[2][3].text == "\u2014 [1]");
  REQUIRE(sheet.footnotes.size() == 1);
  REQUIRE(contains(sheet.footnotes[0], "'forge bench llama canon_a canon_b'"));
}

TEST_CASE("a table of runs knows nothing of measurements", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  const Ablation ablation = build_ablation(
      small_table(), lab.read(), {"", std::nullopt, {made_record("llama", 20, 8000)}});
  REQUIRE(tokens_per_second_of(ablation.rows[0], ablation.table) == 4300);
  REQUIRE_FALSE(to_json(ablation)["rows"][0].contains("benchmark"));
}

TEST_CASE("machines are told which measurement a speed is of", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  const auto json =
      to_json(ablation_of(lab, {made_record("llama", 20, 8000), made_record("canon_b", 20, 500)}));
  REQUIRE(json["rows"][0]["tokens_per_second"] == 8000);
  REQUIRE(json["rows"][0]["benchmark"]["id"] == "2026-11-20-llama");
  REQUIRE(json["rows"][0]["benchmark"]["spread"] == 0.005);
  REQUIRE(json["rows"][1]["benchmark"].is_null());
  REQUIRE(json["rows"][2]["status"] == "missing");
  REQUIRE(json["rows"][2]["tokens_per_second"] == 500);
  REQUIRE(contains(to_csv(ablation_of(lab, {made_record("canon_b", 20, 500)})), ",500.0,"));
}

using namespace tests;

store::LossPoint at(int64_t tokens, double loss) {
  store::LossPoint point;
  point.tokens = tokens;
  point.loss = loss;
  return point;
}

TEST_CASE("between two evaluations a loss is straight in the logarithm of the tokens",
          "[report][budget]") {
  const std::vector<store::LossPoint> points = {at(100, 4), at(400, 2), at(1600, 1)};
  CHECK(loss_after(100, points) == 4);
  CHECK(loss_after(200, points) == Approx(3));
  CHECK(loss_after(800, points) == Approx(1.5));
  CHECK(loss_after(1600, points) == 1);
  CHECK(loss_after(9999, points) == 1);
  CHECK(std::isnan(loss_after(99, points)));
  CHECK(std::isnan(loss_after(99, {})));
}

/// Rows llama, canon_a, canon_b of one seed with these speeds, trained on 1,600 tokens.
Ablation of_speeds(const std::vector<double>& speeds) {
  Ablation ablation;
  ablation.table = small_table();
  for (size_t i = 0; i < speeds.size(); ++i) {
    AblationRow row;
    row.spec = ablation.table.rows[i];
    store::RunSummary run;
    run.status = run::RunState::completed;
    run.id = row.spec.config;
    run.tokens = 1600;
    run.metrics["tokens_per_second"] = speeds[i];
    row.runs = {run};
    row.run = run;
    ablation.rows.push_back(row);
  }
  return ablation;
}

std::vector<store::LossPoint> curve(const std::string&) {
  return {at(100, 4), at(400, 2), at(1600, 1)};
}

double flops_of(const store::RunSummary& run) { return run.id == "llama" ? 10 : 20; }

TEST_CASE("every row is given the time of the one that is done first", "[report][budget]") {
  Ablation ablation = of_speeds({400, 100, 200});
  add_equal_budgets(ablation, curve, flops_of);
  // llama takes 4 s for its 1,600 tokens; the others have seen 400 and 800 by then.
  CHECK(values_of(ablation.rows[0], results::loss_at_equal_time_name) == std::vector<double>{1});
  CHECK(values_of(ablation.rows[1], results::loss_at_equal_time_name)[0] == Approx(2));
  CHECK(values_of(ablation.rows[2], results::loss_at_equal_time_name)[0] == Approx(1.5));
  CHECK(values_of(ablation.rows[1], results::loss_at_equal_flops_name)[0] == Approx(1.5));
  CHECK(values_of(ablation.rows[0], results::loss_at_equal_flops_name)[0] == Approx(1));
  REQUIRE(ablation.setup.back().name == "Equal budgets");
  CHECK(contains(ablation.setup.back().value, "4s of training, all that Llama 4M takes"));
  CHECK(contains(ablation.setup.back().value, "1.6e+04 FLOPs, those of Llama 4M"));
  CHECK(cells_of(ablation, results::loss_at_equal_time_name)[1].summary.mean == Approx(2));
}

TEST_CASE("what is not comparable has no loss at an equal budget and sets none",
          "[report][budget]") {
  Ablation ablation = of_speeds({400, 100, 800});
  ablation.rows[2].violations = {"data other, this table shows one"};
  ablation.rows[1].runs[0].device_name = "another";
  ablation.rows[1].run = ablation.rows[1].runs[0];
  add_equal_budgets(ablation, curve, flops_of);
  CHECK(ablation.rows[0].loss_at_equal_time == std::vector<double>{1});
  CHECK(ablation.rows[1].loss_at_equal_time.empty());
  CHECK(ablation.rows[1].loss_at_equal_flops.size() == 1);
  CHECK(ablation.rows[2].loss_at_equal_time.empty());
  CHECK(ablation.rows[2].loss_at_equal_flops.empty());
}

TEST_CASE("a table asks for the curves only where a column shows them", "[report][budget]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000, {}});
  int asked = 0;
  AblationOptions options;
  options.evaluations = [&](const std::string& run) {
    ++asked;
    return curve(run);
  };
  build_ablation(small_table(), lab.read(), options);
  CHECK(asked == 0);
  TableSpec table = small_table();
  table.columns.push_back({ColumnKind::metric, "At equal time", "eval_loss_at_equal_time"});
  const Ablation ablation = build_ablation(table, lab.read(), options);
  CHECK(asked > 0);
  CHECK(contains(to_terminal(ablation, {false, 200}), "At equal time"));
  CHECK(contains(to_terminal(ablation, {false, 200}), "1.0000"));
}

}  // namespace
}  // namespace forge::tables
