#include <cmath>
#include <iostream>

#include "core/base/random.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using tests::contains;
using Losses = std::vector<double>;

/// Completed runs of seeds from `first` on with these losses, at 1000 tokens a second.
Sample sample_of(const Losses& losses, int64_t first = 1) {
  Sample sample;
  for (const double loss : losses) {
    store::RunSummary run;
    run.status = run::RunState::completed;
    run.seed = first++;
    run.created = "2026-11-10T10:00:0" + std::to_string(run.seed);  // in turn with other rows
    run.metrics["eval_loss"] = loss;
    run.metrics["tokens_per_second"] = 1000;
    run.device_name = "CPU";
    sample.runs.push_back(run);
  }
  if (!losses.empty()) sample.run = sample.runs.back();
  return sample;
}

/// Rows llama (the baseline), canon_a and canon_b.
Ablation ablation(const Sample& llama, const Sample& canon_a, const Sample& canon_b) {
  Ablation ablation;
  ablation.table = tests::small_table();
  for (size_t i = 0; i < 3; ++i) {
    AblationRow row;
    static_cast<Sample&>(row) = std::vector<Sample>{llama, canon_a, canon_b}[i];
    row.spec = ablation.table.rows[i];
    row.planned_seeds = row.runs.size();
    ablation.rows.push_back(row);
  }
  return ablation;
}

Ablation of_losses(const Losses& llama, const Losses& canon_a, const Losses& canon_b) {
  return ablation(sample_of(llama), sample_of(canon_a), sample_of(canon_b));
}

TEST_CASE("a cell has mean, spread and interval over its seeds", "[report][cells]") {
  const auto cells = cells_of(of_losses({1.0, 1.1, 1.2}, {1.5}, {}), "eval_loss");
  REQUIRE(cells.size() == 3);
  CHECK(cells[0].values == Losses{1.0, 1.1, 1.2});
  CHECK(cells[0].summary.mean == Approx(1.1));
  CHECK(*cells[0].summary.standard_deviation == Approx(0.1));
  // 4.302653 · 0.1 / √3
  CHECK(cells[0].summary.interval->high - 1.1 == Approx(0.248414));
  CHECK(cells[0].standing == Standing::baseline);
  CHECK_FALSE(cells[1].summary.interval);
  CHECK(cells[1].standing == Standing::one_seed);
  CHECK(cells[2].summary.n == 0);
  CHECK(cells[2].standing == Standing::not_comparable);
}

TEST_CASE("columns with the same values have the same interval", "[report][cells]") {
  Losses losses;
  RandomStream random(1, 0);
  for (int seed = 0; seed < 24; ++seed) losses.push_back(3 + random.next_u32() * 1e-11);
  Ablation table = of_losses(losses, losses, losses);
  for (AblationRow& row : table.rows) row.loss_at_equal_flops = losses;
  const Cell loss = cells_of(table, "eval_loss")[1];
  const Cell at_flops = cells_of(table, results::loss_at_equal_flops_name)[1];
  CHECK(loss.summary.method == statistics::IntervalMethod::bootstrap);
  CHECK(loss.summary.interval->low == at_flops.summary.interval->low);
  CHECK(loss.summary.interval->high == at_flops.summary.interval->high);
}

TEST_CASE("runs of the same seeds are compared in pairs, others by Welch's test",
          "[report][cells]") {
  // The seeds scatter by 0.1, the pairs' differences by 0.01.
  const Losses llama = {1.50, 1.60, 1.40}, canon_a = {1.25, 1.34, 1.13};
  const auto pairs = cells_of(of_losses(llama, canon_a, {}), "eval_loss");
  CHECK(pairs[1].paired);
  CHECK(pairs[1].difference->difference == Approx(-0.26));
  CHECK(pairs[1].difference->degrees_of_freedom == 2);
  CHECK(pairs[1].standing == Standing::better);
  const auto apart = cells_of(ablation(sample_of(llama), sample_of(canon_a, 4), {}), "eval_loss");
  CHECK_FALSE(apart[1].paired);
  CHECK(apart[1].difference->degrees_of_freedom == Approx(4).margin(0.1));
  CHECK(apart[1].difference->p > 10 * pairs[1].difference->p);
}

TEST_CASE("chances are adjusted for the number of rows", "[report][cells]") {
  const auto alone = cells_of(of_losses({1.0, 1.1, 1.2}, {0.95, 1.04, 1.16}, {}), "eval_loss");
  const auto both =
      cells_of(of_losses({1.0, 1.1, 1.2}, {0.95, 1.04, 1.16}, {1.0, 1.3, 1.2}), "eval_loss");
  // The third row is declared: two rows, and which one is the best.
  CHECK(*alone[1].p == Approx(3 * alone[1].difference->p / 0.9));
  CHECK(*both[1].p == Approx(3 * both[1].difference->p / 0.9));
  CHECK(alone[1].standing == Standing::better);
  CHECK(both[2].standing == Standing::tie);
}

TEST_CASE("the best is marked only where it stands against every other row", "[report][cells]") {
  const auto clear =
      cells_of(of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1001}, {1.4, 1.5001, 1.3}), "eval_loss");
  CHECK(clear[1].best);
  CHECK_FALSE(clear[2].best);
  const auto close =
      cells_of(of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1}, {1.25, 1.2, 1.2}), "eval_loss");
  for (const Cell& cell : close) CHECK_FALSE(cell.best);
  // One row that has only one seed leaves it open.
  const auto open = cells_of(of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1001}, {1.4}), "eval_loss");
  for (const Cell& cell : open) CHECK_FALSE(cell.best);
}

TEST_CASE("of one seed the noise of the other rows is told", "[report][cells]") {
  const auto cells = cells_of(of_losses({1.0, 1.1, 1.2}, {1.05}, {1.1, 1.2, 1.3}), "eval_loss");
  REQUIRE(cells[1].noise);
  // 2.776445 (t of 4 degrees of freedom) · 0.1 · √(1 + 1/3)
  CHECK(*cells[1].noise == Approx(0.320596));
  CHECK_FALSE(cells_of(of_losses({1.0}, {1.1}, {1.2}), "eval_loss")[1].noise);
}

TEST_CASE("rows that break the comparison are compared with nothing", "[report][cells]") {
  Ablation table = of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1001}, {1.4, 1.5001, 1.3});
  table.rows[1].violations = {"data other, this table shows one"};
  const auto cells = cells_of(table, "eval_loss");
  CHECK(cells[1].standing == Standing::not_comparable);
  CHECK_FALSE(cells[1].difference);
  CHECK_FALSE(cells[1].best);
  CHECK_FALSE(cells[2].best);  // of three declared rows, which may all be
  CHECK(cells[2].standing == Standing::better);
}

TEST_CASE("speeds of other devices are compared with nothing", "[report][cells]") {
  Ablation table = of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1}, {1.4, 1.5, 1.3});
  table.rows[1].runs.back().device_name = "another CPU";
  CHECK(cells_of(table, "tokens_per_second")[1].standing == Standing::not_comparable);
  CHECK(cells_of(table, "tokens_per_second")[2].standing == Standing::not_tested);
  CHECK(cells_of(table, "eval_loss")[1].standing != Standing::not_comparable);
}

TEST_CASE("the speed of seeds that compute fewer rows at once is compared with nothing",
          "[report][cells]") {
  Ablation table = of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1}, {1.4, 1.5, 1.3});
  table.rows[1].runs.front().micro_batch_size = 4;
  CHECK(cells_of(table, "tokens_per_second")[1].standing == Standing::not_comparable);
  CHECK(cells_of(table, "tokens_per_second")[2].standing == Standing::not_tested);
  CHECK(cells_of(table, "eval_loss")[1].standing != Standing::not_comparable);
}

TEST_CASE("more accuracy is better and so is more speed", "[report][cells]") {
  Ablation table = of_losses({1, 1, 1}, {1, 1, 1}, {});
  for (size_t i = 0; i < 3; ++i) {
    table.rows[0].runs[i].scores["token_accuracy"] = {0.5 + 0.01 * double(i), 200};
    table.rows[1].runs[i].scores["token_accuracy"] = {0.7 + 0.011 * double(i), 200};
    table.rows[1].runs[i].metrics["tokens_per_second"] = 900 + double(i);
  }
  CHECK(cells_of(table, "token_accuracy")[1].standing == Standing::better);
  CHECK(cells_of(table, "tokens_per_second")[1].standing == Standing::worse);
  CHECK(cells_of(table, "eval_loss")[1].standing == Standing::not_tested);
}

TEST_CASE("speeds that were not measured in turn are not tested", "[report][cells]") {
  Ablation table = of_losses({1, 1, 1}, {1, 1, 1}, {1, 1, 1});
  for (size_t i = 0; i < 3; ++i) {
    for (size_t row = 0; row < 3; ++row) {
      store::RunSummary& run = table.rows[row].runs[i];
      run.metrics["tokens_per_second"] = 1000 + (100 + 0.137 * double(i)) * double(row) + double(i);
      table.rows[row].loss_at_equal_time.push_back(2 - (0.5 + 0.00137 * double(i)) * double(row) +
                                                   0.01 * double(i * i));
      if (row == 2) run.created = "2026-11-11T10:00:0" + std::to_string(run.seed);
    }
  }
  for (const char* metric : {"tokens_per_second", "eval_loss_at_equal_time"}) {
    INFO(metric);
    const std::vector<Cell> cells = cells_of(table, metric);
    CHECK(cells[1].standing == Standing::better);
    CHECK(cells[2].standing == Standing::not_tested);
    CHECK_FALSE(cells[2].difference);
    CHECK_FALSE(cells[2].best);
  }
}

TEST_CASE("tables show intervals, ties and what stands", "[report][cells]") {
  Ablation table = of_losses({1.5, 1.6, 1.4}, {0.9, 1.0, 0.8001}, {1.5, 1.5001, 1.5});
  table.table.columns = {{ColumnKind::model, "Model"},
                         {ColumnKind::seeds, "Seeds"},
                         {ColumnKind::metric, "Eval Loss", "eval_loss"},
                         {ColumnKind::difference, "vs Llama", "eval_loss"}};
  const std::string text = to_terminal(table, {false, 200});
  INFO(text);
  CHECK(contains(text, "Llama 4M      3  1.5000 \u00b1 0.2484"));
  CHECK(contains(text, "0.9000 \u00b1 0.2483  \u22120.6000 \u00b1 0.0001, p < 0.0001\n"));
  CHECK(contains(text, "1.5000 \u00b1 0.0001  \u2248 (+0.0000 \u00b1 0.2483, p 1.00)\n"));
  Ablation without = table;
  without.table.columns.pop_back();
  CHECK(contains(to_terminal(without, {false, 200}), "1.5000 \u00b1 0.0001 \u2248\n"));
  CHECK(contains(to_markdown(table), "| **0.9000 \u00b1 0.2483** |"));
  const auto json = to_json(table);
  const auto& statistics = json["rows"][1]["statistics"]["eval_loss"];
  CHECK(statistics["n"] == 3);
  CHECK(statistics["standing"] == "better");
  CHECK(statistics["best"] == true);
  CHECK(statistics["difference"]["test"] == "paired");
  CHECK(json["rows"][1]["runs"].size() == 3);
}

TEST_CASE("a derived column shows an expression's value and interval", "[report][cells]") {
  Ablation table =
      of_losses({1.00012345, 1.10023456, 1.20034567}, {0.90010111, 0.99120222, 1.08030333}, {0.5});
  ColumnSpec column{ColumnKind::derived, "Gain"};
  column.unit = "%";
  column.precision = 1;
  column.expression = parse_expression("100*(1 - eval_loss/baseline.eval_loss)");
  table.table.columns = {{ColumnKind::model, "Model"}, column};
  const std::string text = to_terminal(table, {false, 200});
  INFO(text);
  CHECK(contains(text, "Canon-A   10.0 \u00b1 0.1 %\n"));
  CHECK(contains(text, "Llama 4M         0.0 %\n"));
  table.rows[1].violations = {"it is another"};
  CHECK(contains(to_terminal(table, {false, 200}), "Canon-A"));
  CHECK_FALSE(contains(to_terminal(table, {false, 200}), "10.0"));
}

TEST_CASE("rows that no seed changes are not certain to differ", "[report][cells]") {
  Ablation table = of_losses({1, 1.1, 1.2}, {1, 1.1, 1.2}, {});
  for (size_t i = 0; i < 3; ++i) {
    table.rows[0].runs[i].metrics["peak_memory_bytes"] = 100;
    table.rows[1].runs[i].metrics["peak_memory_bytes"] = 90;
    table.rows[0].runs[i].scores["kl_divergence"] = {0.5, 100};
    table.rows[1].runs[i].scores["kl_divergence"] = {0.25, 100};
  }
  for (const char* metric : {"peak_memory_bytes", "kl_divergence"}) {
    const Cell cell = cells_of(table, metric)[1];
    CHECK(cell.standing == Standing::not_tested);
    CHECK_FALSE(cell.p);
    CHECK_FALSE(cell.best);
    CHECK_FALSE(cell.noise);
  }
  table.table.columns = {{ColumnKind::model, "Model"},
                         {ColumnKind::difference, "vs Llama", "kl_divergence"}};
  CHECK(contains(to_terminal(table, {false, 200}), "\u22120.2500 ?"));
  CHECK(to_json(table)["rows"][1]["statistics"]["kl_divergence"]["standing"] == "not tested");
}

TEST_CASE("a row of one seed says what noise may be", "[report][cells]") {
  Ablation table = of_losses({1.0, 1.1, 1.2}, {1.05}, {1.1, 1.2, 1.3});
  const std::string text = to_terminal(table, {false, 300});
  CHECK(contains(text, "1.0500 [1]"));
  CHECK(contains(text,
                 "[1] one seed counts: by the spread of other rows' seeds, a difference from the "
                 "baseline below "
                 "0.3206 may be noise"));
}

}  // namespace
}  // namespace forge::tables

// What tables promise of their marks, tried on runs of which the truth is known.

namespace forge::tables {
namespace {

constexpr int tables = 1000;
constexpr int rows = 8;  ///< beside the baseline

/// A table whose rows have losses around 2, the last by `effect` standard deviations lower. Runs of
/// one seed have as much in common as each has alone; with `same_seeds` all rows have the same.
Ablation made_table(RandomStream& random, size_t n, bool same_seeds, double effect) {
  constexpr double spread = 0.01;
  const auto normal = [&] { return spread * normal_quantile(open_uniform(random.next_u32())); };
  std::vector<double> common(n);
  for (double& each : common) each = normal();
  Ablation ablation;
  ablation.table = tests::small_table();
  const RowSpec baseline = ablation.table.rows.front();
  ablation.table.rows.clear();
  for (int i = 0; i <= rows; ++i) {
    AblationRow row;
    row.spec = baseline;
    if (i > 0) row.spec.config = "row_" + std::to_string(i);
    for (size_t k = 0; k < n; ++k) {
      store::RunSummary run;
      run.status = run::RunState::completed;
      run.seed = static_cast<int64_t>(same_seeds ? k : k + n * static_cast<size_t>(i));
      run.metrics["eval_loss"] = 2 + normal() + (same_seeds ? common[k] : 0);
      if (i == rows) run.metrics["eval_loss"] -= effect * spread;
      row.runs.push_back(run);
    }
    row.run = row.runs.back();
    row.planned_seeds = n;
    ablation.table.rows.push_back(row.spec);
    ablation.rows.push_back(row);
  }
  return ablation;
}

/// Shares of the tables in which a row stands apart from the baseline, one is marked as the best,
/// and the last row is found to be better.
struct Marks {
  double any_difference = 0;
  double any_best = 0;
  double last_is_better = 0;
};

Marks marks_of(size_t n, bool same_seeds, double effect) {
  RandomStream random(simulation_seed(), stream_number("tables " + std::to_string(n)));
  Marks marks;
  for (int i = 0; i < tables; ++i) {
    const std::vector<Cell> cells =
        cells_of(made_table(random, n, same_seeds, effect), results::eval_loss_name);
    bool differs = false;
    bool best = false;
    for (const Cell& cell : cells) {
      REQUIRE((cell.standing == Standing::baseline || cell.paired == same_seeds));
      differs |= cell.standing == Standing::better || cell.standing == Standing::worse;
      best |= cell.best;
    }
    marks.any_difference += differs / double{tables};
    marks.any_best += best / double{tables};
    marks.last_is_better += (cells.back().standing == Standing::better) / double{tables};
  }
  return marks;
}

TEST_CASE("tables of equal rows rarely mark one", "[report][simulation]") {
  const double bound = 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables);
  for (const size_t n : {3, 5, 10}) {
    for (const bool same_seeds : {false, true}) {
      const Marks marks = marks_of(n, same_seeds, 0);
      CAPTURE(n, same_seeds, simulation_seed());
      std::cout << "equal rows, n = " << n << (same_seeds ? ", same seeds" : "") << ": "
                << marks.any_difference << " of the tables show a difference, " << marks.any_best
                << " a best row (FORGE_TEST_SEED=" << simulation_seed() << ")\n";
      REQUIRE(marks.any_difference <= bound);
      REQUIRE(marks.any_best <= bound);
    }
  }
}

/// Tables of rows with the same true accuracy, each run of which answers so many cases: the share
/// in which a row stands apart.
double share_with_a_difference(size_t n, double accuracy, int64_t cases) {
  RandomStream random(simulation_seed(), stream_number("accuracies " + std::to_string(n)));
  int wrong = 0;
  for (int i = 0; i < tables; ++i) {
    Ablation table = made_table(random, n, true, 0);
    for (AblationRow& row : table.rows) {
      for (store::RunSummary& run : row.runs) {
        int64_t right = 0;
        for (int64_t k = 0; k < cases; ++k) right += open_uniform(random.next_u32()) < accuracy;
        run.scores["answer_accuracy"] = {double(right) / double(cases), cases};
      }
    }
    const std::vector<Cell> cells = cells_of(table, "answer_accuracy");
    wrong += std::any_of(cells.begin(), cells.end(), [](const Cell& cell) {
      return cell.standing == Standing::better || cell.standing == Standing::worse;
    });
  }
  return wrong / double{tables};
}

TEST_CASE("accuracies that agree by chance make no difference certain", "[report][simulation]") {
  for (const size_t n : {2, 3, 5}) {
    for (const double accuracy : {0.99, 0.90}) {
      const double share = share_with_a_difference(n, accuracy, 256);
      CAPTURE(n, accuracy, simulation_seed());
      std::cout << "equal accuracies of " << accuracy << ", n = " << n << ": " << share
                << " of the tables show a difference\n";
      REQUIRE(share <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables));
    }
  }
}

TEST_CASE("of two equally good rows rarely one is marked as the best", "[report][simulation]") {
  for (const size_t n : {3, 5, 10}) {
    RandomStream random(simulation_seed(), stream_number("two best " + std::to_string(n)));
    int marked = 0;
    for (int i = 0; i < tables; ++i) {
      Ablation table = made_table(random, n, true, 0);
      for (size_t good = 1; good <= 2; ++good)
        for (store::RunSummary& run : table.rows[good].runs) run.metrics["eval_loss"] -= 1;
      const std::vector<Cell> cells = cells_of(table, results::eval_loss_name);
      marked += std::any_of(cells.begin(), cells.end(), [](const Cell& cell) { return cell.best; });
    }
    const double share = marked / double{tables};
    CAPTURE(n, share, simulation_seed());
    std::cout << "two equally good rows, n = " << n << ": one is marked in " << share << "\n";
    REQUIRE(share > 0);
    REQUIRE(share <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables));
  }
}

TEST_CASE("tables find a difference as often as theory says", "[report][simulation]") {
  // welch_power and paired_power of tests/differential/statistics_oracle.py at 0.045 / 9, which
  // Holm never falls short of: eight rows and which one is the best. Pairs leave the difference of
  // two values' own noise, √2 as large.
  struct Theory {
    size_t n;
    double effect;
    double other_seeds;
    double same_seeds;
  };
  for (const Theory& theory : {Theory{5, 2, 0.2877, 0.1667},
                               Theory{5, 4, 0.9393, 0.7001},
                               Theory{10, 2, 0.8690, 0.7508}}) {
    for (const bool same_seeds : {false, true}) {
      const double found = marks_of(theory.n, same_seeds, theory.effect).last_is_better;
      const double expected = same_seeds ? theory.same_seeds : theory.other_seeds;
      CAPTURE(theory.n, theory.effect, same_seeds, simulation_seed());
      std::cout << theory.effect << " standard deviations, n = " << theory.n
                << (same_seeds ? ", same seeds" : "") << ": found in " << found
                << " of the tables, by theory " << expected << "\n";
      REQUIRE(found >= expected - 4 * std::sqrt(expected * (1 - expected) / tables));
    }
  }
}

}  // namespace
}  // namespace forge::tables
