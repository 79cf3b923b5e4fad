#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/tables/best_of.h"
#include "core/results/tables/estimate.h"
#include "core/results/tables/expression.h"
#include "core/results/tables/provenance.h"
#include "core/results/tables/sheet.h"
#include "core/results/tables/table_design.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

/// A table of scores in which a row shows the best over three learning rates.
TableSpec scored_table() {
  TableSpec table = small_table();
  table.title = "Copy";
  table.columns = {{ColumnKind::model, "Model"},
                   {ColumnKind::varied, "Learning rate"},
                   {ColumnKind::metric, "Tokens", "token_accuracy"},
                   {ColumnKind::metric, "KL", "kl_divergence"},
                   {ColumnKind::metric, "Eval Loss", "eval_loss"}};
  table.must_be_equal.emplace_back("optimizer");
  table.best_of =
      BestOfSpec{"optimizer.lr", {5e-4, 1e-3, 2e-3}, "token_accuracy", Extreme::highest};
  return table;
}

/// Runs of a task; `day` tells one of the same config from another.
struct ScoredLab : Lab {
  static MadeRun with_rate(const std::string& config, int day, double lr) {
    MadeRun made = run(config, day);
    made.experiment.optimizer.lr = lr;
    return made;
  }
  void add(const std::string& config, int day, double lr, double accuracy, double loss = 1.5) {
    make_completed_run(runs,
                       with_rate(config, day, lr),
                       {loss, 4300, 1 << 30, {{"token_accuracy", {accuracy, 640}}}});
  }
  Ablation scored(const TableSpec& table = scored_table()) const {
    return build_ablation(table, read());
  }
};

/// A complete row, one that lacks a value and has a failed run, and one without runs.
struct MixedScoredLab : ScoredLab {
  MixedScoredLab() {
    add("llama", 10, 5e-4, 0.25);
    add("llama", 11, 1e-3, 0.9375);
    add("llama", 12, 2e-3, 0.5);
    add("canon_a", 10, 5e-4, 0.75);
    make_failed_run(runs, with_rate("canon_a", 11, 1e-3), 10, "out of memory");
  }
};

TEST_CASE("the best of the values that somebody left over is compared with nothing", "[report]") {
  const MixedScoredLab lab;
  std::vector<store::ConfiguredRun> shown, hidden;
  for (const store::ConfiguredRun& run : lab.read())
    (run.summary.id == "llama-11" ? hidden : shown).push_back(run);
  AblationOptions options;
  options.archived = hidden;
  const auto built = [&] { return build_ablation(scored_table(), shown, options); };
  const auto violations = [&] { return join(built().rows[0].violations, "; "); };
  const auto point = [&] { return to_json(built())["rows"][0]["best_of"]["points"][1]; };
  const std::string best_of_two = "the best of 2 of 3 values is no best: ";
  REQUIRE(violations() ==
          best_of_two + "runs with optimizer.lr 0.001 are archived (--archived shows all)");
  CHECK(contains(to_terminal(built(), {false, 200}), "llama cannot be compared: " + best_of_two));
  CHECK(contains(to_terminal(built(), {false, 200, true}), "0.001: archived, 0.002: 50.0 %"));
  CHECK(point()["status"] == "archived");
  CHECK_FALSE(point().contains("command"));
  // A command that runs them anew would train nothing.
  const std::string commands = join(missing_commands(built()), "\n");
  CHECK(contains(commands, "forge runs archive --restore llama-11"));
  CHECK_FALSE(contains(commands, "forge run llama"));

  std::swap(options.archived, options.filtered_out);
  REQUIRE(violations() == best_of_two + "--where leaves out runs with optimizer.lr 0.001");
  CHECK(point()["status"] == "left out");
  CHECK_FALSE(contains(join(missing_commands(built()), "\n"), "llama"));

  // One of several seeds is enough.
  MadeRun second = ScoredLab::with_rate("llama", 13, 1e-3);
  second.experiment.seed = 43;
  make_completed_run(lab.runs, second, {1.5, 4300, 1 << 30, {{"token_accuracy", {0.4, 640}}}});
  for (const store::ConfiguredRun& run : lab.read())
    if (run.summary.id == "llama-13") shown.push_back(run);
  REQUIRE(violations() == best_of_two + "--where leaves out runs with optimizer.lr 0.001");
  shown.pop_back();

  // Of another experiment, or by seeds that do not decide.
  options.filtered_out[0].summary.config = "canon_b";
  REQUIRE(violations() == best_of_two + "no run with optimizer.lr 0.001 is completed");
  CHECK(
      contains(join(missing_commands(built()), "\n"), "forge run llama --set optimizer.lr=0.001"));
  options.filtered_out = hidden;
  TableSpec tuned = scored_table();
  tuned.best_of->tuning_seeds = {7};
  CHECK(build_ablation(tuned, shown, options).rows[0].violations.empty());
}

/// Three seeds of each value, Canon-A better at all of them; the baseline lacks `lacking`.
struct LackingLab : ScoredLab {
  TableSpec table = scored_table();

  explicit LackingLab(double lacking) {
    table.rows.pop_back();
    table.columns.push_back({ColumnKind::difference, "D", "eval_loss"});
    table.must_be_equal = {"profile", "data"};
    table.best_of->by = "eval_loss";
    table.best_of->take = Extreme::lowest;
    ClaimSpec below, expression;
    below.config = "canon_a";
    below.below = "llama";
    expression.claim = "It pays";
    expression.holds = "eval_loss[canon_a] < eval_loss[llama]";
    expression.comparison = parse_comparison(expression.holds);
    expression.expression = difference_of(*expression.comparison);
    below.profile = expression.profile = "quick";
    table.claims = {below, expression};
    int day = 10;
    for (const double lr : table.best_of->values) {
      for (const char* config : {"llama", "canon_a"}) {
        if (config == std::string("llama") && lr == lacking) continue;
        for (const int seed : {1, 2, 3}) {
          MadeRun made = with_rate(config, day, lr);
          made.id += "-" + std::to_string(seed);
          made.experiment.seed = seed;
          made.planned_seeds = {1, 2, 3};
          make_completed_run(runs,
                             made,
                             {config[0] == 'l' ? 3.00112345 + lr + 0.01012345 * seed * seed
                                               : 2.00298765 + lr + 0.01087654 * seed,
                              4300,
                              1 << 30,
                              {{"token_accuracy", {0.5, 640}}}});
        }
      }
      ++day;
    }
  }
};

TEST_CASE("nothing is concluded of a row that lacks a value of best_of", "[report]") {
  const LackingLab whole(0);
  const Ablation compared = whole.scored(whole.table);
  CHECK(contains(to_latex(compared), "\\textbf"));
  for (const JudgedClaim& claim : judge_claims(compared)) CHECK(claim.verdict == Verdict::holds);

  const LackingLab lab(2e-3);
  const Ablation ablation = lab.scored(lab.table);
  const std::string reason =
      "llama cannot be compared: the best of 2 of 3 values is no best: no run with optimizer.lr "
      "0.002 is completed";
  for (const JudgedClaim& claim : judge_claims(ablation)) {
    CHECK(claim.verdict == Verdict::not_decidable);
    CHECK(claim.reason == reason);
  }
  CHECK(cells_of(ablation, "eval_loss")[1].standing == Standing::not_comparable);
  const auto row = to_json(ablation)["rows"][1]["statistics"]["eval_loss"];
  CHECK_FALSE(row.value("best", false));
  for (const std::string& text : {to_latex(ablation),
                                  to_markdown(ablation),
                                  to_terminal(ablation, {true, 200}),
                                  to_csv(ablation)}) {
    INFO(text);
    CHECK_FALSE(contains(text, "\\textbf"));
    CHECK_FALSE(contains(text, "**"));
    CHECK_FALSE(contains(text, "p 0"));
    CHECK(contains(text, "the best of 2 of 3"));
  }
}

TEST_CASE("a value of which seeds were stopped is no value that was tried", "[report]") {
  const LackingLab lab(0);
  MadeRun stopped = ScoredLab::with_rate("llama", 13, 2e-3);
  stopped.experiment.seed = 4;
  make_stopped_run(lab.runs, stopped, 10);
  CHECK(
      join(lab.scored(lab.table).rows[0].violations, "; ") ==
      "the best of 2 of 3 values is no best: seeds with optimizer.lr 0.002 failed or were stopped "
      "(complete them: 'forge runs resume')");
}

TEST_CASE("a value that lacks seeds which were planned with it is no value that was tried",
          "[report][hostile]") {
  const LackingLab lab(2e-3);
  for (const int seed : {1, 2}) {
    MadeRun made = ScoredLab::with_rate("llama", 20 + seed, 2e-3);
    made.experiment.seed = seed;
    made.planned_seeds = {1, 2, 3};
    make_completed_run(
        lab.runs, made, {3.1 + seed, 4300, 1 << 30, {{"token_accuracy", {0.5, 640}}}});
  }
  CHECK(contains(join(lab.scored(lab.table).rows[0].violations, "; "),
                 "the best of 2 of 3 values is no best: planned seeds with optimizer.lr 0.002 (3) "
                 "are not run"));
}

/// Whole but for 0.002, with which three seeds of the baseline diverged.
struct DivergedLab : LackingLab {
  DivergedLab() : LackingLab(2e-3) {
    for (const int seed : {1, 2, 3}) make_diverged_run(runs, diverging(seed), 10);
  }
  static MadeRun diverging(int seed) {
    MadeRun made = with_rate("llama", 20 + seed, 2e-3);
    made.id += "-" + std::to_string(seed);
    made.experiment.seed = seed;
    made.planned_seeds = {1, 2, 3};
    return made;
  }
};

TEST_CASE("a value that diverged was tried and is no best", "[report]") {
  const DivergedLab lab;
  const Ablation ablation = lab.scored(lab.table);
  const AblationRow& llama = ablation.rows[0];
  CHECK(join(llama.violations, "; ").empty());
  CHECK(llama.varied == 5e-4);
  CHECK(llama.runs.size() == 3);
  for (const JudgedClaim& claim : judge_claims(ablation)) CHECK(claim.verdict == Verdict::holds);
  CHECK(missing_commands(ablation).empty());
  CHECK(ablation.excluded.empty());
  const std::string note = "diverged with optimizer.lr 0.002 (3 of 3 seeds)";
  CHECK(contains(to_terminal(ablation, {false, 200}), note));
  CHECK(contains(to_terminal(ablation, {false, 200, true}), "0.002: diverged (3 of 3 seeds)"));
  CHECK(contains(to_markdown(ablation), note));
  CHECK(contains(to_markdown(ablation), "0.002: diverged (3 of 3 seeds)"));
  const auto point = to_json(ablation)["rows"][0]["best_of"]["points"][2];
  CHECK(point["status"] == "diverged");
  CHECK(point["diverged_seeds"] == 3);
  CHECK(point["figure"].is_null());
  CHECK_FALSE(point.contains("command"));
}

TEST_CASE("one seed that diverged decides of a value", "[report]") {
  LackingLab lab(0);
  MadeRun diverged = DivergedLab::diverging(4);
  diverged.experiment.optimizer.lr = 5e-4;  // the best of the others
  make_diverged_run(lab.runs, diverged, 10);
  const Ablation ablation = lab.scored(lab.table);
  CHECK(join(ablation.rows[0].violations, "; ").empty());
  CHECK(ablation.rows[0].varied == 1e-3);
  CHECK(contains(to_terminal(ablation, {false, 200, true}), "0.0005: diverged (1 of 4 seeds)"));
  CHECK(to_json(ablation)["rows"][0]["best_of"]["points"][0]["figure"].is_null());
}

TEST_CASE("a value of which runs failed otherwise is not tried", "[report]") {
  LackingLab lab(2e-3);
  make_failed_run(lab.runs, DivergedLab::diverging(1), 10, "out of memory");
  CHECK(join(lab.scored(lab.table).rows[0].violations, "; ") ==
        "the best of 2 of 3 values is no best: no run with optimizer.lr 0.002 is completed");
}

TEST_CASE("a value that diverged with other settings is not tried", "[report]") {
  LackingLab lab(2e-3);
  lab.table.must_be_equal = {"profile", "data"};
  MadeRun other = DivergedLab::diverging(1);
  other.experiment.optimizer.weight_decay = 7;
  make_diverged_run(lab.runs, other, 10);
  CHECK(contains(join(lab.scored(lab.table).rows[0].violations, "; "),
                 "no run with optimizer.lr 0.002 is completed"));
}

TEST_CASE("who hides runs that diverged hides nothing", "[report]") {
  const DivergedLab lab;
  std::vector<store::ConfiguredRun> shown;
  AblationOptions options;
  for (const store::ConfiguredRun& run : lab.read())
    (run.summary.diverged != 0 ? options.archived : shown).push_back(run);
  REQUIRE(options.archived.size() == 3);
  const auto check = [&] {
    const Ablation ablation = build_ablation(lab.table, shown, options);
    CHECK(join(ablation.rows[0].violations, "; ").empty());
    CHECK(missing_commands(ablation).empty());
    CHECK(contains(to_terminal(ablation, {false, 200}),
                   "diverged with optimizer.lr 0.002 (3 of 3 seeds, in runs that are archived or "
                   "left out)"));
  };
  check();
  std::swap(options.archived, options.filtered_out);
  check();

  // A completed run that somebody hides chooses, whatever became of another one.
  options.filtered_out[0].summary.status = run::RunState::completed;
  options.filtered_out[0].summary.diverged = 0;
  options.filtered_out[0].summary.metrics["eval_loss"] = 1;
  CHECK(contains(join(build_ablation(lab.table, shown, options).rows[0].violations, "; "),
                 "--where leaves out runs with optimizer.lr 0.002"));
}

TEST_CASE("seeds shown that diverged leave no sample", "[report]") {
  LackingLab lab(0);
  lab.table.best_of.reset();
  lab.table.must_be_equal = {"profile", "data", "optimizer"};
  lab.table.columns.erase(
      std::remove_if(lab.table.columns.begin(),
                     lab.table.columns.end(),
                     [](const ColumnSpec& column) { return column.kind == ColumnKind::varied; }),
      lab.table.columns.end());
  make_diverged_run(lab.runs, DivergedLab::diverging(4), 10);
  CHECK(contains(join(lab.scored(lab.table).rows[0].violations, "; "),
                 "1 of its 4 seeds diverged, and those that remain are no sample"));
}

TEST_CASE("the best of values of which a hidden seed diverged is no best", "[report]") {
  LackingLab lab(0);
  MadeRun diverged = DivergedLab::diverging(4);
  diverged.experiment.optimizer.lr = 5e-4;  // the best of the others
  make_diverged_run(lab.runs, diverged, 10);
  std::vector<store::ConfiguredRun> shown;
  AblationOptions options;
  for (const store::ConfiguredRun& run : lab.read())
    (run.summary.diverged != 0 ? options.archived : shown).push_back(run);
  const AblationRow row = build_ablation(lab.table, shown, options).rows[0];
  CHECK(row.varied == 5e-4);
  CHECK(join(row.violations, "; ") ==
        "the best of 2 of 3 values is no best: runs with optimizer.lr 0.0005, which it shows, "
        "diverged; 1 of its 4 seeds diverged, and those that remain are no sample");
}

TEST_CASE("a best beside a value that diverged is at no edge", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.25);
  lab.add("llama", 11, 1e-3, 0.5);
  make_diverged_run(lab.runs, ScoredLab::with_rate("llama", 12, 2e-3), 10);
  CHECK_FALSE(contains(to_terminal(lab.scored(), {false, 200}), "may lie beyond"));
  ScoredLab other;
  other.add("llama", 11, 1e-3, 0.5);
  make_diverged_run(other.runs, ScoredLab::with_rate("llama", 12, 2e-3), 10);
  make_failed_run(other.runs, ScoredLab::with_rate("llama", 10, 5e-4), 10, "out of memory");
  CHECK(contains(to_terminal(other.scored(), {false, 200}), "is the smallest of those completed"));
}

TEST_CASE("a row of which all values diverged shows none of them", "[report]") {
  ScoredLab lab;
  for (const int day : {10, 11, 12})
    make_diverged_run(lab.runs, ScoredLab::with_rate("llama", day, (day - 9) * 5e-4), 10);
  CHECK(state_text(lab.scored().rows[0]) == "diverged");

  // Of a value that was tuned with a seed that diverged others may look good.
  TableSpec table = scored_table();
  table.best_of->values = {5e-4, 1e-3};
  table.best_of->tuning_seeds = {901, 902};
  ScoredLab tuned;
  int day = 10;
  for (const double lr : {5e-4, 1e-3}) {
    for (const int seed : {901, 902, 1}) {
      MadeRun made = ScoredLab::with_rate("llama", day++, lr);
      made.experiment.seed = seed;
      if (seed == 902) {
        make_diverged_run(tuned.runs, made, 10);
      } else {
        make_completed_run(
            tuned.runs, made, {1.5, 4300, 1 << 30, {{"token_accuracy", {lr * 100, 640}}}});
      }
    }
  }
  CHECK(join(tuned.scored(table).rows[0].violations, "; ") ==
        "the best of 1 of 2 values is no best: runs with optimizer.lr 0.001, which it shows, "
        "diverged");
}

TEST_CASE("a grid does not go on beyond a value that diverged", "[report]") {
  ScoredLab lab;
  int day = 10;
  for (const double lr : {5e-4, 1e-3}) {
    lab.add("llama", day, lr, lr * 100);
    lab.add("canon_a", day++, lr, 0.5 + lr * 100);
  }
  make_diverged_run(lab.runs, ScoredLab::with_rate("llama", day++, 2e-3), 10);
  make_diverged_run(lab.runs, ScoredLab::with_rate("canon_a", day++, 2e-3), 10);
  TableSpec table = scored_table();
  table.best_of->extend = true;
  table.rows.pop_back();
  lab.add("llama", day++, 4e-3, 0.01);  // somebody made it all the same
  const Ablation ablation = lab.scored(table);
  CHECK(ablation.rows[0].is_comparable());
  CHECK(ablation.rows[1].is_comparable());
  CHECK(missing_commands(ablation).empty());
}

TEST_CASE("the command for a value that rows lack names the seeds of the others", "[report]") {
  const LackingLab lab(2e-3);
  AblationOptions options;
  options.current_config = [](const std::string& config, const std::string&, const std::string&) {
    return nlohmann::json(config::to_json(Lab::run(config, 1).experiment));
  };
  CHECK(missing_commands(build_ablation(lab.table, lab.read(), options)) ==
        std::vector<std::string>{
            "forge run llama --set optimizer.lr=0.002 --set profile=quick --seed 1,2,3"});
}

TEST_CASE("a row shows the best over the values of a key whatever is the newest", "[report]") {
  const MixedScoredLab lab;
  const Ablation ablation = lab.scored();
  const AblationRow& llama = ablation.rows[0];
  CHECK(llama.run->id == "llama-11");
  CHECK(llama.varied == 1e-3);
  REQUIRE(llama.points.size() == 3);
  CHECK(llama.points[2].run->id == "llama-12");
  CHECK(llama.is_comparable());
  CHECK(ablation.excluded.empty());
  CHECK(ablation.rows[1].run->id == "canon_a-10");
  CHECK(incomplete_choice(ablation.rows[1], scored_table()) ==
        "the best of 1 of 3 values is no best: no run with optimizer.lr 0.001, 0.002 is completed");
  CHECK_FALSE(ablation.rows[2].run.has_value());
  CHECK(ablation.setup[0].value == "quick");

  TableSpec lowest = scored_table();
  lowest.best_of->take = Extreme::lowest;
  CHECK(lab.scored(lowest).rows[0].run->id == "llama-10");
}

TEST_CASE("of equally good runs the first value is shown and no number is never best", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 2e-3, 1);
  lab.add("llama", 11, 1e-3, 1);
  lab.add("llama", 12, 5e-4, NAN);
  CHECK(lab.scored().rows[0].run->id == "llama-11");
  TableSpec by_loss = scored_table();
  by_loss.best_of->by = "eval_loss";
  by_loss.best_of->take = Extreme::lowest;
  lab.add("canon_a", 10, 5e-4, 1, 1.5);
  lab.add("canon_a", 11, 1e-3, 0, 1.25);
  lab.add("canon_a", 12, 2e-3, 1, NAN);
  CHECK(lab.scored(by_loss).rows[1].run->id == "canon_a-11");
}

TEST_CASE("a choice by rows of which nothing is reported flatters nobody", "[report]") {
  ScoredLab lab;
  const auto add =
      [&](const std::string& config, int day, double lr, double loss, std::optional<double> other) {
        MadeRun made = ScoredLab::with_rate(config, day, lr);
        made.experiment.train.validation_rows = 64;
        make_completed_run(lab.runs, made, {loss, 4300, 1 << 30, {}, other});
      };
  add("llama", 10, 5e-4, 1.25, 1.75);
  add("llama", 11, 1e-3, 1.50, 1.25);
  add("llama", 12, 2e-3, 1.0, std::nullopt);  // has none to be chosen by
  TableSpec table = scored_table();
  table.best_of->by = results::validation_loss_name;
  table.best_of->take = Extreme::lowest;
  const Ablation ablation = lab.scored(table);
  CHECK(ablation.rows[0].run->id == "llama-11");
  CHECK(ablation.rows[0].run->metric("validation_loss") == 1.25);
  REQUIRE(ablation.excluded.size() == 1);
  CHECK(ablation.excluded[0].reason ==
        "no validation_loss to choose it by: validation_rows in best_of holds out rows for it");
  // Another run of that value would have none either.
  for (const std::string& command : missing_commands(ablation))
    CHECK_FALSE(contains(command, "forge run llama"));
  const auto note = [](const Ablation& built) {
    return to_json(built)["setup"]["Best of"].get<std::string>();
  };
  CHECK_FALSE(contains(note(ablation), "flattered"));
  table.best_of->validation_rows = 64;
  CHECK(missing_commands(lab.scored(table)).at(0) ==
        "forge run canon_a canon_b --set train.validation_rows=64 --set optimizer.lr=0.0005 "
        "--set profile=quick");
  CHECK(scores_of(table) == std::vector<std::string>{"token_accuracy", "kl_divergence"});
  table.best_of->by = results::eval_loss_name;
  CHECK(contains(note(lab.scored(table)), "favours rows with many values"));
}

TEST_CASE("only runs with the rows that best_of declares are chosen from", "[report]") {
  ScoredLab lab;
  const auto add = [&](const std::string& config, int day, double lr, double loss, int rows) {
    MadeRun made = ScoredLab::with_rate(config, day, lr);
    made.experiment.train.validation_rows = rows;
    const std::optional<double> chosen_by = rows > 0 ? std::optional<double>(loss) : std::nullopt;
    make_completed_run(lab.runs, made, {loss, 4300, 1 << 30, {}, chosen_by});
  };
  TableSpec table = scored_table();
  table.best_of->by = results::validation_loss_name;
  table.best_of->take = Extreme::lowest;
  table.best_of->validation_rows = 64;
  // More rows have runs with 8 rows, which are newer, too.
  add("llama", 10, 1e-3, 1.5, 64);
  add("llama", 11, 2e-3, 1.0, 8);
  add("canon_a", 12, 1e-3, 1.0, 8);
  add("canon_b", 13, 1e-3, 1.0, 0);
  const Ablation ablation = lab.scored(table);
  CHECK(ablation.rows[0].run->id == "llama-10");
  CHECK(
      join(ablation.rows[0].violations, "; ") ==
      "the best of 1 of 3 values is no best: no run with optimizer.lr 0.0005, 0.002 is completed");
  CHECK_FALSE(ablation.rows[1].completed());
  CHECK_FALSE(ablation.rows[2].completed());
  std::string reasons;
  for (const ExcludedRuns& entry : ablation.excluded) reasons += entry.config + entry.reason + "\n";
  INFO(reasons);
  CHECK(contains(reasons, "llamatrain.validation_rows 8, "));
  CHECK(contains(reasons, "canon_btrain.validation_rows 0, "));
  // What the table asks for is counted.
  CHECK(missing_commands(ablation).at(1) ==
        "forge run canon_a canon_b --set train.validation_rows=64 --set optimizer.lr=0.001 --set "
        "profile=quick");
  add("canon_a", 14, 1e-3, 1.25, 64);
  CHECK(lab.scored(table).rows[1].run->id == "canon_a-14");
  // Also where the table does not ask for equal training.
  table.must_be_equal = {"profile"};
  const Ablation unequal = lab.scored(table);
  CHECK_FALSE(unequal.rows[2].run.has_value());
  CHECK(unequal.excluded.back().reason == "train.validation_rows 0, best_of asks for 64");
}

TEST_CASE("the value at the edge of those tried is marked in its own row", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.25);
  lab.add("llama", 11, 1e-3, 0.5);
  lab.add("canon_a", 10, 5e-4, 0.75);
  const std::string note =
      "the best optimizer.lr is the largest of those completed: a better one may lie beyond\n";
  const std::string text = to_terminal(lab.scored());
  INFO(text);
  CHECK(contains(text, note));  // 2e-3 was not tried
  CHECK_FALSE(contains(text, "is the smallest"));
  TableSpec without = scored_table();
  without.columns.erase(without.columns.begin() + 1);
  const std::string unmarked = to_terminal(lab.scored(without));
  INFO(unmarked);
  CHECK(contains(unmarked, "50.0 % [1] [2]"));
}

TEST_CASE("of each value the newest completed run counts and other values are left out",
          "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.75);
  lab.add("llama", 11, 5e-4, 0.5);
  lab.add("llama", 12, 7e-4, 1);
  const Ablation ablation = lab.scored();
  CHECK(ablation.rows[0].run->id == "llama-11");
  REQUIRE(ablation.excluded.size() == 2);
  CHECK(ablation.excluded[0].reason == "optimizer.lr 0.0007, not in best_of");
  CHECK(ablation.excluded[1].reason == "older than the run shown");
}

TEST_CASE("a row whose runs have no value of best_of is missing", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.75);
  MadeRun unlisted = ScoredLab::with_rate("canon_a", 11, 7e-4);
  make_completed_run(lab.runs, unlisted, {1.5, 4300, 1 << 30, {{"token_accuracy", {0.5, 640}}}});
  MadeRun no_score = ScoredLab::with_rate("canon_a", 12, 5e-4);
  no_score.experiment.seed += 1;
  make_completed_run(lab.runs, no_score, {1.5, 4300, 1 << 30});
  const Ablation ablation = lab.scored();
  CHECK_FALSE(ablation.rows[1].run.has_value());
  CHECK(state_text(ablation.rows[1]) == "missing");
  CHECK(ablation.rows[1].runs.empty());
  CHECK(ablation.excluded.size() == 2);
}

TEST_CASE("a config that does not name the key of best_of has its default", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 1e-3, 0.75);
  MadeRun two = ScoredLab::with_rate("llama", 11, 1e-3);
  two.experiment.train.gradient_slots = 2;
  make_completed_run(lab.runs, two, {1.5, 4300, 1 << 30, {{"token_accuracy", {0.5, 640}}}});
  TableSpec table = scored_table();
  table.best_of->key = "train.gradient_slots";
  table.best_of->values = {1, 2};
  const Ablation ablation = lab.scored(table);
  CHECK(ablation.rows[0].varied == 1);
  CHECK(ablation.rows[0].points[1].run->id == "llama-11");
  CHECK(ablation.rows[0].is_comparable());
  CHECK(missing_commands(ablation) ==
        std::vector<std::string>{
            "forge run canon_a canon_b --set train.gradient_slots=1 --set profile=quick",
            "forge run canon_a canon_b --set train.gradient_slots=2 --set profile=quick"});
}

TEST_CASE("what is not varied must still be equal", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.25);
  lab.add("llama", 11, 1e-3, 0.5);
  MadeRun other = ScoredLab::with_rate("llama", 12, 2e-3);
  other.experiment.optimizer.weight_decay = 0.5;
  make_completed_run(lab.runs, other, {1.5, 4300, 1 << 30, {{"token_accuracy", {1, 640}}}});
  lab.add("canon_a", 10, 5e-4, 0.25);
  const Ablation ablation = lab.scored();
  CHECK(ablation.rows[0].run->id == "llama-11");
  REQUIRE(ablation.excluded.size() == 1);
  CHECK(contains(ablation.excluded[0].reason, "optimizer.weight_decay 0.5"));
}

TEST_CASE("a row of which nothing is completed says how its newest run stands", "[report]") {
  ScoredLab lab;
  make_failed_run(lab.runs, ScoredLab::with_rate("llama", 11, 5e-4), 10, "out of memory");
  make_stopped_run(lab.runs, ScoredLab::with_rate("llama", 12, 1e-3), 10);
  make_failed_run(lab.runs, ScoredLab::with_rate("llama", 10, 2e-3), 10, "out of memory");
  const Ablation ablation = lab.scored();
  CHECK(state_text(ablation.rows[0]) == "stopped at 33 %");
}

TEST_CASE("every run that a table lacks is asked for by value", "[report]") {
  const MixedScoredLab lab;
  const Ablation ablation = lab.scored();
  CHECK(missing_commands(ablation) ==
        std::vector<std::string>{
            "forge run canon_b --set optimizer.lr=0.0005 --set profile=quick",
            "forge run canon_b --set optimizer.lr=0.001 --set profile=quick",
            "forge run canon_a canon_b --set optimizer.lr=0.002 --set profile=quick"});
  const std::string document = export_markdown("Copy", {ablation});
  CHECK(contains(document, "| canon_a | 42 | canon_a-10 |"));  // all that was chosen from
  CHECK(contains(document, "| llama | 42 | llama-12 |"));
  CHECK(contains(document, "\nforge run llama\nforge run canon_a\nforge compare --table small\n"));
}

TEST_CASE("scores stand in a table for people with what they lack", "[report]") {
  const MixedScoredLab lab;
  const std::string text = to_terminal(lab.scored());
  INFO(text);
  CHECK(contains(to_terminal(lab.scored(), {false, 500}),
                 " \u00b7 best of optimizer.lr 0.0005, 0.001, 0.002 by token_accuracy "
                 "with the seeds that are shown, which favours rows with noisy metrics \u00b7 one "
                 "seed per row: a difference may be noise (run more with --seeds 3)\n"));
  CHECK(contains(text,
                 "\nModel     Learning rate  Tokens     KL  Eval Loss\n"
                 "Llama 4M          0.001  93.8 %  \u2014 [1]     1.5000\n"
                 "Canon-A      0.0005 [2]  75.0 %  \u2014 [1]     1.5000\n"
                 "Canon-B         missing       \u2014      \u2014          \u2014\n"));
  CHECK(contains(text, "\n[1] no kl_divergence in the run's last evaluation\n"));
  CHECK(contains(text, "[2] canon_a cannot be compared: the best of 1 of 3 values is no best: "));
  CHECK_FALSE(contains(text, "of those completed"));  // no other value was
  CHECK(contains(to_terminal(lab.scored(), {false, 100, true}),
                 "\nChosen from\n  Llama 4M: token_accuracy by optimizer.lr 0.0005: 25.0 %, 0.001: "
                 "93.8 %, 0.002: 50.0 %\n"));
  CHECK(contains(to_markdown(lab.scored()), "\nChosen from:\n\n- Llama 4M: token_accuracy by"));
  const std::string markdown = to_markdown(lab.scored());
  CHECK(contains(markdown, "| :--- | ---: | ---: | ---: | ---: |\n"));
  CHECK(contains(markdown, "| Llama 4M | 0.001 | 93.8 % | \u2014 [1] | 1.5000 |\n"));
}

TEST_CASE("the format of a column goes before the name of its score", "[report]") {
  const MixedScoredLab lab;
  TableSpec table = scored_table();
  table.columns[2].format = ScoreFormat::decimals;
  CHECK(contains(to_terminal(lab.scored(table)), "  0.9375  "));
}

TEST_CASE("scores and the runs that were chosen from stand in tables for machines", "[report]") {
  const MixedScoredLab lab;
  const auto json = to_json(lab.scored());
  CHECK(json["best_of"]["key"] == "optimizer.lr");
  CHECK(json["best_of"]["take"] == "highest");
  const auto& llama = json["rows"][0];
  CHECK(llama["scores"]["token_accuracy"]["value"] == 0.9375);
  CHECK(llama["scores"]["token_accuracy"]["count"] == 640);
  CHECK(llama["best_of"]["value"] == 1e-3);
  CHECK(llama["best_of"]["points"][2]["figure"] == 0.5);
  CHECK(llama["best_of"]["points"][2]["run_id"] == "llama-12");
  const auto& canon_a = json["rows"][1]["best_of"]["points"];
  CHECK(canon_a[1]["status"] == "failed");
  CHECK(canon_a[1]["figure"].is_null());
  CHECK(canon_a[2]["status"] == "missing");
  CHECK(canon_a[2]["command"] == "forge run canon_a --set optimizer.lr=0.002 --set profile=quick");
  CHECK(json["rows"][2]["scores"].empty());

  const std::vector<std::string> lines = split(to_csv(lab.scored()), '\n');
  CHECK(contains(lines[0],
                 ",memory_change,micro_batch_size,disturbance,changed_inputs,token_accuracy,token_"
                 "accuracy_count,"
                 "kl_divergence,kl_divergence_count,seeds,eval_loss_sd,"));
  CHECK(contains(lines[0], ",breaks,differs_from_config,optimizer.lr\r"));
  CHECK(contains(lines[1], ",0.9375,640,,,1,"));
  CHECK(contains(lines[1], ",,0.001\r"));
  CHECK(contains(lines[3],
                 "canon_b,Canon-B,B,\"on queries, keys and values\",missing,,,,,,,,,,,,,,,,,,0,"));
}

TEST_CASE("a claim on the best of several runs waits for all of them", "[report]") {
  MixedScoredLab lab;
  TableSpec table = scored_table();
  ClaimSpec claim;
  claim.config = "llama";
  claim.at_least = 0.9;
  claim.score = "token_accuracy";
  claim.profile = "quick";
  table.claims = {claim};
  CHECK(contains(verdict_line(judge_claims(lab.scored(table))[0]), "one seed, for it: "));
  table.claims[0].config = "canon_a";
  CHECK(contains(verdict_line(judge_claims(lab.scored(table))[0]),
                 "not decidable: Canon-A has token_accuracy of at least 90 % (canon_a cannot be "
                 "compared: the best of 1 of 3 values is no best: no run with optimizer.lr 0.001, "
                 "0.002 is completed)"));
}

/// Runs of a model tuned by validation loss with seed 901, and shown with seeds 1 and 2.
struct TunedLab : ScoredLab {
  void add(const std::string& config, int day, double lr, int seed, double loss) {
    MadeRun made = with_rate(config, day, lr);
    made.id += "-" + std::to_string(seed);
    made.experiment.seed = seed;
    made.experiment.train.validation_rows = 64;
    make_completed_run(runs, made, {loss, 4300, 1 << 30, {}, loss + 0.25});
  }
  static TableSpec table() {
    TableSpec table = scored_table();
    table.best_of = BestOfSpec{"optimizer.lr", {5e-4, 1e-3, 2e-3}, "validation_loss"};
    table.best_of->take = Extreme::lowest;
    table.best_of->validation_rows = 64;
    table.best_of->tuning_seeds = {901};
    return table;
  }
};

TEST_CASE("a value is chosen with tuning seeds and shown with others", "[report]") {
  TunedLab lab;
  lab.add("llama", 9, 5e-4, 901, 1.5);
  lab.add("llama", 10, 1e-3, 901, 1.25);
  lab.add("llama", 11, 2e-3, 901, 1.75);
  lab.add("llama", 12, 1e-3, 1, 1.5);
  lab.add("llama", 12, 1e-3, 2, 1.625);
  lab.add("llama", 13, 2e-3, 1, 0.5);  // lower, but its value is not the one chosen
  lab.add("canon_a", 12, 1e-3, 1, 0.5);
  const Ablation ablation = lab.scored(TunedLab::table());
  const AblationRow& llama = ablation.rows[0];
  CHECK(llama.varied == 1e-3);
  REQUIRE(llama.runs.size() == 2);
  CHECK(llama.runs[0].seed == 1);
  CHECK(mean_of(llama.runs, "eval_loss").value() == Approx(1.5625));
  CHECK(llama.points[2].runs.size() == 1);
  // A row that was not tuned shows nothing, whatever its other runs found.
  CHECK_FALSE(ablation.rows[1].completed());
  std::string reasons;
  for (const ExcludedRuns& entry : ablation.excluded) reasons += entry.reason + "\n";
  CHECK(contains(reasons, "optimizer.lr 0.002 is not the value chosen"));
  const auto json = to_json(ablation);
  CHECK(contains(json["setup"]["Best of"].get<std::string>(),
                 "with tuning seeds (901) that the rows do not show"));
  // What is lacking depends on what is chosen: one command makes all of it.
  CHECK(missing_commands(ablation) ==
        std::vector<std::string>{"forge run --table small --set profile=quick"});
}

TEST_CASE("a value is chosen when all values have all of the declared tuning seeds", "[report]") {
  TunedLab lab;
  TableSpec table = TunedLab::table();
  table.best_of->tuning_seeds = {901, 902};
  int day = 1;
  const auto tune = [&](const std::vector<int>& seeds, const std::vector<double>& values) {
    for (const double lr : values)
      for (const int seed : seeds) lab.add("llama", day++, lr, seed, 1.5 + lr + 0.01 * (seed % 7));
  };
  tune({901}, {5e-4, 1e-3, 2e-3});
  tune({1, 2}, {5e-4, 1e-3, 2e-3});  // the row's, known before it is tuned
  const auto violations = [&] { return join(lab.scored(table).rows[0].violations, "; "); };
  const std::string command = " are not run (make them: 'forge run --table small')";
  CHECK(violations() ==
        "the best of 0 of 3 values is no best: tuning seeds with optimizer.lr 0.0005 (902), 0.001 "
        "(902), 0.002 (902)" +
            command);
  tune({902}, {1e-3});
  CHECK(violations() ==
        "the best of 1 of 3 values is no best: tuning seeds with optimizer.lr 0.0005 (902), 0.002 "
        "(902)" +
            command);
  CHECK(missing_commands(lab.scored(table)) ==
        std::vector<std::string>{"forge run --table small --set profile=quick"});
  tune({902}, {5e-4});
  MadeRun diverged = ScoredLab::with_rate("llama", day++, 2e-3);
  diverged.experiment.seed = 902;
  diverged.experiment.train.validation_rows = 64;
  make_diverged_run(lab.runs, diverged, 10);
  table.rows.resize(1);
  CHECK(violations() == "");
  CHECK(missing_commands(lab.scored(table)).empty());
  table.best_of->tuning_seeds.push_back(903);
  CHECK(contains(violations(), "0.0005 (903), 0.001 (903) are not run"));

  // The same holds for values by which the grid goes on, run or not.
  table.best_of->tuning_seeds = {901, 902};
  table.best_of->extend = true;
  CHECK(violations() ==
        "the best of 3 of 4 values is no best: no run with optimizer.lr 0.00025 is "
        "completed");
  tune({901, 1, 2}, {2.5e-4});
  CHECK(violations() ==
        "the best of 3 of 5 values is no best: no run with optimizer.lr 0.000125 "
        "is completed, tuning seeds with optimizer.lr 0.00025 (902)" +
            command);
}

TEST_CASE("a value is chosen by runs with the settings of the row's", "[report]") {
  const auto violations = [](double eps, int threads) {
    TunedLab lab;
    for (const double lr : {5e-4, 1e-3, 2e-3}) {
      const int day = static_cast<int>(1 + 1e4 * lr);
      lab.add("llama", day, lr, 1, 1.5 + lr);
      lab.add("llama", day, lr, 2, 1.6 + lr);
      MadeRun tuning = ScoredLab::with_rate("llama", day, lr);
      tuning.id += "-901";
      tuning.experiment.seed = 901;
      tuning.experiment.train.validation_rows = 64;
      tuning.experiment.optimizer.eps = eps;
      tuning.threads = threads;
      make_completed_run(lab.runs, tuning, {1.5, 4300, 1 << 30, {}, 1.5 + lr});
    }
    TableSpec table = TunedLab::table();
    table.must_be_equal = {"profile", "data"};
    return join(lab.scored(table).rows[0].violations, "; ");
  };
  const MadeRun usual = Lab::run("llama", 1);
  const double eps = usual.experiment.optimizer.eps;
  CHECK(violations(eps, usual.threads) == "");
  CHECK(violations(eps, usual.threads + 1) == "");  // another machine
  CHECK(violations(2 * eps, usual.threads) ==
        "its value was chosen by runs of other settings than its own: llama-21-901 "
        "(optimizer.eps)");
}

TEST_CASE("the values of a row are compared by runs of one setting", "[report][hostile]") {
  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.25);
  lab.add("llama", 11, 1e-3, 0.5);
  lab.add("llama", 12, 2e-3, 0.4);
  // Later, and better whatever the rate.
  MadeRun other = ScoredLab::with_rate("llama", 13, 5e-4);
  other.experiment.optimizer.eps *= 2;
  make_completed_run(lab.runs, other, {1.5, 4300, 1 << 30, {{"token_accuracy", {0.75, 640}}}});
  TableSpec table = scored_table();
  table.must_be_equal = {"profile", "data"};
  const Ablation ablation = lab.scored(table);
  const AblationRow& row = ablation.rows[0];
  CHECK(row.varied == 1e-3);
  REQUIRE(row.points.size() == 3);
  CHECK(row.points[0].run->id == "llama-10");
  const auto left_out = std::find_if(
      ablation.excluded.begin(), ablation.excluded.end(), [](const ExcludedRuns& runs) {
        return contains(runs.reason, "optimizer.eps");
      });
  CHECK(left_out != ablation.excluded.end());
}

TEST_CASE("values of other settings than the row's are not tried yet", "[report][hostile]") {
  ScoredLab lab;
  const auto add = [&](int day, double lr, double eps, double accuracy) {
    MadeRun run = ScoredLab::with_rate("llama", day, lr);
    run.experiment.optimizer.eps = eps;
    make_completed_run(lab.runs, run, {1.5, 4300, 1 << 30, {{"token_accuracy", {accuracy, 640}}}});
  };
  // One value with settings that would be the best whatever its rate.
  add(10, 5e-4, 1e-8, 0.25);
  add(11, 1e-3, 1e-8, 0.5);
  add(12, 2e-3, 1e-4, 0.9);
  TableSpec table = scored_table();
  table.must_be_equal = {"profile", "data"};
  const auto completed = [&] {
    std::vector<bool> values;
    for (const SweepPoint& point : lab.scored(table).rows[0].points)
      values.push_back(point.completed());
    return values;
  };
  CHECK(completed() == std::vector<bool>{true, true, false});
  CHECK(lab.scored(table).rows[0].varied == 1e-3);
  add(13, 2e-3, 1e-8, 0.1);
  CHECK(completed() == std::vector<bool>{true, true, true});
  CHECK(lab.scored(table).rows[0].varied == 1e-3);
  // As many values of each: the newer ones.
  add(14, 5e-4, 1e-4, 0.3);
  add(15, 1e-3, 1e-4, 0.2);
  CHECK(completed() == std::vector<bool>{true, true, true});
  CHECK(lab.scored(table).rows[0].varied == 2e-3);
}

TEST_CASE("a length that a token count gives is one of the values that are tried", "[report]") {
  ScoredLab lab;
  TableSpec table = scored_table();
  table.best_of->key = "train.max_steps";
  table.best_of->values = {20, 40};
  const auto add = [&](int day, int64_t steps, int64_t tokens) {
    MadeRun run = ScoredLab::with_rate("llama", day, 1e-3);
    run.experiment.train.max_steps = steps;
    run.experiment.train.max_tokens = tokens;
    make_completed_run(lab.runs, run, {1.5, 4300, 1 << 30, {{"token_accuracy", {0.5, 640}}}});
  };
  add(10, 20, 20480);  // a plain run of the config
  add(11, 40, 0);      // what a sweep of lengths sets
  for (const SweepPoint& point : lab.scored(table).rows[0].points) CHECK(point.completed());
}

TEST_CASE("a setting that differs with each value of a row is no other setting", "[report]") {
  ScoredLab lab;
  int day = 10;
  for (const double lr : {5e-4, 1e-3, 2e-3}) {
    MadeRun run = ScoredLab::with_rate("llama", day, lr);
    run.experiment.optimizer.eps *= day++;  // as what forge derives from a value
    const double accuracy = lr == 1e-3 ? 0.5 : 0.25;
    make_completed_run(lab.runs, run, {1.5, 4300, 1 << 30, {{"token_accuracy", {accuracy, 640}}}});
  }
  TableSpec table = scored_table();
  table.must_be_equal = {"profile", "data"};
  const AblationRow row = lab.scored(table).rows[0];
  CHECK(row.varied == 1e-3);
  for (const SweepPoint& point : row.points) CHECK(point.completed());
}

TEST_CASE("rows by the key of best_of say that they show its tuning seeds", "[report]") {
  TunedLab lab;
  for (const int seed : {901, 1, 2}) lab.add("llama", 10, 1e-3, seed, 1.5 + 0.01 * (seed % 7));
  TableSpec table = TunedLab::table();
  group_by(table, "optimizer.lr");
  CHECK(setup_of(build_ablation(table, lab.read()), "Tuning seeds") ==
        "tuning seeds 901 among those shown");
  const auto error = [](const char* key) {
    TableSpec by_key = TunedLab::table();
    return error_of([&] { group_by(by_key, key); });
  };
  CHECK(contains(error("seed"), "cannot be divided by seed"));
  CHECK(contains(error("name"), "each config has its own"));
}

TEST_CASE("seeds that become tuning seeds when they are known are passed over", "[report]") {
  const auto violations = [](const std::vector<int64_t>& declared_then,
                             const std::function<void(TableSpec&)>& change = {}) {
    TableSpec table = TunedLab::table();
    table.best_of->values = {1e-3};
    table.best_of->tuning_seeds = declared_then;
    const std::map<std::string, std::string> recorded = {{table.name, recorded_design(table)}};
    Lab lab;
    for (const int64_t seed : {901, 1, 2}) {
      MadeRun made = ScoredLab::with_rate("llama", 12, 1e-3);
      made.id += "-" + std::to_string(seed);
      made.experiment.seed = static_cast<uint64_t>(seed);
      made.experiment.train.validation_rows = 64;
      made.planned_tables = recorded;
      const double loss = 3 + 0.01 * static_cast<double>(seed % 7);
      make_completed_run(lab.runs, made, {loss, 4300, 1 << 30, {}, loss});
    }
    table.best_of->tuning_seeds = {901};
    if (change) change(table);
    const Ablation ablation = build_ablation(table, lab.read());
    REQUIRE(ablation.rows[0].runs.size() == 2);
    return join(ablation.rows[0].violations, "; ");
  };
  CHECK(violations({901}) == "");
  CHECK(violations({901, 902}) == "");
  CHECK(violations({}) ==
        "its seeds may have been chosen: it was run with 1 tuning seed (901) before the table "
        "declared them: declare tuning seeds that were not run yet");
  CHECK(contains(violations({902}), "1 tuning seed (901) before the table declared them"));
  // What else the table has become since is another question.
  CHECK(violations({901}, [](TableSpec& table) { table.columns.pop_back(); }) == "");
  CHECK(contains(violations({901}, [](TableSpec& table) { table.name = "other"; }),
                 "1 tuning seed (901) before the table declared them"));
}

TEST_CASE("a grid goes on by its ratio as far as there are runs", "[report]") {
  BestOfSpec best_of{"optimizer.lr", {5e-4, 1e-3, 2e-3}, "eval_loss", Extreme::lowest};
  CHECK_FALSE(next_value(best_of, best_of.values, true).has_value());
  best_of.extend = true;
  CHECK(next_value(best_of, best_of.values, true) == 4e-3);
  CHECK(next_value(best_of, best_of.values, false) == 2.5e-4);
  CHECK(next_value(best_of, {5e-4, 1e-3, 2e-3, 4e-3}, true) == 8e-3);
  std::vector<double> grid = best_of.values;
  while (const auto next = next_value(best_of, grid, true)) grid.push_back(*next);
  CHECK(grid.size() == 3 + most_extensions);
  best_of.values = {3e-4, 1e-3};
  CHECK(next_value(best_of, best_of.values, true) == 3.33333e-3);
  best_of.values = {3e-3, 3.0000000000001e-3};  // rounded, the next one is none
  CHECK_FALSE(next_value(best_of, best_of.values, true).has_value());
  best_of = {"schedule.warmup_steps", {25, 50}, "eval_loss", Extreme::lowest};
  best_of.extend = true;
  CHECK(next_value(best_of, best_of.values, false) == 13);
  CHECK_FALSE(next_value(best_of, {1, 2}, false).has_value());
  best_of = {"schedule.lr_min_ratio", {0.5, 1}, "eval_loss", Extreme::lowest};
  best_of.extend = true;
  CHECK_FALSE(next_value(best_of, best_of.values, true).has_value());

  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.25);
  lab.add("llama", 11, 2e-3, 0.5);
  lab.add("llama", 12, 4e-3, 0.75);
  lab.add("llama", 13, 1.6e-2, 1);  // 8e-3 has no run: the grid ends before it
  TableSpec table = scored_table();
  table.best_of->extend = true;
  const Ablation ablation = lab.scored(table);
  // Its best is at the end: nobody has seen yet whether a better one lies beyond.
  CHECK(ablation.table.best_of->values == std::vector<double>{5e-4, 1e-3, 2e-3, 4e-3, 8e-3});
  CHECK(ablation.rows[0].varied == 4e-3);
  REQUIRE(ablation.rows[1].points.size() == 5);  // every row is tuned alike
  CHECK(ablation.rows[1].points[4].is_wanted);
  CHECK(join(ablation.rows[0].violations, "; ") ==
        "the best of 3 of 5 values is no best: no run with optimizer.lr 0.001, 0.008 is completed");
  lab.add("llama", 14, 8e-3, 0.5);
  lab.add("llama", 15, 1e-3, 0.4);
  // Another row may let it go on: who hides that one would choose where it ends.
  CHECK(join(lab.scored(table).rows[0].violations, "; ") ==
        "the grid may go on with canon_a; canon_b: not tuned to its end yet");
  table.rows.resize(1);
  CHECK(lab.scored(table).rows[0].is_comparable());

  // Who hides the runs at an end has tried them all the same.
  std::vector<store::ConfiguredRun> shown;
  AblationOptions options;
  for (const store::ConfiguredRun& run : lab.read())
    (run.summary.id == "llama-12" ? options.archived : shown).push_back(run);
  CHECK(join(build_ablation(table, shown, options).rows[0].violations, "; ") ==
        "the best of 3 of 4 values is no best: runs with optimizer.lr 0.004 are archived "
        "(--archived shows all)");
}

TEST_CASE("a value beyond the grid at which no row has its best is asked of nobody", "[report]") {
  ScoredLab lab;
  int day = 10;
  for (const double lr : {5e-4, 1e-3, 2e-3}) {
    lab.add("llama", day, lr, lr == 1e-3 ? 0.75 : 0.5);
    lab.add("canon_a", day++, lr, lr == 1e-3 ? 0.75 : 0.5);
  }
  lab.add("llama", day, 4e-3, 0.25);
  TableSpec table = scored_table();
  table.best_of->extend = true;
  table.rows.pop_back();
  const Ablation ablation = lab.scored(table);
  REQUIRE(ablation.rows[1].points.size() == 3);
  CHECK(ablation.rows[1].is_comparable());
  CHECK(missing_commands(ablation).empty());
  // Good as it may be: who tries values of which the table knows nothing chooses them.
  lab.add("llama", 19, 4e-3, 1);
  CHECK(lab.scored(table).rows[0].varied == 1e-3);
  lab.add("canon_a", 20, 2e-3, 0.875);  // at the end of the declared ones: the grid goes on
  CHECK_FALSE(lab.scored(table).rows[1].is_comparable());
  CHECK(missing_commands(lab.scored(table)).size() == 1);
}

TEST_CASE("no row is compared with a baseline that was chosen from fewer values", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 1e-3, 0.25);
  for (const double lr : {5e-4, 1e-3, 2e-3})
    lab.add("canon_a", static_cast<int>(10 + lr * 1000), lr, 0.5 + lr);
  const std::string text = to_terminal(lab.scored(), {false, 200});
  INFO(text);
  CHECK(contains(text,
                 "llama cannot be compared: the best of 1 of 3 values is no best: no run with "
                 "optimizer.lr 0.0005, 0.002 is completed"));
}

TEST_CASE("rows divided by the key that best_of varies have nothing to choose", "[report]") {
  ScoredLab lab;
  lab.add("llama", 10, 5e-4, 0.25);
  lab.add("llama", 11, 1e-3, 0.5);
  TableSpec table = scored_table();
  group_by(table, "optimizer.lr");
  const std::string text = to_terminal(lab.scored(table), {false, 200});
  INFO(text);
  CHECK(contains(text, "25.0 %"));
  CHECK(contains(text, "50.0 %"));
  CHECK_FALSE(contains(text, "the best of"));
  // Divided by another key, a row chooses among its own runs, and the commands say which these are.
  TableSpec by_seed = scored_table();
  group_by(by_seed, "seed");
  MadeRun other = ScoredLab::with_rate("llama", 12, 1e-3);
  other.experiment.seed = 43;
  make_completed_run(lab.runs, other, {1.5, 4300, 1 << 30, {{"token_accuracy", {0.5, 640}}}});
  const std::string commands = join(missing_commands(lab.scored(by_seed)), "\n");
  INFO(commands);
  CHECK(contains(commands, "forge run llama --set seed=43 --set optimizer.lr=0.0005"));
  CHECK_FALSE(contains(commands, "forge run llama llama"));
  CHECK_FALSE(contains(commands, "forge run llama --set seed=42 --set optimizer.lr=0.0005"));
}

}  // namespace
}  // namespace forge::tables
