#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/results/tables/ablation.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

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

TEST_CASE("rows of another value of --by set no budget", "[report][budget]") {
  Ablation alone = of_speeds({400, 100, 200});
  add_equal_budgets(alone, curve, flops_of);
  Ablation both = of_speeds({400, 100, 200});
  both.table.by = "train.max_steps";
  for (AblationRow& row : both.rows) row.group = "100";
  for (size_t i = 0; i < 3; ++i) {
    AblationRow shorter = both.rows[i];
    shorter.group = "50";
    shorter.run->tokens = shorter.runs[0].tokens = 800;
    both.rows.push_back(shorter);
  }
  add_equal_budgets(both, curve, flops_of);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(both.rows[i].loss_at_equal_time == alone.rows[i].loss_at_equal_time);
    CHECK(both.rows[i].loss_at_equal_flops == alone.rows[i].loss_at_equal_flops);
  }
  CHECK(both.rows[4].loss_at_equal_time[0] == Approx(3));
  CHECK(contains(both.setup.back().value,
                 "4s of training, all that Llama 4M with train.max_steps 100 takes"));
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

/// A further run of the row, of that seed and speed, which ended in that minute.
void add_run(AblationRow& row, int64_t seed, double speed, int minute) {
  store::RunSummary run = row.runs.back();
  run.id = row.spec.config + std::to_string(seed);
  run.seed = seed;
  run.updated = "2026-11-20T10:" + std::to_string(20 + minute) + ":00.000Z";
  run.metrics["tokens_per_second"] = speed;
  row.runs.push_back(run);
  row.run = run;
}

TEST_CASE("further seeds of a row move no budget", "[report][budget]") {
  const auto budget_with = [](const std::vector<std::pair<double, int>>& further) {
    Ablation ablation = of_speeds({400, 100, 200});
    ablation.rows[0].runs[0].updated = "2026-11-20T10:20:00.000Z";
    int64_t seed = 2;
    for (const auto& [speed, minute] : further) add_run(ablation.rows[0], seed++, speed, minute);
    add_equal_budgets(ablation, curve, flops_of);
    return values_of(ablation.rows[1], results::loss_at_equal_time_name)[0];
  };
  CHECK(budget_with({}) == Approx(2));
  CHECK(budget_with({{800, 1}, {100, 2}}) == Approx(2));
  // That of the run that was done first, whenever it was begun and whatever its seed.
  CHECK(budget_with({{800, -1}}) == Approx(3));
}

TEST_CASE("nothing is concluded at equal time while a row repeats runs or takes an unknown time",
          "[report][budget]") {
  const auto standing_with = [](const std::function<void(Ablation&)>& change) {
    Ablation ablation = of_speeds({100, 100, 400});
    ablation.table.tokens_per_second = SpeedSource::runs;
    for (AblationRow& row : ablation.rows) {
      add_run(row, 2, *row.runs[0].metric("tokens_per_second") + 0.125, 1);
      for (store::RunSummary& run : row.runs) {
        run.seed = &run == &row.runs[0] ? 1 : 2;
        run.created = "2026-11-20T10:0" + std::to_string(run.seed);
      }
      row.first_runs = row.runs;
      row.run = row.runs.back();
      row.planned_seeds = 2;
    }
    change(ablation);
    const auto curves = [](const std::string& id) {
      const double seed = contains(id, "2") ? 0.0123 : 0;
      const double own = contains(id, "canon_a") ? 0.3 + 2 * seed : seed;
      return std::vector<store::LossPoint>{at(100, 4 + own), at(1600, 1 + own)};
    };
    add_equal_budgets(ablation, curves, flops_of);
    return cells_of(ablation, results::loss_at_equal_time_name)[1].standing;
  };
  CHECK(standing_with([](Ablation&) {}) != Standing::not_tested);
  // A row that is not compared sets the time.
  CHECK(standing_with([](Ablation& ablation) { ablation.rows[2].first_runs[0].id = "older"; }) ==
        Standing::not_tested);
  CHECK(standing_with([](Ablation& ablation) {
          for (store::RunSummary& run : ablation.rows[2].runs) run.recompute = "mlp";
        }) == Standing::not_tested);
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
