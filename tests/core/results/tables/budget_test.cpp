#include "core/results/tables/budget.h"

#include "core/config/experiment.h"
#include "core/model/parameters.h"
#include "core/results/tables/provenance.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/benchmark/maker.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using tests::contains;

/// A model with more FLOPs a token than the default one.
tests::MadeRun run_with_steps(const std::string& config, int day, int64_t steps) {
  tests::MadeRun made = tests::Lab::run(config, day);
  made.experiment.train.max_steps = steps;
  if (config == "canon_a") made.experiment.model.num_layers *= 2;
  return made;
}

TableSpec budget_table(Budget equal) {
  TableSpec table = tests::small_table();
  table.parameters_within = table.flops_within = std::nullopt;
  table.budget = BudgetSpec{equal, ""};
  return table;
}

TEST_CASE("the steps of a row follow from what one of its tokens costs", "[report]") {
  const TrainingCost reference{100, 1000, 64}, dearer{125, 800, 64}, wider{100, 1000, 128};
  CHECK(steps_within(Budget::tokens, dearer, reference, 1000) == 1000);
  CHECK(steps_within(Budget::tokens, wider, reference, 1000) == 500);
  CHECK(steps_within(Budget::flops, dearer, reference, 1000) == 800);
  CHECK(steps_within(Budget::time, dearer, reference, 1000) == 800);
  CHECK_FALSE(steps_within(Budget::time, {125, std::nullopt, 64}, reference, 1000).has_value());
  CHECK(steps_within(Budget::flops, {1e9, 1, 64}, reference, 10) == 1);
  CHECK(keeps_budget(Budget::flops, 800, 800));
  CHECK_FALSE(keeps_budget(Budget::flops, 801, 800));
  CHECK(keeps_budget(Budget::time, 816, 800));
  CHECK_FALSE(keeps_budget(Budget::time, 817, 800));
}

TEST_CASE("a row shows the runs that keep the table's budget", "[report]") {
  tests::Lab lab;
  tests::make_completed_run(lab.runs, run_with_steps("llama", 10, 30), {3.25});
  const std::vector<store::ConfiguredRun> first = lab.read();
  tests::make_completed_run(lab.runs, run_with_steps("canon_a", 11, 30), {3.0});
  const auto cost = [](const store::ConfiguredRun& run) {
    return TrainingCost{flops_per_token(run), std::nullopt, run.summary.tokens_per_step};
  };
  store::ConfiguredRun dearer;
  for (const store::ConfiguredRun& run : lab.read())
    if (run.summary.config == "canon_a") dearer = run;
  const int64_t steps = steps_within(Budget::flops, cost(dearer), cost(first[0]), 30).value();
  REQUIRE(steps < 30);

  const auto table = [&] { return build_ablation(budget_table(Budget::flops), lab.read()); };
  const Ablation too_long = table();
  CHECK_FALSE(too_long.rows[1].is_comparable());
  CHECK(too_long.rows[1].violations.front() ==
        "30 steps, equal FLOPs are " + std::to_string(steps) + " steps");
  tests::make_completed_run(lab.runs, run_with_steps("canon_a", 9, steps), {3.125});
  const Ablation kept = table();
  CHECK(kept.rows[1].is_comparable());
  CHECK(kept.rows[1].run->id == "canon_a-9");
  CHECK(contains(to_json(kept)["setup"]["Budget"].get<std::string>(), "with those of Llama 4M"));
  CHECK(setup_of(kept, "Rows differ in").empty());  // the budget's lengths are no difference
  CHECK(missing_commands(kept) ==
        std::vector<std::string>{"forge run --table small --set profile=quick"});  // canon_b
  // Speeds that nobody measured say nothing of equal time.
  const Ablation by_time = build_ablation(budget_table(Budget::time), lab.read());
  CHECK_FALSE(by_time.rows[1].is_comparable());
  CHECK(contains(by_time.rows[1].violations.front(), "forge bench llama canon_a canon_b"));
}

TEST_CASE("FLOPs of a program's own model are not those of the config's", "[report]") {
  tests::Lab lab;
  for (const char* config : {"llama", "canon_a"}) {
    tests::MadeRun run = tests::Lab::run(config, 10);
    run.experiment.train.max_steps = 30;
    tests::make_completed_run(lab.runs, run, {3});
  }
  std::vector<store::ConfiguredRun> runs = lab.read();
  const auto set_parameters = [&](int64_t llama, int64_t canon_a) {
    for (store::ConfiguredRun& run : runs) {
      run.summary.program = "files of a worker";
      run.summary.parameters = run.summary.config == "llama" ? llama : canon_a;
    }
  };
  const auto row = [&](const TableSpec& table) { return build_ablation(table, runs).rows[1]; };
  TableSpec within = budget_table(Budget::flops);
  within.budget.reset();
  within.flops_within = 0.1;
  set_parameters(1'000'000, 1'000'000);
  CHECK(row(budget_table(Budget::flops)).is_comparable());
  CHECK(row(within).is_comparable());
  const auto counted = [&](const std::string& config) {
    const auto run = std::find_if(
        runs.begin(), runs.end(), [&](const auto& each) { return each.summary.config == config; });
    return model::parameter_count(config::experiment_from_json(run->config).model);
  };
  const int64_t llama = counted("llama"), canon_a = counted("canon_a");
  set_parameters(llama + llama / 200, canon_a - canon_a / 200);  // a buffer more or less
  CHECK(row(budget_table(Budget::flops)).is_comparable());
  CHECK(row(within).is_comparable());
  set_parameters(2 * llama, canon_a);  // the baseline's program has another model
  for (const TableSpec& table : {budget_table(Budget::flops), within}) {
    const AblationRow beside = row(table);
    REQUIRE_FALSE(beside.is_comparable());
    CHECK(contains(beside.violations.front(), "the FLOPs of llama are not known"));
  }
  // Programs that count alike, and otherwise than their configs, which differ.
  for (store::ConfiguredRun& run : runs)
    if (run.summary.config == "canon_a") run.config["model"]["num_layers"] = 1;
  set_parameters(1'000'000, 1'000'000);
  const AblationRow alike = row(budget_table(Budget::flops));
  REQUIRE_FALSE(alike.is_comparable());
  CHECK(contains(alike.violations.front(), "its FLOPs are not known"));
  for (store::ConfiguredRun& run : runs)
    if (run.summary.config == "canon_a") run.config["model"]["num_layers"] = 2;
  set_parameters(1'000'000, 10'000'000);
  for (const TableSpec& table : {budget_table(Budget::flops), within}) {
    const AblationRow larger = row(table);
    REQUIRE_FALSE(larger.is_comparable());
    CHECK(contains(larger.violations.front(),
                   "its FLOPs are not known: its program reports 10,000,000 parameters, and"));
  }
  CHECK(row(budget_table(Budget::tokens)).is_comparable());
}

TEST_CASE("equal time is by measurements of the runs' own settings", "[report]") {
  tests::Lab lab;
  tests::make_completed_run(lab.runs, run_with_steps("llama", 10, 30), {3.25});
  tests::make_completed_run(lab.runs, run_with_steps("canon_a", 11, 15), {3.0});
  tests::MadeRun of_sgd = run_with_steps("canon_a", 12, 300);
  of_sgd.experiment.optimizer.type = "sgd";
  tests::make_completed_run(lab.runs, of_sgd, {2.0});
  AblationOptions options;
  const auto measure = [&](int day, double speed, const std::string& optimizer) {
    for (const char* config : {"llama", "canon_a"}) {
      config::Experiment experiment = run_with_steps(config, day, 30).experiment;
      experiment.optimizer.type = optimizer;
      const bool is_baseline = config[0] == 'l';
      options.benchmarks.push_back(
          tests::made_record(config, day, is_baseline ? 8000 : speed, experiment));
    }
  };
  const auto row = [&] {
    return build_ablation(budget_table(Budget::time), lab.read(), options).rows[1];
  };
  measure(20, 80000, "sgd");  // with which 300 steps would be equal time
  CHECK_FALSE(row().is_comparable());
  CHECK(contains(row().violations.front(),
                 "the speed of llama is not known, measured with optimizer.type sgd (the runs: "
                 "adamw): "
                 "'forge bench llama canon_a canon_b'"));
  measure(19, 4000, "adamw");
  CHECK(row().is_comparable());
  CHECK(row().run->id == "canon_a-11");
}

}  // namespace
}  // namespace forge::tables
