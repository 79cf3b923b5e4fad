#include "core/results/tables/verdicts.h"

#include <cmath>
#include <iostream>

#include "core/base/random.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using tests::contains;

/// The losses of a row, of seeds from 1 on.
using Losses = std::vector<double>;

AblationRow row_of(const std::string& config, const Losses& losses, size_t planned) {
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

/// Rows llama, the baseline, and the others, with a column of eval_loss.
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

TEST_CASE("without a plan every number of seeds is a look", "[verdicts]") {
  const Ablation table = table_of({row_of("llama", baseline, 0), row_of("canon", better, 5)});
  const Cell cell = cells_of(verdicts_of(table))[1];
  CHECK(*cell.p == Approx(cell.difference->p * 5 * 4));
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
  CHECK(*cell.p == Approx(std::min(1.0, cell.difference->p * 3 / 0.05)));
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

TEST_CASE("other runs of the same seeds count as tables that could have been shown", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const double alone = *cells_of(verdicts_of(table))[1].p;
  table.rows[1].other_sets = 3;
  CHECK(*cells_of(verdicts_of(table))[1].p == Approx(std::min(1.0, 4 * alone)));
}

TEST_CASE("seeds that are added to a plan that was carried out need a clearer difference",
          "[verdicts]") {
  const Ablation table = table_of({row_of("llama", baseline, 3), row_of("canon", better, 5)});
  const Cell cell = cells_of(verdicts_of(table))[1];
  // Two runs beyond the plan: the second look of those after it.
  CHECK(*cell.p == Approx(std::min(1.0, cell.difference->p * 2 * 3 / 0.05)));
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
  // Of another text it is a question of its own.
  table.table.columns.insert(table.table.columns.begin(),
                             {ColumnKind::metric, "Eval loss", "eval_loss"});
  for (store::RunSummary& run : table.rows[1].runs) run.entropy_floor = 0.40;
  CHECK(*verdicts_of(table).cells.at("eval_loss_above_floor")[1].p > alone);
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

TEST_CASE("rows that are declared count as tested, whatever hides them", "[verdicts]") {
  Ablation table = table_of({row_of("llama", baseline, 5), row_of("canon", better, 5)});
  const double alone = *cells_of(verdicts_of(table))[1].p;
  for (const char* name : {"a", "b", "c"}) {
    AblationRow hidden;
    hidden.spec.config = hidden.spec.name = name;
    table.rows.push_back(hidden);
  }
  CHECK(*cells_of(verdicts_of(table))[1].p == Approx(4 * alone));  // rows without runs
  for (AblationRow& row : table.rows)
    if (!row.completed()) row.filtered_out = 5;
  CHECK(*cells_of(verdicts_of(table))[1].p == Approx(4 * alone));
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

// How often tables of equal rows call anything real, and how often they find what is there.

/// A table that grows by a seed in every row at a time.
struct Scenario {
  int rows = 4;            ///< beside the baseline
  int columns = 1;         ///< losses, with half of their variance in common
  int claims = 0;          ///< that a row is below the baseline, or another row
  size_t seeds = 5;        ///< at the last look
  size_t planned = 5;      ///< 0: not planned
  size_t first_look = 5;   ///< number of seeds at which one begins to look
  bool same_seeds = true;  ///< else each row has seeds of its own
  size_t few = 0;          ///< seeds of every other row, planned so; 0: as many as the others
  double effect = 0;       ///< by which the last row is lower, in standard deviations
  /// Rows of text in the evaluation, the same for all runs, on which models of equal quality differ
  /// so much that their mean differs by one standard deviation of the seeds; 0: endless many.
  size_t evaluation_rows = 0;
  bool knows_rows = true;  ///< whether the losses of these rows are reported
};

double normal(RandomStream& random) { return normal_quantile(open_uniform(random.next_u32())); }

/// All runs of the scenario's rows.
std::vector<AblationRow> rows_of(const Scenario& scenario, RandomStream& random) {
  std::vector<double> common(scenario.seeds);
  for (double& each : common) each = normal(random);
  std::vector<AblationRow> rows;
  for (int i = 0; i <= scenario.rows; ++i) {
    const bool has_few = scenario.few > 0 && i % 2 == 1;
    const size_t n = has_few ? scenario.few : scenario.seeds;
    AblationRow row;
    double of_text = 0;
    for (size_t k = 0; k < scenario.evaluation_rows; ++k) {
      const double loss = std::sqrt(static_cast<double>(scenario.evaluation_rows)) * normal(random);
      of_text += loss / static_cast<double>(scenario.evaluation_rows);
      if (!scenario.knows_rows) continue;
      row.evaluation_rows.losses.push_back(loss);
      row.evaluation_rows.tokens.push_back(512);
    }
    row.spec.config = row.spec.name = "row_" + std::to_string(i);
    row.planned_seeds = has_few ? scenario.few : scenario.planned;
    for (size_t k = 0; k < n; ++k) {
      store::RunSummary run;
      run.status = run::RunState::completed;
      run.seed = static_cast<int64_t>(scenario.same_seeds ? k : k + 1000 * static_cast<size_t>(i));
      const double shared = normal(random) + of_text + (scenario.same_seeds ? common[k] : 0);
      const double effect = i == scenario.rows ? scenario.effect : 0;
      for (int c = 0; c < scenario.columns; ++c) {
        const std::string metric = c == 0 ? "eval_loss" : "loss_" + std::to_string(c);
        run.metrics[metric] = 10 + shared + (c == 0 ? 0 : normal(random)) - effect;
      }
      row.runs.push_back(run);
    }
    row.run = row.runs.back();
    rows.push_back(row);
  }
  return rows;
}

/// Whether the table calls anything real at one of the looks; and at the last one, whether the last
/// row is better than the baseline by the primary metric.
struct Outcome {
  bool any = false;
  bool found = false;
};

bool calls_anything_real(const Verdicts& verdicts) {
  for (const auto& [metric, cells] : verdicts.cells)
    for (const Cell& cell : cells)
      if (cell.best || cell.standing == Standing::better || cell.standing == Standing::worse)
        return true;
  return std::any_of(verdicts.claims.begin(), verdicts.claims.end(), [](const JudgedClaim& claim) {
    return claim.verdict != Verdict::not_decidable;
  });
}

Outcome outcome_of(const Scenario& scenario, RandomStream& random) {
  const std::vector<AblationRow> all = rows_of(scenario, random);
  Ablation table = table_of(all);
  for (int c = 1; c < scenario.columns; ++c)
    table.table.columns.push_back({ColumnKind::metric, "Loss", "loss_" + std::to_string(c)});
  for (int c = 0; c < scenario.claims; ++c) {
    const std::string own = "row_" + std::to_string(1 + c % scenario.rows);
    const std::string other =
        "row_" + std::to_string(c < scenario.rows ? 0 : (c + 2) % scenario.rows);
    if (own != other) table.table.claims.push_back(below(own, other));
  }
  Outcome outcome;
  for (size_t n = scenario.first_look; n <= scenario.seeds; ++n) {
    for (size_t i = 0; i < all.size(); ++i) {
      table.rows[i].runs = all[i].runs;
      if (table.rows[i].runs.size() > n) table.rows[i].runs.resize(n);
    }
    const Verdicts verdicts = verdicts_of(table);
    outcome.any = outcome.any || calls_anything_real(verdicts);
    outcome.found = cells_of(verdicts).back().standing == Standing::better;
  }
  return outcome;
}

struct Named {
  const char* name;
  Scenario scenario;
};

TEST_CASE("at most one table of equal rows in twenty calls anything real",
          "[verdicts][simulation]") {
  const int tables = simulated_tables(300);
  const std::vector<Named> scenarios = {
      {"8 rows, 3 seeds", {8, 1, 0, 3, 3, 3}},
      {"8 rows, 3 columns, 10 claims, 3 seeds", {8, 3, 10, 3, 3, 3}},
      {"8 rows, 6 columns, 10 claims, 5 seeds", {8, 6, 10, 5, 5, 5}},
      {"4 rows, 6 columns, 10 claims, 10 seeds, each row its own", {4, 6, 10, 10, 10, 10, false}},
      {"4 rows, 3 columns, 10 claims, 40 seeds", {4, 3, 10, 40, 40, 40}},
      {"4 rows of 2 and 10 seeds, 3 columns, 10 claims", {4, 3, 10, 10, 10, 10, false, 2}},
      {"4 rows, 10 claims, 5 seeds planned, looks at 2 to 5", {4, 1, 10, 5, 5, 2}},
      {"4 rows, 10 claims, 5 seeds planned, looks at 2 to 12", {4, 1, 10, 12, 5, 2}},
      {"4 rows, 3 columns, not planned, looks at 2 to 12", {4, 3, 0, 12, 0, 2}},
      {"2 rows, not planned, looks at 2 to 20", {2, 1, 2, 20, 0, 2}}};
  for (const auto& [name, scenario] : scenarios) {
    RandomStream random(simulation_seed(), stream_number(name));
    int wrong = 0;
    for (int i = 0; i < tables; ++i) wrong += outcome_of(scenario, random).any;
    const double share = wrong / double(tables);
    CAPTURE(name, share, simulation_seed());
    std::cout << "equal rows, " << name << ": " << share << " of " << tables
              << " tables call something real (FORGE_TEST_SEED=" << simulation_seed() << ")\n";
    CHECK(share <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables));
  }
}

TEST_CASE("what other rows of text would say is part of a difference", "[verdicts][simulation]") {
  const int tables = simulated_tables(300);
  const auto share = [&](Scenario scenario) {
    RandomStream random(simulation_seed(), stream_number("rows of text"));
    int wrong = 0;
    for (int i = 0; i < tables; ++i) wrong += outcome_of(scenario, random).any;
    return wrong / double(tables);
  };
  Scenario scenario{4, 1, 3, 5, 5, 5};
  scenario.evaluation_rows = 200;
  const double with_rows = share(scenario);
  scenario.knows_rows = false;
  const double without = share(scenario);
  std::cout << "equal rows, 5 seeds, evaluated on 200 rows of text: " << with_rows
            << " call something real, without the losses of these rows " << without << "\n";
  CHECK(with_rows <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables));
  CHECK(without > 2 * 0.05);
  scenario.knows_rows = true;
  for (const size_t few : {1, 2, 4}) {
    scenario.evaluation_rows = few;
    const double of_few = share(scenario);
    std::cout << "the same evaluated on " << few << " rows of text: " << of_few << "\n";
    CHECK(of_few <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables));
  }
}

double mean_of_losses(const Losses& losses) {
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(losses.size());
}

/// The losses of a row that is the best of `values` equally good ones, over five seeds each: chosen
/// by the mean of the seeds that are shown, or by those of two tuning seeds.
Losses best_of_equals(int values, bool is_tuned_apart, RandomStream& random) {
  Losses best;
  double best_mean = INFINITY;
  for (int value = 0; value < values; ++value) {
    Losses shown, tuning;
    for (int seed = 0; seed < 5; ++seed) shown.push_back(3 + 0.1 * normal(random));
    for (int seed = 0; seed < 2; ++seed) tuning.push_back(3 + 0.1 * normal(random));
    const double mean = mean_of_losses(is_tuned_apart ? tuning : shown);
    if (mean >= best_mean) continue;
    best_mean = mean;
    best = shown;
  }
  return best;
}

TEST_CASE("a value that is chosen with other seeds favours no row", "[verdicts][simulation]") {
  const int tables = simulated_tables(300);
  const auto share = [&](bool is_tuned_apart) {
    RandomStream random(simulation_seed(), stream_number("best of eight"));
    int wrong = 0;
    for (int i = 0; i < tables; ++i) {
      const Ablation table =
          table_of({row_of("llama", best_of_equals(1, false, random), 5),
                    row_of("canon", best_of_equals(8, is_tuned_apart, random), 5)});
      wrong += cells_of(verdicts_of(table))[1].standing != Standing::tie;
    }
    return wrong / double(tables);
  };
  const double apart = share(true), shown = share(false);
  std::cout << "equal rows, the best of 8 values against 1: " << apart
            << " differ with tuning seeds, " << shown << " if chosen with those that are shown\n";
  CHECK(apart <= 0.05 + 3 * std::sqrt(0.05 * 0.95 / tables));
  CHECK(shown > 1.5 * apart);
}

TEST_CASE("a difference is found as often as a plan promises", "[verdicts][simulation]") {
  const int tables = simulated_tables(200);
  struct Expected {
    const char* name;
    Scenario scenario;
    double at_least;
  };
  const std::vector<Expected> scenarios = {
      {"1 row, 5 seeds planned, effect 2.5", {1, 1, 0, 5, 5, 5, true, 0, 2.5}, 0.7},
      {"4 rows, 10 claims, 5 seeds planned, effect 4", {4, 1, 10, 5, 5, 5, true, 0, 4}, 0.6},
      {"4 rows, 10 claims, 10 seeds planned, effect 2.5",
       {4, 1, 10, 10, 10, 10, true, 0, 2.5},
       0.8},
      {"4 rows, 10 seeds, not planned, effect 4", {4, 1, 0, 10, 0, 10, true, 0, 4}, 0.7}};
  for (const auto& [name, scenario, at_least] : scenarios) {
    RandomStream random(simulation_seed(), stream_number(name));
    int found = 0;
    for (int i = 0; i < tables; ++i) found += outcome_of(scenario, random).found;
    const double share = found / double(tables);
    CAPTURE(name, share, simulation_seed());
    std::cout << name << ": found in " << share << " of " << tables << " tables\n";
    CHECK(share >= at_least);
  }
}

}  // namespace
}  // namespace forge::tables
