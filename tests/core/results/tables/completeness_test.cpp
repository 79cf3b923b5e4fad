#include "core/results/tables/completeness.h"

#include <functional>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/table_design.h"
#include "core/results/tables/verdicts.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

/// Runs of llama and canon_a with seeds from 1 on, each created a day after the one before.
/// `planned` are the seeds that the command of each asked for.
Ablation table_of_plans(const std::vector<std::vector<int64_t>>& planned) {
  Lab lab;
  for (size_t i = 0; i < planned.size(); ++i) {
    for (const char* config : {"llama", "canon_a"}) {
      MadeRun run = Lab::run(config, 1 + static_cast<int>(i));
      run.experiment.seed = i + 1;
      run.planned_seeds = planned[i];
      make_completed_run(lab.runs, run, {3 + 0.01 * static_cast<double>(i) + (config[0] == 'l')});
    }
  }
  return lab.table();
}

std::string plan_of(const Ablation& ablation) { return setup_of(ablation, "Plan"); }

TEST_CASE("the plan of a row is that of its second seed", "[report][plan]") {
  const std::vector<int64_t> three = {1, 2, 3};
  const Ablation done = table_of_plans({three, three, three});
  CHECK(done.rows[0].planned_seeds == 3);
  CHECK(plan_of(done) == "as planned");
  // One seed was tried before: it counts, and it is no look, because it tells nothing.
  const Ablation tried = table_of_plans({{1}, {2, 3}, {2, 3}});
  CHECK(tried.rows[1].planned_seeds == 3);
  CHECK(plan_of(tried) == "as planned");
  CHECK(plan_of(table_of_plans({{1}, {2}, {3}})) == "number of seeds not planned");
  CHECK(plan_of(table_of_plans({{}, {}, {}})) == "number of seeds not planned");
  CHECK(plan_of(table_of_plans({three, three})) == "interim: 3 seeds planned");
  const Ablation more = table_of_plans({three, three, three, {1, 2, 3, 4}});
  CHECK(more.rows[0].planned_seeds == 3);
  CHECK(plan_of(more) == "reopened: 3 seeds planned");
  CHECK(plan_of(table_of_plans({{1}})) == "");
}

TEST_CASE("seeds that the baseline alone has beyond the plan change nothing", "[report][plan]") {
  Lab lab;
  const auto make = [&](const char* config, int day, std::vector<int64_t> seeds) {
    for (const int64_t seed : seeds) {
      MadeRun run = Lab::run(config, day);
      run.id = config + std::string("-") + std::to_string(seed);
      run.experiment.seed = static_cast<uint64_t>(seed);
      run.planned_seeds = seeds;
      make_completed_run(
          lab.runs,
          run,
          {3 + 0.01 * double(seed * seed) + (config[0] == 'l' ? 1 + 0.1 * double(seed % 3) : 0)});
    }
  };
  make("llama", 10, {1, 2, 3, 4, 5});
  make("canon_a", 10, {1, 2, 3, 4, 5});
  const auto p_of = [&] { return cells_of(lab.table(), "eval_loss").at(1).p.value(); };
  const double planned = p_of();
  make("llama", 12, {6, 7, 8, 9, 10});  // for another table
  CHECK(plan_of(lab.table()) == "as planned");
  CHECK(p_of() == planned);
  make("canon_a", 13, {6});
  CHECK(plan_of(lab.table()) == "reopened: 5 seeds planned");
}

TEST_CASE("what a baseline was run with before a row was planned costs the row nothing",
          "[report][plan]") {
  using Seeds = std::vector<int64_t>;
  struct Command {
    const char* config;
    int day;
    Seeds seeds;
    Seeds planned = {};  ///< none: the same
  };
  const auto table_of = [](const std::vector<Command>& commands) {
    Lab lab;
    for (const Command& command : commands) {
      for (const int64_t seed : command.seeds) {
        MadeRun run = Lab::run(command.config, command.day);
        run.id = command.config + std::string("-") + std::to_string(seed);
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.planned_seeds = command.planned.empty() ? command.seeds : command.planned;
        const bool is_baseline = command.config[0] == 'l';
        make_completed_run(
            lab.runs,
            run,
            {3 + 0.01 * double(seed * seed) + (is_baseline ? 1 + 0.1 * double(seed % 3) : 0)});
      }
    }
    std::vector<store::ConfiguredRun> runs = lab.read();
    for (store::ConfiguredRun& run : runs)
      run.summary.first_loss = run.summary.created.substr(0, 10) + "T23:59:59.000Z";
    return build_ablation(small_table(), runs);
  };
  const auto p_of = [](const Ablation& ablation) {
    return cells_of(ablation, "eval_loss").at(1).p.value();
  };
  const Seeds fresh = {6, 7, 8, 9, 10};
  const Ablation alone = table_of({{"llama", 12, fresh}, {"canon_a", 12, fresh}});
  const Ablation later =
      table_of({{"llama", 10, {1, 2, 3, 4, 5}}, {"llama", 12, fresh}, {"canon_a", 12, fresh}});
  CHECK(plan_of(later) == "as planned");
  CHECK(p_of(later) == p_of(alone));
  // Another table had asked for three of five.
  const Seeds five = {1, 2, 3, 4, 5};
  const Ablation wider =
      table_of({{"llama", 10, {1, 2, 3}}, {"llama", 12, {4, 5}, five}, {"canon_a", 12, five}});
  CHECK(plan_of(wider) == "as planned");
  CHECK(p_of(wider) == p_of(table_of({{"llama", 12, five}, {"canon_a", 12, five}})));
  // And a third table for eight, later.
  const Ablation widest = table_of({{"llama", 10, {1, 2, 3}},
                                    {"llama", 12, {4, 5}, five},
                                    {"canon_a", 12, five},
                                    {"llama", 14, {6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}}});
  CHECK(plan_of(widest) == "as planned");
  CHECK(p_of(widest) == p_of(wider));
  // Not where the row was looked at before, nor with a part of a longer known list.
  CHECK(plan_of(table_of({{"llama", 10, {1, 2, 3}},
                          {"canon_a", 10, {1, 2, 3}},
                          {"llama", 12, {4, 5}, five},
                          {"canon_a", 12, {4, 5}, five}})) == "reopened: 3 seeds planned");
  CHECK(plan_of(table_of(
            {{"llama", 10, {1, 2, 3}}, {"canon_a", 11, five}, {"llama", 12, {4, 5}, five}})) ==
        "reopened: 3 to 5 seeds planned");
  CHECK(plan_of(table_of(
            {{"llama", 10, {1, 2, 3}}, {"llama", 11, {4, 5, 6, 7, 8}}, {"canon_a", 12, five}})) ==
        "reopened: 3 to 5 seeds planned");
}

TEST_CASE("a plan that waited until seeds were known is no plan of them", "[report][plan]") {
  Lab lab;
  for (const char* config : {"llama", "canon_a", "canon_b"}) {
    for (const int seed : {1, 2, 3, 4, 5}) {
      const bool is_of_wide_plan = seed > 3;
      MadeRun run = Lab::run(config, is_of_wide_plan ? 10 : 12);
      run.id = config + std::to_string(seed);
      run.experiment.seed = static_cast<uint64_t>(seed);
      run.begun = Lab::run("", 12 + seed).created;
      run.planned_seeds = {1, 2, 3};
      if (is_of_wide_plan) run.planned_seeds = {1, 2, 3, 4, 5};
      make_completed_run(lab.runs, run, {3 + 0.01 * seed + (config[0] == 'l')});
    }
  }
  CHECK(lab.table().rows[0].planned_seeds == 3);
  CHECK(plan_of(lab.table()) == "reopened: 3 seeds planned");
}

TEST_CASE("the order of imports is no plan, and chooses no copy of a seed", "[report][plan]") {
  Lab lab;
  for (const char* config : {"llama", "canon_a"}) {
    for (const int seed : {1, 2, 3, 4, 5}) {
      MadeRun run = Lab::run(config, 10 + seed);
      run.id = config + std::to_string(seed);
      run.experiment.seed = static_cast<uint64_t>(seed);
      run.planned_seeds = {1, 2, 3};
      if (seed > 3) run.planned_seeds = {1, 2, 3, 4, 5};
      run.imported = Lab::run("", 28 - seed).created;  // the newest one first
      make_completed_run(lab.runs, run, {3 + 0.01 * seed + (config[0] == 'l')});
    }
  }
  CHECK(lab.table().rows[0].planned_seeds == 3);
  CHECK(plan_of(lab.table()) == "reopened: 3 seeds planned");
  MadeRun copy = Lab::run("canon_a", 20);
  copy.id = "copy";
  copy.experiment.seed = 2;
  copy.imported = Lab::run("", 21).created;  // before the run that it repeats
  make_completed_run(lab.runs, copy, {2.5});
  const Ablation ablation = lab.table();
  CHECK(ablation.rows[1].runs.size() == 5);
  CHECK(contains(excluded_text(ablation), "repeats canon_a2 with another loss"));
}

TEST_CASE("a plan is carried out where each row has its seeds", "[report][plan]") {
  Lab lab;
  for (const char* config : {"llama", "canon_a", "canon_b"}) {
    for (const int seed : {1, 2}) {
      if (seed == 2 && config == std::string("canon_b")) continue;
      MadeRun run = Lab::run(config, 10 + seed);
      run.id = config + std::to_string(seed);
      run.experiment.seed = static_cast<uint64_t>(seed);
      run.planned_seeds = {1, 2};
      make_completed_run(lab.runs, run, {3 + 0.01 * seed + (config[0] == 'l')});
    }
  }
  CHECK(plan_of(lab.table()) == "as planned where tested");
}

TEST_CASE("a plan is not carried out by other seeds than its own", "[report][plan]") {
  Lab lab;
  int day = 10;
  for (const int seed : {1, 2, 97, 98}) {
    for (const char* config : {"llama", "canon_a", "canon_b"}) {
      MadeRun run = Lab::run(config, day++);
      run.id = config + std::to_string(seed);
      run.experiment.seed = static_cast<uint64_t>(seed);
      run.planned_seeds =
          seed < 50 ? std::vector<int64_t>{1, 2, 3, 4} : std::vector<int64_t>{97, 98};
      make_completed_run(lab.runs, run, {3 + 0.01 * seed + (config[0] == 'l')});
    }
  }
  CHECK(lab.table().rows[0].planned_seeds == 4);
  CHECK(lab.table().rows[0].missing_seeds == 2);
  CHECK(plan_of(lab.table()) == "interim: 4 seeds planned");
}

TEST_CASE("a row of which some seeds have one loss to the last bit is compared with nothing",
          "[report]") {
  const auto violations = [](const std::vector<double>& losses) {
    Lab lab;
    for (const char* config : {"llama", "canon_a"}) {
      for (size_t i = 0; i < losses.size(); ++i) {
        MadeRun run = Lab::run(config, 10);
        run.id = config + std::to_string(i);
        run.experiment.seed = i + 1;
        const bool is_baseline = config[0] == 'l';
        const double own = 4 + 0.123456789 * static_cast<double>(i);
        Outcome outcome{is_baseline ? own : losses[i]};
        outcome.is_exact = true;
        make_completed_run(lab.runs, run, outcome);
      }
    }
    return lab.table().rows[1].violations;
  };
  CHECK(violations({3.14159265, 2.71828182, 3.00000001}).empty());
  CHECK(violations({3.14, 2.71, 3.14}).empty());  // of two digits: perhaps by chance
  const std::vector<std::string> found = violations({3.14159265, 2.71828182, 3.14159265});
  REQUIRE(found.size() == 1);
  CHECK(contains(found[0], "1 of its 3 seeds have the loss of another to the last bit"));
}

/// What the setup of a table of two rows with two seeds says of the table itself, if its runs
/// recorded these tables. `by`: the key that divides its rows; "": none.
std::string design_text(const std::optional<std::map<std::string, std::string>>& planned_tables,
                        TableSpec table,
                        const std::string& by = "") {
  Lab lab;
  for (const char* config : {"llama", "canon_a"}) {
    for (const int seed : {1, 2}) {
      MadeRun run = Lab::run(config, 10 + seed);
      run.id = config + std::to_string(seed);
      run.experiment.seed = static_cast<uint64_t>(seed);
      run.planned_tables = planned_tables;
      make_completed_run(lab.runs, run, {3 + 0.01 * seed + (config[0] == 'l')});
    }
  }
  AblationOptions options;
  options.project_tables = {table};
  if (!by.empty()) group_by(table, by);
  for (const SetupEntry& entry : build_ablation(table, lab.read(), options).setup)
    if (entry.name == "Table") return entry.short_text + "; " + entry.value;
  return "";
}

TEST_CASE("a table that is newer than its runs says so", "[report][plan]") {
  const TableSpec table = small_table();
  const std::map<std::string, std::string> planned = {{table.name, design_key(table)},
                                                      {"other", "0123456789ab"}};
  CHECK(design_text(planned, table) == "");
  CHECK(design_text(std::nullopt, table) == "");  // older runs do not say
  CHECK(design_text(std::map<std::string, std::string>(), table) ==
        "table written after its runs; written after 4 of its 4 runs were made: rows, columns and "
        "claims may have been chosen by what they show");
  TableSpec changed = table;
  changed.rows.pop_back();
  CHECK(contains(design_text(planned, changed), "table changed after its runs; changed after 4 "));
  changed = table;
  changed.title = "Looks do not count";
  changed.rows[0].name = "Nor do names";
  changed.seeds = 7;  // which runs record themselves
  CHECK(design_key(changed) == design_key(table));
  for (const auto& change : std::vector<std::function<void(TableSpec&)>>{
           [](TableSpec& spec) { spec.baseline = "canon_a"; },
           [](TableSpec& spec) { spec.primary = "train_loss"; },
           [](TableSpec& spec) { spec.must_be_equal.clear(); },
           [](TableSpec& spec) { spec.columns.erase(spec.columns.begin() + 5); },
           [](TableSpec& spec) { spec.claims.emplace_back(); },
           [](TableSpec& spec) {
             spec.best_of = BestOfSpec{"optimizer.lr", {1, 2}, "eval_loss"};
           },
           [](TableSpec& spec) { spec.budget = BudgetSpec(); },
           [](TableSpec& spec) { spec.parameters_within = 0.5; },
           [](TableSpec& spec) { spec.parameters_within = std::nullopt; },
           [](TableSpec& spec) { spec.flops_within = 0.5; },
           [](TableSpec& spec) { spec.tokens_per_second = SpeedSource::benchmark; }}) {
    changed = table;
    change(changed);
    CHECK(design_key(changed) != design_key(table));
  }
  changed = table;
  changed.parameters_within = std::nullopt;
  CHECK(contains(design_text(planned, changed), "table changed after its runs; changed after 4 "));
  CHECK_FALSE(is_design_of(changed, design_key(table)));
}

TEST_CASE("a table whose rows are divided by a key says what it says without", "[report][plan]") {
  const TableSpec table = small_table();
  const std::map<std::string, std::string> none, planned = {{table.name, design_key(table)}};
  TableSpec chosen = table;
  chosen.rows.pop_back();
  std::swap(chosen.rows[0], chosen.rows[1]);
  chosen.baseline = chosen.rows[0].config;
  for (const char* key : {"optimizer.eps", "backend"}) {
    INFO(key);
    CHECK(design_text(planned, table, key) == "");
    CHECK(design_text(none, table, key) == design_text(none, table));
    CHECK(contains(design_text(none, table, key), "table written after its runs"));
    CHECK(design_text(planned, chosen, key) == design_text(planned, chosen));
    CHECK(contains(design_text(planned, chosen, key), "table changed after its runs"));
  }
  TableSpec tuned = table;
  tuned.best_of = BestOfSpec{"optimizer.lr", {0.002}, "eval_loss"};
  const std::map<std::string, std::string> recorded = {{tuned.name, recorded_design(tuned)}};
  CHECK(design_text(recorded, tuned, "optimizer.lr") == "");
}

TEST_CASE("how the best of several runs is chosen belongs to a table's design", "[report][plan]") {
  TableSpec table = small_table();
  table.best_of = BestOfSpec{"optimizer.lr", {1, 2}, "eval_loss"};
  for (const auto& change : std::vector<std::function<void(BestOfSpec&)>>{
           [](BestOfSpec& spec) { spec.take = Extreme::lowest; },
           [](BestOfSpec& spec) { spec.validation_rows = 64; },
           [](BestOfSpec& spec) { spec.tuning_seeds = {901}; },
           [](BestOfSpec& spec) { spec.extend = true; }}) {
    TableSpec changed = table;
    change(*changed.best_of);
    CHECK(design_key(changed) != design_key(table));
  }
}

TEST_CASE("runs record the tuning seeds of a table beside its design", "[report][plan]") {
  TableSpec table = small_table();
  CHECK(recorded_design(table) == design_key(table));
  table.best_of = BestOfSpec{"optimizer.lr", {1, 2}, "eval_loss"};
  table.best_of->tuning_seeds = {901, 902};
  const std::string recorded = recorded_design(table);
  CHECK(recorded == design_key(table) + " 901,902");
  CHECK(is_design_of(table, recorded));

  store::RunSummary run;
  run.seed = 902;
  const auto is_one = [&](const std::string& planned_tables) {
    run.planned_tables = planned_tables;
    return is_tuning_run(table, run);
  };
  CHECK(is_one(""));  // of an earlier version
  CHECK(is_one(R"({"small": ")" + design_key(table) + R"("})"));
  CHECK(is_one(R"({"small": ")" + recorded + R"("})"));
  CHECK(is_one(R"({"small": "0123456789ab 902"})"));
  CHECK_FALSE(is_one(R"({"small": "0123456789ab 901"})"));
  CHECK_FALSE(is_one(R"({"small": "0123456789ab"})"));
  CHECK_FALSE(is_one(R"({"other": ")" + recorded + R"("})"));
  CHECK_FALSE(is_one("{}"));
  run.seed = 1;
  CHECK_FALSE(is_one(R"({"small": "0123456789ab 1"})"));
}

TEST_CASE("runs of earlier versions recorded tables without their limits", "[report][plan]") {
  TableSpec table = small_table();
  const std::string recorded = "15f6f29e86bd";  // of that table
  CHECK(recorded != design_key(table));
  CHECK(design_text(std::map<std::string, std::string>{{table.name, recorded}}, table) == "");
  table.baseline = "canon_a";
  CHECK_FALSE(is_design_of(table, recorded));
}

/// A run of the seed, created on the day.
MadeRun seeded(const std::string& config, int seed, int day) {
  MadeRun made = Lab::run(config, day);
  made.id = config + "-" + std::to_string(seed) + "-" + std::to_string(day);
  made.experiment.seed = static_cast<uint64_t>(seed);
  return made;
}

/// Three seeds of llama and canon_a.
void make_three_seeds(const Lab& lab, const std::vector<int64_t>& planned = {}) {
  for (const char* config : {"llama", "canon_a"}) {
    for (int seed = 1; seed <= 3; ++seed) {
      MadeRun made = seeded(config, seed, 10 + seed);
      made.planned_seeds = planned;
      make_completed_run(lab.runs, made, {(config[0] == 'l' ? 3.0 : 2.0) + 0.01 * seed * seed});
    }
  }
}

TEST_CASE("a row of which seeds are archived is compared with nothing", "[report]") {
  Lab lab;
  make_three_seeds(lab);
  AblationOptions options;
  std::vector<store::ConfiguredRun> shown;
  for (const store::ConfiguredRun& run : lab.read())
    (run.summary.id == "canon_a-3-13" ? options.archived : shown).push_back(run);
  const Ablation ablation = build_ablation(small_table(), shown, options);
  CHECK(ablation.rows[0].is_comparable());
  CHECK(ablation.rows[1].violations ==
        std::vector<std::string>{"1 of its 3 seeds are archived, and a chosen part is no sample "
                                 "(--archived shows all)"});
  CHECK(cells_of(ablation, "eval_loss")[1].standing == Standing::not_comparable);
  // A repetition that is archived takes nothing from the sample if it had the same result.
  make_completed_run(lab.runs, seeded("llama", 2, 20), {3.04});
  options.archived.clear();
  shown.clear();
  for (const store::ConfiguredRun& run : lab.read())
    (run.summary.id == "llama-2-20" ? options.archived : shown).push_back(run);
  CHECK(build_ablation(small_table(), shown, options).rows[0].is_comparable());
}

/// The table of all runs but those of these ids, which are archived.
Ablation without(const Lab& lab, const std::set<std::string>& archived) {
  AblationOptions options;
  std::vector<store::ConfiguredRun> shown;
  for (const store::ConfiguredRun& run : lab.read())
    (archived.count(run.summary.id) > 0 ? options.archived : shown).push_back(run);
  return build_ablation(small_table(), shown, options);
}

TEST_CASE("who archives results to choose among repetitions compares nothing", "[report]") {
  Lab lab;
  make_three_seeds(lab);
  make_completed_run(lab.runs, seeded("canon_a", 2, 20), {1.5});  // as a GPU may compute it
  CHECK(without(lab, {}).rows[1].runs[1].id == "canon_a-2-12");   // the first one counts
  CHECK(without(lab, {"canon_a-2-20"}).rows[1].violations ==
        std::vector<std::string>{"1 seed had another result in a run that is archived or left out, "
                                 "and a chosen part is no sample"});
  const Ablation chosen = without(lab, {"canon_a-2-12"});
  CHECK(chosen.rows[1].runs[1].id == "canon_a-2-20");
  CHECK_FALSE(chosen.rows[1].is_comparable());
  CHECK(cells_of(chosen, "eval_loss")[1].standing == Standing::not_comparable);
}

TEST_CASE("archived runs keep their part in the plan, and their failures", "[report][plan]") {
  Lab lab;
  make_three_seeds(lab);  // without a plan
  std::set<std::string> old;
  for (const char* config : {"llama", "canon_a"}) {
    for (int seed = 1; seed <= 3; ++seed) {  // the same again, with a plan
      MadeRun made = seeded(config, seed, 20 + seed);
      made.planned_seeds = {1, 2, 3};
      make_completed_run(lab.runs, made, {(config[0] == 'l' ? 3.0 : 2.0) + 0.01 * seed * seed});
      old.insert(config + ("-" + std::to_string(seed)) + "-" + std::to_string(10 + seed));
    }
  }
  CHECK(plan_of(without(lab, old)) == "number of seeds not planned");
  make_failed_run(lab.runs, seeded("canon_a", 4, 30), 20, "the loss is no number");
  CHECK(without(lab, {"canon_a-4-30"}).rows[1].violations ==
        std::vector<std::string>{"1 of its 4 seeds failed or were stopped, and those that remain "
                                 "are no sample (complete them: 'forge runs resume')"});
}

TEST_CASE("a row of which seeds failed is compared with nothing", "[report]") {
  Lab lab;
  make_three_seeds(lab);
  make_failed_run(lab.runs, seeded("canon_a", 4, 14), 20, "the loss is no number");
  const Ablation ablation = lab.table();
  CHECK(ablation.rows[0].is_comparable());
  CHECK(ablation.rows[1].violations ==
        std::vector<std::string>{"1 of its 4 seeds failed or were stopped, and those that remain "
                                 "are no sample (complete them: 'forge runs resume')"});
  const auto repeated = [](const Ablation& table) {
    for (const SetupEntry& entry : table.setup)
      if (entry.name == "Repeated") return entry.short_text;
    return std::string();
  };
  CHECK(repeated(ablation).empty());
  make_completed_run(lab.runs, seeded("canon_a", 4, 15), {2.2});
  CHECK(lab.table().rows[1].is_comparable());
  CHECK(repeated(lab.table()) == "1 of 7 runs repeated after a failure");

  Ablation table = lab.table();
  for (store::RunSummary& run : table.rows[1].runs) run.redone_losses = 1;
  table.setup = describe_history(table.table, table);
  CHECK(contains(repeated(table),
                 "repeated after a failure, " + std::to_string(table.rows[1].runs.size()) +
                     " of 7 runs had other losses in an attempt that was given up"));
}

TEST_CASE("runs whose seed varies nothing are one", "[report]") {
  Lab lab;
  for (const char* config : {"llama", "canon_a"}) {
    for (int seed = 1; seed <= 3; ++seed) {
      MadeRun made = seeded(config, seed, 10 + seed);
      made.experiment.data.order_seed = 1;
      made.experiment.train.initial_weights_seed = 1;
      // What differs is the hardware's arithmetic.
      make_completed_run(lab.runs, made, {3.0 + 1e-6 * seed});
    }
  }
  const Ablation ablation = lab.table();
  CHECK(ablation.rows[0].runs.size() == 1);
  CHECK(contains(excluded_text(ablation),
                 "its seed varies nothing: train.initial_weights and data.order_seed are fixed"));
  CHECK(cells_of(ablation, "eval_loss")[1].standing == Standing::one_seed);
}

TEST_CASE("a repetition of known runs is no new plan", "[report][plan]") {
  Lab lab;
  make_three_seeds(lab, {1, 2, 3});
  for (const char* config : {"llama", "canon_a"}) {
    for (int seed = 1; seed <= 4; ++seed) {  // forge run --seeds 4 --force
      MadeRun made = seeded(config, seed, 20 + seed);
      made.planned_seeds = {1, 2, 3, 4};
      make_completed_run(lab.runs, made, {(config[0] == 'l' ? 3.0 : 2.0) + 0.01 * seed * seed});
    }
  }
  const Ablation ablation = lab.table();
  CHECK(ablation.rows[0].runs.size() == 4);
  CHECK(ablation.rows[0].run->id == "llama-4-24");
  CHECK(ablation.rows[0].planned_seeds == 3);
  CHECK(plan_of(ablation) == "reopened: 3 seeds planned");
}

}  // namespace
}  // namespace forge::tables
