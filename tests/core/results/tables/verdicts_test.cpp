#include "core/results/tables/verdicts.h"

#include <cmath>
#include <functional>
#include <utility>

#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/core/results/tables/simulated_tables.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using simulated::row_of;
using simulated::table_of;
using tests::contains;

/// The losses of a row, of seeds from 1 on.
using Losses = std::vector<double>;

ClaimSpec below(const std::string& config, const std::string& other) {
  ClaimSpec claim;
  claim.config = config;
  claim.below = other;
  return claim;
}

const std::vector<Cell>& cells_of(const Verdicts& verdicts) {
  return verdicts.cells.at("eval_loss");
}

const Losses baseline = {1.00, 1.10, 1.20, 1.05, 1.15};
/// Lower by about 0.1: p of the paired test is 0.0005.
const Losses better = {0.90, 1.01, 1.08, 0.95, 1.06};

TEST_CASE("at the planned number of seeds nearly all of the error is left", "[verdicts]") {
  const Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const Cell cell = cells_of(verdicts_of(table))[1];
  CHECK(cell.standing == Standing::better);
  CHECK(cell.best);
  CHECK(*cell.p == Approx(cell.difference->p / 0.9));
}

TEST_CASE("a row is not the best for a seed that the other one does not have", "[verdicts]") {
  Losses worse, mean_is_lower = {};
  for (const double loss : baseline) worse.push_back(loss + (worse.size() % 2 ? 0.0100 : 0.0104));
  mean_is_lower = worse;
  mean_is_lower.push_back(0.5);
  const Ablation table =
      table_of({row_of("llama", baseline, 5), row_of("canon", mean_is_lower, 5)});
  const std::vector<Cell> cells = cells_of(verdicts_of(table));
  CHECK(cells[1].standing == Standing::worse);
  CHECK(cells[1].summary.mean < cells[0].summary.mean);
  for (const Cell& cell : cells) CHECK_FALSE(cell.best);
}

TEST_CASE("without a plan every number of seeds is a look", "[verdicts]") {
  const Ablation table = table_of({row_of("llama", baseline, 0), row_of("canon", better, 5)});
  const Cell cell = cells_of(verdicts_of(table))[1];
  CHECK(*cell.p == Approx(cell.difference->p * 5 * 4 / 0.95));
}

TEST_CASE("before the planned number the seeds count that all rows have", "[verdicts]") {
  const Losses first = {better.begin(), better.begin() + 3};
  const Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", first, 5)});
  const Cell cell = cells_of(verdicts_of(table))[1];
  CHECK(cell.paired);
  CHECK(cell.summary.n == 3);
  CHECK(cell.difference->degrees_of_freedom == 2);
  CHECK(cell.difference->difference == Approx(-(0.10 + 0.09 + 0.12) / 3));
  // Three looks, at 2, 3 and 4 seeds, share a twentieth of the error.
  CHECK(*cell.p == Approx(std::min(1.0, cell.difference->p * 3 / 0.025)));
  CHECK(cell.standing == Standing::tie);
}

TEST_CASE("seeds that were chosen from another row's are compared with nothing", "[verdicts]") {
  AblationRow all = row_of("llama", baseline, 5), some = row_of("canon", better, 5);
  some.runs = {some.runs[2], some.runs[4]};  // seeds 3 and 5 of 1 to 5
  Ablation table = table_of({all, some});
  table.table.claims = {below("canon", "llama")};
  const Verdicts chosen = verdicts_of(table);
  CHECK(cells_of(chosen)[1].standing == Standing::not_tested);
  CHECK(chosen.claims[0].verdict == Verdict::not_decidable);
  CHECK(contains(chosen.claims[0].reason, "not the first ones of each"));
  // By the order of its command they may be the first ones.
  for (store::RunSummary& run : all.runs) run.planned_seeds = "5,3,1,2,4";
  table = table_of({all, some});
  CHECK(cells_of(verdicts_of(table))[1].paired);
}

TEST_CASE("seeds that are not the first ones of their plan are compared with nothing",
          "[verdicts]") {
  AblationRow all = row_of("llama", baseline, 5), other = row_of("canon", better, 5);
  const auto shown_with = [&](const std::set<int64_t>& seeds) {
    Ablation table = table_of({with_seeds(all, seeds), with_seeds(other, seeds)});
    table.table.claims = {below("canon", "llama")};
    return verdicts_of(table).claims[0];
  };
  for (AblationRow* row : {&all, &other})
    for (store::RunSummary& run : row->runs) run.planned_seeds = "1,2,3,4,5";
  CHECK(contains(shown_with({1, 2, 3}).reason, "3 and 3 seeds"));
  const auto chosen = shown_with({2, 3, 5});  // both rows lack 1 and 4
  CHECK(chosen.verdict == Verdict::not_decidable);
  CHECK(contains(chosen.reason, "not the first ones of each"));

  // As many seeds as were planned, but others.
  for (AblationRow* row : {&all, &other}) {
    for (store::RunSummary& run : row->runs) run.planned_seeds = run.seed <= 2 ? "1,2,6" : "3,4,5";
    row->planned_seeds = 3;
    row->missing_seeds = 1;
  }
  const auto others = shown_with({1, 2, 3, 4, 5});
  CHECK(others.verdict == Verdict::not_decidable);
  CHECK(contains(others.reason, "not the first ones of each"));
}

TEST_CASE("rows that share nearly all seeds are compared seed by seed", "[verdicts]") {
  AblationRow four = row_of("canon", better, 4);
  four.runs.pop_back();
  const Cell cell = cells_of(verdicts_of(table_of({row_of("llama", baseline, 5), four})))[1];
  CHECK(cell.paired);
  CHECK(cell.difference->degrees_of_freedom == 3);
}

TEST_CASE("a difference that is of fewer seeds than the means says so", "[verdicts]") {
  AblationRow four = row_of("canon", better, 4);
  four.runs.pop_back();
  Ablation table = table_of({row_of("llama", baseline, 5), four});
  table.table.columns.push_back({ColumnKind::seeds, "Seeds"});
  const std::string note =
      "canon has 4 seeds, llama 5: they are compared by the 4 that both have, and the difference "
      "is not that of the means shown";
  Sheet sheet = make_sheet(table);
  CHECK(sheet.footnotes == std::vector<std::string>{note});
  CHECK(contains(sheet.rows[1][0].text, " [1]"));
  CHECK(sheet.rows[1][1].text == "4");
  CHECK(cells_of(verdicts_of(table))[1].common_seeds == 4);
  CHECK(to_json(table)["rows"][1]["statistics"]["eval_loss"]["difference"]["common_seeds"] == 4);
  // A column of differences has the mark alone.
  table.table.columns.push_back({ColumnKind::difference, "vs Llama", "eval_loss"});
  sheet = make_sheet(table);
  CHECK(sheet.footnotes == std::vector<std::string>{note});
  CHECK_FALSE(contains(sheet.rows[1][0].text, "["));
  CHECK(contains(sheet.rows[1][2].text, " [1]"));

  table.rows[1] = row_of("canon", better, 5);
  CHECK(make_sheet(table).footnotes.empty());
  // Of rows with other seeds the difference is that of the means.
  for (store::RunSummary& run : table.rows[1].runs) run.seed += 100;
  CHECK(make_sheet(table).footnotes.empty());
}

TEST_CASE("a row of which a seed diverged is not tested on the others", "[verdicts]") {
  for (const double end : {double(INFINITY), double(NAN)}) {
    CAPTURE(end);
    AblationRow canon = row_of("canon", {better[0], better[1], better[2], end}, 4);
    AblationRow llama = row_of("llama", {baseline[0], baseline[1], baseline[2], baseline[3]}, 4);
    ClaimSpec expression;
    expression.claim = expression.holds = "eval_loss[canon] < 0.999*eval_loss[llama]";
    expression.comparison = parse_comparison(expression.holds);
    expression.expression = difference_of(*expression.comparison);
    const auto check = [&](const std::vector<AblationRow>& rows) {
      Ablation table = table_of(rows);
      table.table.claims = {below("canon", "llama"), expression};
      const Verdicts verdicts = verdicts_of(table);
      for (const Cell& cell : cells_of(verdicts)) CHECK_FALSE(cell.best);
      CHECK(cells_of(verdicts)[1].standing == Standing::not_tested);
      for (const JudgedClaim& claim : verdicts.claims) {
        CHECK(claim.verdict == Verdict::not_decidable);
        CHECK(contains(claim.reason, "canon diverged in 1 of 4 runs"));
      }
    };
    check({llama, canon});
    AblationRow third = row_of("third", {2.0011, 2.0123, 2.0217, 2.0335}, 4);
    check({llama, canon, third});
    llama.runs[3].seed = 9;  // they share three quarters
    check({llama, canon});
    llama.planned_seeds = 5;  // and not all of the baseline's are there
    check({llama, canon});
    for (store::RunSummary& run : llama.runs) run.seed += 100;
    check({llama, canon});
  }
}

TEST_CASE("seeds that move two rows in opposite directions make a difference less sure",
          "[verdicts]") {
  // Half of the seeds are common: what lowers the one raises the other.
  const Losses own = {0.90, 1.01, 1.08, 0.95, 1.06, 0.98},
               other = {1.00, 1.12, 1.20, 1.05, 1.15, 1.11};
  const auto compared = [&](bool are_reversed) {
    AblationRow llama = row_of("llama", other, 6), canon = row_of("canon", own, 6);
    std::vector<int64_t> seeds = {1, 2, 3, 11, 12, 13};  // of the losses 0.90, 1.01 and 1.08
    if (are_reversed) seeds = {3, 2, 1, 11, 12, 13};
    for (size_t i = 0; i < 6; ++i) canon.runs[i].seed = seeds[i];
    Ablation table = table_of({llama, canon});
    ClaimSpec claim;
    claim.claim = claim.holds = "2*eval_loss[canon] < 2*eval_loss[llama]";
    claim.comparison = parse_comparison(claim.holds);
    claim.expression = difference_of(*claim.comparison);
    table.table.claims = {claim};
    return verdicts_of(table);
  };
  const Verdicts alike = compared(false), reversed = compared(true);
  CHECK_FALSE(cells_of(alike)[1].paired);
  const statistics::Difference &as_independent = *cells_of(alike)[1].difference,
                               &of_common = *cells_of(reversed)[1].difference;
  CHECK(as_independent.difference == Approx(of_common.difference));
  CHECK(as_independent.degrees_of_freedom > 9);
  CHECK(of_common.degrees_of_freedom == 5);
  CHECK(of_common.standard_error > 1.1 * as_independent.standard_error);
  CHECK(of_common.p > 1.5 * as_independent.p);
  CHECK(*reversed.claims[0].p == Approx(*cells_of(reversed)[1].p).epsilon(1e-3));
  CHECK(*alike.claims[0].p == Approx(*cells_of(alike)[1].p).epsilon(1e-3));
}

TEST_CASE("sets of runs that were tried before make a difference less clear", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const double alone = *cells_of(verdicts_of(table))[1].p;
  table.rows[1].sets.shown = {"", "2026-11-12"};
  table.rows[1].sets.others = {{"", "2026-11-11"}, {"", "2026-11-13"}};
  CHECK(*cells_of(verdicts_of(table))[1].p == Approx(std::min(1.0, 2 / 0.05 * alone)));
  table.rows[1].sets.others.clear();
  table.rows[1].sets.tables = {"grid"};
  CHECK(*cells_of(verdicts_of(table))[1].p == Approx(2 * alone));
}

TEST_CASE("seeds that are added to a plan that was carried out need a clearer difference",
          "[verdicts]") {
  const Ablation table = table_of({row_of("llama", baseline, 3), row_of("canon", better, 5)});
  const Cell cell = cells_of(verdicts_of(table))[1];
  // Two runs beyond the plan: the second look of those after it.
  CHECK(*cell.p == Approx(std::min(1.0, cell.difference->p * 2 * 3 / 0.025)));
}

TEST_CASE("half of the error is the primary metric's, half that of columns and claims",
          "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const double alone = *cells_of(verdicts_of(table))[1].p;
  table.table.claims = {below("canon", "llama")};
  const Verdicts both = verdicts_of(table);
  CHECK(*cells_of(both)[1].p == Approx(2 * alone));
  CHECK(*both.claims[0].p == Approx(2 * alone));
  CHECK(both.claims[0].verdict == Verdict::holds);
  CHECK(contains(both.claims[0].reason, "5 and 5 seeds, p 0.00"));

  // Twenty claims share one half: the primary metric does not pay for them.
  table.table.claims.assign(20, below("canon", "llama"));
  const Verdicts many = verdicts_of(table);
  CHECK(*cells_of(many)[1].p == Approx(2 * alone));
  CHECK(*many.claims[0].p == Approx(40 * alone).epsilon(0.6));

  table.table.columns.push_back({ColumnKind::metric, "Train loss", "train_loss"});
  table.table.primary = "train_loss";
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs) run.metrics["train_loss"] = run.metrics["eval_loss"];
  CHECK(*cells_of(verdicts_of(table))[1].p > 2 * alone);
}

TEST_CASE("a claim that is only clear by itself is within noise of the table", "[verdicts]") {
  Losses close = baseline;
  for (size_t i = 0; i < close.size(); ++i) close[i] -= i % 2 == 0 ? 0.02 : 0.06;
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", close, 5)});
  table.table.claims = {below("canon", "llama")};
  CHECK(verdicts_of(table).claims[0].verdict == Verdict::holds);
  table.table.claims.assign(30, below("canon", "llama"));
  const JudgedClaim judged = verdicts_of(table).claims[0];
  CHECK(judged.verdict == Verdict::not_decidable);
  CHECK(contains(judged.reason, "; within noise"));
}

TEST_CASE("an evaluation of few rows of text makes a difference less certain", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const statistics::Difference alone = *cells_of(verdicts_of(table))[1].difference;
  table.rows[0].evaluation_rows = {{1.0, 1.1, 1.2, 1.3}, {10, 10, 10, 20}};
  table.rows[1].evaluation_rows = {{0.9, 1.1, 1.1, 1.2}, {10, 10, 10, 20}};
  // Weights 0.2, 0.2, 0.2, 0.4 on differences of -0.1, 0, -0.1, -0.1, whose mean is -0.08. So many
  // rows of equal weight would tell as much:
  const double rows = 1 / (3 * 0.04 + 0.16);
  const double error =
      std::sqrt((0.004 * 0.004 * 2 + 0.016 * 0.016 + 0.008 * 0.008) * rows / (rows - 1));
  const statistics::Difference both = *cells_of(verdicts_of(table))[1].difference;
  CHECK(both.difference == alone.difference);
  CHECK(both.standard_error == Approx(std::hypot(alone.standard_error, error)));
  const double of_seeds = alone.interval.half_width();
  const double of_rows = statistics::student_t_critical_value(0.95, rows - 1) * error;
  CHECK(both.interval.half_width() == Approx(std::hypot(of_seeds, of_rows)).epsilon(1e-6));
  CHECK(both.p > alone.p);
  CHECK(both.p > statistics::normal_two_sided_p(both.difference / error));
  // A claim by an expression has the same error in it.
  ClaimSpec claim;
  claim.claim = "It pays";
  claim.value = "eval_loss[canon] - eval_loss[llama]";
  claim.expression = parse_expression(claim.value);
  claim.at_most = 0;
  table.table.claims = {claim};
  CHECK(*verdicts_of(table).claims[0].p ==
        Approx(*cells_of(verdicts_of(table))[1].p).epsilon(0.01));
  // Neither another metric in the expression nor rows that only one side tells take it away.
  const double of_claim = *verdicts_of(table).claims[0].p;
  table.table.claims[0].expression =
      parse_expression("(eval_loss[canon] - eval_loss[llama])*parameters[llama]");
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs) run.parameters = 1000;
  CHECK(*verdicts_of(table).claims[0].p == Approx(of_claim).epsilon(0.01));
  // Rows that are not the same ones cancel nothing.
  table.rows[1].evaluation_rows.tokens[0] = 11;
  const double of_others = cells_of(verdicts_of(table))[1].difference->p;
  CHECK(of_others > both.p);
  table.rows[1].evaluation_rows = {};
  CHECK(cells_of(verdicts_of(table))[1].difference->p > alone.p);
  CHECK(cells_of(verdicts_of(table))[1].difference->p < of_others);
  table.rows[0].evaluation_rows = {};
  CHECK(cells_of(verdicts_of(table))[1].difference->p == alone.p);

  // Of one row nobody knows how much another would change.
  for (AblationRow& row : table.rows) row.evaluation_rows = {{1.0}, {10}};
  table.table.claims.push_back(below("canon", "llama"));
  const Verdicts of_one = verdicts_of(table);
  CHECK(cells_of(of_one)[1].standing == Standing::not_tested);
  for (const JudgedClaim& judged : of_one.claims) {
    CHECK(judged.verdict == Verdict::not_decidable);
    CHECK(contains(judged.reason, "one row of text was evaluated"));
  }
}

TEST_CASE("a loss above the floor asks what the loss asks", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs) run.entropy_floor = 0.45;
  table.table.must_be_equal = {"data", "evaluation"};
  const double alone = *cells_of(verdicts_of(table))[1].p;
  table.table.columns.push_back({ColumnKind::metric, "Above floor", "eval_loss_above_floor"});
  const Verdicts both = verdicts_of(table);
  CHECK(*cells_of(both)[1].p == alone);
  const Cell& above = both.cells.at("eval_loss_above_floor")[1];
  CHECK(*above.p == alone);
  CHECK(above.summary.mean == Approx(1.00 - 0.45));
  CHECK(above.standing == Standing::better);
  table.table.columns.erase(table.table.columns.begin());
  CHECK(*verdicts_of(table).cells.at("eval_loss_above_floor")[1].p == alone);
  // What is not the same difference has not its test.
  table.table.columns.insert(table.table.columns.begin(),
                             {ColumnKind::metric, "Eval loss", "eval_loss"});
  for (store::RunSummary& run : table.rows[1].runs) run.entropy_floor = 0.40;
  const Verdicts differ = verdicts_of(table);
  CHECK(*cells_of(differ)[1].p == alone);
  CHECK(differ.cells.at("eval_loss_above_floor")[1].standing == Standing::not_tested);
  // Where texts may differ it is a question of its own, whatever the runs that are shown say.
  for (const double floor : {0.45, 0.40}) {
    for (store::RunSummary& run : table.rows[1].runs) run.entropy_floor = floor;
    for (const char* what : {"data", "evaluation"}) {
      table.table.must_be_equal = {what};
      const Verdicts verdicts = verdicts_of(table);
      CHECK(*cells_of(verdicts)[1].p == Approx(2 * alone));
      CHECK(*verdicts.cells.at("eval_loss_above_floor")[1].p > alone);
    }
  }
}

TEST_CASE("a validation loss is shown and not tested", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const double alone = *cells_of(verdicts_of(table))[1].p;
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs)
      run.metrics["validation_loss"] = run.metrics["eval_loss"];
  table.table.columns.push_back({ColumnKind::metric, "Validation loss", "validation_loss"});
  const Verdicts verdicts = verdicts_of(table);
  const Cell& cell = verdicts.cells.at("validation_loss")[1];
  CHECK(cell.standing == Standing::not_tested);
  CHECK_FALSE(cell.p);
  CHECK_FALSE(cell.best);
  CHECK(cell.summary.interval);
  CHECK(*cells_of(verdicts)[1].p == alone);
}

TEST_CASE("what a table declares counts as tested, whatever comes of it", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const auto p_of_canon = [&] { return *cells_of(verdicts_of(table))[1].p; };
  const double alone = p_of_canon();
  for (const char* name : {"a", "b", "c"}) {
    AblationRow hidden;
    hidden.spec.config = hidden.spec.name = name;
    table.rows.push_back(hidden);
  }
  CHECK(p_of_canon() == Approx(5 * alone));  // four rows, and which one is the best
  for (AblationRow& row : table.rows)
    if (!row.completed()) row.filtered_out = 5;
  CHECK(p_of_canon() == Approx(5 * alone));

  table.rows.resize(3);
  table.rows[2] = row_of("other", {1.02, 1.09, 1.23, 1.01, 1.18}, 5);
  const double with_other = p_of_canon();
  CHECK(with_other == Approx(3 * alone));
  const std::vector<std::function<void(AblationRow&)>> ways = {
      [](AblationRow& row) { row.violations = {"1 of its 6 seeds was stopped"}; },
      [](AblationRow& row) { row.runs[2].metrics["eval_loss"] = INFINITY; },
      [](AblationRow& row) { row.runs[2].metrics.erase("eval_loss"); },
      [](AblationRow& row) { row.runs.resize(1); },
      [](AblationRow& row) { row.planned_seeds = 0, row.runs.clear(); }};
  const AblationRow whole = table.rows[2];
  for (size_t i = 0; i < ways.size(); ++i) {
    CAPTURE(i);
    table.rows[2] = whole;
    ways[i](table.rows[2]);
    CHECK(cells_of(verdicts_of(table))[2].standing != Standing::tie);
    CHECK(p_of_canon() == Approx(with_other));
  }
}

TEST_CASE("a row is the best only of all rows that the table declares", "[verdicts]") {
  // The rival's mean is nearly as good, and its seeds say little of it.
  const Losses close = {0.80, 1.35, 0.90, 1.12, 0.85};
  const Losses third = {0.97, 1.075, 1.165, 1.02, 1.125};
  Ablation table = table_of({row_of("llama", baseline, 5),
                             row_of("canon", better, 5),
                             row_of("third", third, 5),
                             row_of("rival", close, 5)});
  const std::vector<Cell> whole = cells_of(verdicts_of(table));
  CHECK(whole[1].standing == Standing::better);
  CHECK(*whole[1].best_p > 0.05);
  CHECK_FALSE(whole[1].best);
  const std::vector<std::function<void(AblationRow&)>> ways = {
      [](AblationRow& row) { row.violations = {"1 of its 6 seeds was stopped"}; },
      [](AblationRow& row) { row.runs[2].metrics["eval_loss"] = INFINITY; },
      [](AblationRow& row) { row.runs[2].metrics.erase("eval_loss"); },
      [](AblationRow& row) { row.runs.resize(1); },
      [](AblationRow& row) { row.planned_seeds = 0, row.runs.clear(); }};
  for (size_t i = 0; i < ways.size(); ++i) {
    CAPTURE(i);
    Ablation less = table;
    ways[i](less.rows[3]);
    const std::vector<Cell> cells = cells_of(verdicts_of(less));
    CHECK_FALSE(cells[1].best);
    CHECK_FALSE(cells[1].best_p);
    // Nor has another row the share of the error that this test does not use.
    for (const size_t row : {1, 2}) CHECK(*cells[row].p >= *whole[row].p);
  }
  // Of two rows that the table declares, neither is the best while one is not there.
  table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  AblationRow missing;
  missing.spec.config = "missing";
  table.rows.push_back(missing);
  CHECK(cells_of(verdicts_of(table))[1].standing == Standing::better);
  CHECK_FALSE(cells_of(verdicts_of(table))[1].best);
}

TEST_CASE("columns and claims count that a view of the table does not test", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const auto p_of_canon = [&] { return *cells_of(verdicts_of(table))[1].p; };
  const double alone = p_of_canon();
  table.table.columns.push_back({ColumnKind::metric, "Train loss", "train_loss"});
  CHECK(p_of_canon() == Approx(2 * alone));  // no run has one
  table.table.columns.pop_back();
  // Not those that are never tested.
  for (const char* metric : {"validation_loss", "parameters", "peak_memory_bytes"})
    table.table.columns.push_back({ColumnKind::metric, metric, metric});
  CHECK(p_of_canon() == Approx(alone));
  table.table.claims.assign(8, below("canon", "llama"));
  const double with_claims = p_of_canon();
  CHECK(with_claims == Approx(2 * alone));
  table.table.claims_not_judged = std::move(table.table.claims);
  table.table.claims.clear();
  CHECK(p_of_canon() == Approx(with_claims));
  // Where rows may be of several profiles, it does not matter of which the first one shown is.
  table.table.claims_not_judged[0].profile = "another";
  CHECK(claims_to_test(table) == 8);
  table.table.must_be_equal = {"profile"};
  CHECK(claims_to_test(table) == 7);
}

TEST_CASE("a claim is about runs of its profile, whichever row stands first", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  table.table.claims = {below("canon", "llama")};
  for (AblationRow& row : table.rows) row.run->profile = "full";
  CHECK(verdicts_of(table).claims[0].verdict == Verdict::holds);
  table.profile = "quick";  // of a row before these
  CHECK(verdicts_of(table).claims[0].verdict == Verdict::holds);
  table.profile = "full";
  table.rows[1].run->profile = "quick";
  const JudgedClaim judged = verdicts_of(table).claims[0];
  CHECK(judged.verdict == Verdict::not_decidable);
  CHECK(contains(judged.reason, "it is about profile full, shown of canon is quick"));
}

TEST_CASE("a claim counts as tested where all claims wait for their rows", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  AblationRow other = row_of("other", better, 5);
  other.spec.config = "other";
  table.rows.push_back(other);
  table.table.claims = {below("other", "llama")};
  const double with_all = *cells_of(verdicts_of(table))[1].p;
  table.rows[2].violations = {"it was hidden"};
  CHECK(*cells_of(verdicts_of(table))[1].p >= with_all);
}

TEST_CASE("a claim about the model alone is no test", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  for (AblationRow& row : table.rows)
    for (store::RunSummary& run : row.runs) run.parameters = 1000;
  ClaimSpec claim;
  claim.config = "canon";
  claim.score = results::parameters_name;
  claim.at_most = 2000;
  table.table.claims = {claim};
  const Verdicts verdicts = verdicts_of(table);
  CHECK(verdicts.claims[0].verdict == Verdict::holds);
  CHECK_FALSE(verdicts.claims[0].p);
  CHECK(*cells_of(verdicts)[1].p == Approx(cells_of(verdicts)[1].difference->p / 0.9));
}

}  // namespace
}  // namespace forge::tables
