#include "core/report/cells.h"

#include "core/report/machine_formats.h"
#include "core/report/markdown.h"
#include "core/report/terminal.h"
#include "tests/core/report/lab.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::report {
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
    run.eval_loss = loss;
    run.tokens_per_second = 1000;
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
  CHECK(cells[2].standing == Standing::not_alike);
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
  CHECK(*alone[1].p == alone[1].difference->p);
  CHECK(*both[1].p == Approx(2 * both[1].difference->p));
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
  table.rows[1].breaks = {"data other, this table shows one"};
  const auto cells = cells_of(table, "eval_loss");
  CHECK(cells[1].standing == Standing::not_alike);
  CHECK_FALSE(cells[1].difference);
  CHECK_FALSE(cells[1].best);
  CHECK(cells[2].best);
  CHECK(cells[2].standing == Standing::better);
}

TEST_CASE("speeds of other devices are compared with nothing", "[report][cells]") {
  Ablation table = of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1}, {1.4, 1.5, 1.3});
  table.rows[1].runs.back().device_name = "another CPU";
  CHECK(cells_of(table, "tokens_per_second")[1].standing == Standing::not_alike);
  CHECK(cells_of(table, "tokens_per_second")[2].standing == Standing::tie);
  CHECK(cells_of(table, "eval_loss")[1].standing != Standing::not_alike);
}

TEST_CASE("the speed of seeds that compute fewer rows at once is compared with nothing",
          "[report][cells]") {
  Ablation table = of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1}, {1.4, 1.5, 1.3});
  table.rows[1].runs.front().micro_batch_size = 4;
  CHECK(cells_of(table, "tokens_per_second")[1].standing == Standing::not_alike);
  CHECK(cells_of(table, "tokens_per_second")[2].standing == Standing::tie);
  CHECK(cells_of(table, "eval_loss")[1].standing != Standing::not_alike);
}

TEST_CASE("more accuracy is better and so is more speed", "[report][cells]") {
  Ablation table = of_losses({1, 1, 1}, {1, 1, 1}, {});
  for (size_t i = 0; i < 3; ++i) {
    table.rows[0].runs[i].scores["token_accuracy"] = {0.5 + 0.01 * double(i), 100};
    table.rows[1].runs[i].scores["token_accuracy"] = {0.7 + 0.011 * double(i), 100};
    table.rows[1].runs[i].tokens_per_second = 900 + double(i);
  }
  CHECK(cells_of(table, "token_accuracy")[1].standing == Standing::better);
  CHECK(cells_of(table, "tokens_per_second")[1].standing == Standing::worse);
  CHECK(cells_of(table, "eval_loss")[1].standing == Standing::tie);
}

TEST_CASE("tables show intervals, ties and what stands", "[report][cells]") {
  Ablation table = of_losses({1.5, 1.6, 1.4}, {1.2, 1.3, 1.1001}, {1.5, 1.5001, 1.5});
  table.table.columns = {{ColumnKind::model, "Model"},
                         {ColumnKind::seeds, "Seeds"},
                         {ColumnKind::eval_loss, "Eval Loss"},
                         {ColumnKind::difference, "vs Llama"}};
  const std::string text = to_terminal(table, {false, 200});
  INFO(text);
  CHECK(contains(text, "Llama 4M      3  1.5000 \u00b1 0.2484"));
  CHECK(contains(text, "1.2000 \u00b1 0.2483  \u22120.3000 \u00b1 0.0001, p < 0.0001\n"));
  CHECK(contains(text, "1.5000 \u00b1 0.0001  \u2248 (+0.0000 \u00b1 0.2483, p 1.00)\n"));
  Ablation without = table;
  without.table.columns.pop_back();
  CHECK(contains(to_terminal(without, {false, 200}), "1.5000 \u00b1 0.0001 \u2248\n"));
  CHECK(contains(to_markdown(table), "| **1.2000 \u00b1 0.2483** |"));
  const auto json = to_json(table);
  const auto& statistics = json["rows"][1]["statistics"]["eval_loss"];
  CHECK(statistics["n"] == 3);
  CHECK(statistics["standing"] == "better");
  CHECK(statistics["best"] == true);
  CHECK(statistics["difference"]["test"] == "paired");
  CHECK(json["rows"][1]["runs"].size() == 3);
}

TEST_CASE("a derived column shows an expression's value and interval", "[report][cells]") {
  Ablation table = of_losses({1.0, 1.1, 1.2}, {0.9, 0.991, 1.08}, {0.5});
  ColumnSpec column{ColumnKind::derived, "Gain"};
  column.unit = "%";
  column.precision = 1;
  column.expression = parse_expression("100*(1 - eval_loss/baseline.eval_loss)");
  table.table.columns = {{ColumnKind::model, "Model"}, column};
  const std::string text = to_terminal(table, {false, 200});
  INFO(text);
  CHECK(contains(text, "Canon-A   10.0 \u00b1 0.1 %\n"));
  CHECK(contains(text, "Llama 4M   0.0 \u00b1 0.0 %\n"));
  table.rows[1].breaks = {"it is another"};
  CHECK(contains(to_terminal(table, {false, 200}), "Canon-A"));
  CHECK_FALSE(contains(to_terminal(table, {false, 200}), "10.0"));
}

TEST_CASE("a row of one seed says what noise may be", "[report][cells]") {
  Ablation table = of_losses({1.0, 1.1, 1.2}, {1.05}, {1.1, 1.2, 1.3});
  const std::string text = to_terminal(table, {false, 300});
  CHECK(contains(text, "1.0500 [1]"));
  CHECK(contains(text,
                 "[1] one seed: as other rows scatter, a difference from the baseline below "
                 "0.3206 is noise"));
}

}  // namespace
}  // namespace forge::report
