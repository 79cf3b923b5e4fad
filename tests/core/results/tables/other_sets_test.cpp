#include "core/results/tables/other_sets.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/results/tables/repetitions.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/set_place.h"
#include "core/results/tables/table_design.h"
#include "core/run/identity.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

TEST_CASE("who runs the same seeds again with other threads has another look", "[report][plan]") {
  Lab lab;
  const auto add = [&](int threads, int day) {
    for (const char* config : {"llama", "canon_a"}) {
      for (const int seed : {1, 2, 3}) {
        MadeRun run = Lab::run(config, day);
        run.id = config + std::to_string(seed) + "-" + std::to_string(threads);
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.threads = threads;
        make_completed_run(lab.runs, run, {3 + 0.01 * seed * threads + (config[0] == 'l')});
      }
    }
  };
  add(2, 10);
  CHECK(lab.table().rows[1].sets.others.empty());
  add(1, 11);
  add(4, 12);
  const Ablation ablation = lab.table();
  CHECK(ablation.rows[0].sets.others.size() == 2);
  CHECK(ablation.rows[1].sets.others.size() == 2);
  CHECK(setup_of(ablation, "Other runs") == "2 earlier sets of runs counted (threads)");
}

/// By what p is multiplied of the row that pays the most.
double factor_of_other_sets(const Ablation& ablation) {
  double most = 1;
  for (const AblationRow& row : ablation.rows)
    if (row.is_comparable() && row.runs.size() > 1)
      most = std::max(most, place_of({&row, find_row(ablation, "llama", row.group)}).factor());
  return most;
}

/// Sets of three seeds of llama and canon_a, each changed by `change`, which gets the set's number.
struct Sets {
  using Change = std::function<void(int set, MadeRun& run)>;
  Lab lab;

  explicit Sets(int sets, const Change& change) {
    for (int set = 0; set < sets; ++set) {
      for (const char* config : {"llama", "canon_a"})
        for (const int seed : {1, 2, 3}) add(set, config, seed, change);
    }
  }

  static MadeRun made(int set, const std::string& config, int seed, const Change& change) {
    MadeRun run = Lab::run(config, 10 + set);
    run.id = config + "-" + std::to_string(set) + "-" + std::to_string(seed);
    run.experiment.seed = static_cast<uint64_t>(seed);
    run.planned_seeds = {1, 2, 3};
    change(set, run);
    return run;
  }

  void add(int set, const std::string& config, int seed, const Change& change) const {
    const double of_config = config[0] == 'l' ? 1 + 0.2 * (seed == 2) : 0;
    const double loss = 3 + 0.01 * (seed * seed + set) + of_config;
    make_completed_run(lab.runs, made(set, config, seed, change), {loss});
  }

  /// The table with the runs of these sets alone, where others are hidden by `hide`; null: removed.
  Ablation showing(const std::function<bool(int)>& is_shown,
                   std::vector<store::ConfiguredRun> AblationOptions::*hide,
                   const TableSpec& table = small_table()) const {
    AblationOptions options;
    std::vector<store::ConfiguredRun> shown;
    for (const store::ConfiguredRun& run : lab.read()) {
      const int set = run.summary.id[run.summary.id.size() - 3] - '0';
      if (is_shown(set)) {
        shown.push_back(run);
      } else if (hide) {
        (options.*hide).push_back(run);
      }
    }
    return build_ablation(table, shown, options);
  }

  Ablation showing_from(int first,
                        std::vector<store::ConfiguredRun> AblationOptions::*hide,
                        const TableSpec& table = small_table()) const {
    return showing([first](int set) { return set >= first; }, hide, table);
  }
};

TEST_CASE("views along each key of a grid that is trained together share one error",
          "[report][plan]") {
  Lab lab;
  // One command: each seed of all sets, and then the next one.
  for (const int seed : {1, 2, 3}) {
    for (const int set : {0, 1, 2, 3}) {
      for (const char* config : {"llama", "canon_a"}) {
        MadeRun run = Lab::run(config, 4 * seed + set);
        run.id = config + std::to_string(seed) + "-" + std::to_string(set);
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.planned_seeds = {1, 2, 3};
        run.experiment.optimizer.eps = set % 2 == 0 ? 1e-8 : 1e-7;
        run.experiment.optimizer.weight_decay = set < 2 ? 0.1 : 0.2;
        make_completed_run(lab.runs, run, {3 + 0.01 * seed * (set + 1) + (config[0] == 'l')});
      }
    }
  }
  const auto view = [&](const std::string& by, const std::set<int>& sets) {
    TableSpec table = small_table();
    table.by = by;
    AblationOptions options;
    std::vector<store::ConfiguredRun> shown;
    for (const store::ConfiguredRun& run : lab.read()) {
      const bool is_shown = sets.count(run.summary.id.back() - '0') > 0;
      (is_shown ? shown : options.filtered_out).push_back(run);
    }
    const Ablation ablation = build_ablation(table, shown, options);
    return place_of({&ablation.rows[0], &ablation.rows[1]});
  };
  CHECK(view("optimizer.eps", {0, 1}).views == 2);
  CHECK(view("optimizer.weight_decay", {0, 2}).views == 2);
  CHECK(view("", {0}).views == 2);
  CHECK(view("", {0}).number == 1);
  CHECK(view("", {3}).views == 1);  // it pays for those that were known before
  CHECK(view("", {3}).number > 1);
}

/// A table that has no two sets of runs stand in one another's rows.
TableSpec strict_table() {
  TableSpec table = small_table();
  for (const char* section : {"optimizer", "schedule"}) table.must_be_equal.emplace_back(section);
  return table;
}

TEST_CASE("every other set of runs of the configs is a look, shown or not", "[report][plan]") {
  const std::vector<std::pair<std::string, Sets::Change>> ways = {
      {"optimizer.eps",
       [](int set, MadeRun& run) { run.experiment.optimizer.eps = 1e-8 + 1e-10 * set; }},
      {"data.order_seed", [](int set, MadeRun& run) { run.experiment.data.order_seed = set + 1; }},
      {"profile",
       [](int set, MadeRun& run) { run.experiment.profile = "p" + std::to_string(set); }},
      {"data_fingerprint",
       [](int set, MadeRun& run) { run.data_fingerprint = "d" + std::to_string(set); }},
      {"threads", [](int set, MadeRun& run) {  // and other seeds
         run.threads = set + 1;
         run.experiment.seed += static_cast<uint64_t>(10 * set);
       }}};
  for (const auto& [key, change] : ways) {
    INFO(key);
    const Sets sets(4, change);
    const Ablation one = sets.showing_from(3, nullptr, strict_table());
    CHECK(setup_of(one, "Other runs") == "");
    const double alone = *cells_of(one, "eval_loss")[1].p;
    for (const auto hide : {&AblationOptions::filtered_out,
                            &AblationOptions::archived,
                            &AblationOptions::other_models}) {
      const Ablation chosen = sets.showing_from(3, hide, strict_table());
      CHECK(setup_of(chosen, "Other runs") == "3 earlier sets of runs counted (" + key + ")");
      CHECK(*cells_of(chosen, "eval_loss")[1].p == Approx(std::min(1.0, 4 * 3 / 0.05 * alone)));
    }
    const Ablation all = build_ablation(strict_table(), sets.lab.read(), {});
    CHECK(setup_of(all, "Other runs") == "3 earlier sets of runs counted (" + key + ")");
    CHECK(*cells_of(all, "eval_loss")[1].p == Approx(std::min(1.0, 4 * 3 / 0.05 * alone)));
  }
}

TEST_CASE("sets of two rows that go together in more ways are as many looks", "[report][plan]") {
  const Sets sets(3,
                  [](int set, MadeRun& run) { run.experiment.optimizer.eps = 1e-8 + 1e-10 * set; });
  const auto factor = [](size_t k) { return Approx(double(k * (k - 1)) / 0.05); };
  CHECK(factor_of_other_sets(sets.lab.table()) == factor(9));  // which leaves the optimizer open
  CHECK(factor_of_other_sets(build_ablation(strict_table(), sets.lab.read(), {})) == factor(3));
}

TEST_CASE("sets that are made later change no verdict", "[report][plan]") {
  const Sets sets(4, [](int set, MadeRun& run) { run.threads = set + 1; });
  const auto of_set = [&](int shown) {
    return sets.showing(
        [shown](int set) { return set == shown; }, &AblationOptions::archived, strict_table());
  };
  CHECK(factor_of_other_sets(of_set(0)) == 1);
  CHECK(setup_of(of_set(0), "Other runs") == "3 sets of runs made since (threads)");
  CHECK(factor_of_other_sets(of_set(1)) == Approx(2 / 0.05));
  CHECK(factor_of_other_sets(of_set(2)) == Approx(6 / 0.05));
  CHECK(setup_of(of_set(2), "Other runs") ==
        "2 earlier sets of runs counted, 1 set of runs made since (threads)");

  // Of sets that were made at one time each may be the one that was looked at last.
  const Sets at_once(3, [](int set, MadeRun& run) {
    run.threads = set + 1;
    run.created = Lab::run("llama", 10).created;
  });
  CHECK(factor_of_other_sets(at_once.showing(
            [](int set) { return set == 0; }, &AblationOptions::archived, strict_table())) ==
        Approx(6 / 0.05));
}

TEST_CASE("sets are in the order in which they were begun or imported", "[report][plan]") {
  const auto others = [](const std::function<void(int, MadeRun&)>& change, int shown) {
    const Sets sets(3, [&](int set, MadeRun& run) {
      run.experiment.optimizer.eps = 1e-8 + 1e-10 * set;
      change(set, run);
    });
    const auto is_shown = [&](int set) { return set == shown; };
    return setup_of(sets.showing(is_shown, &AblationOptions::filtered_out, strict_table()),
                    "Other runs");
  };
  const std::string earlier = "2 earlier sets of runs counted (optimizer.eps)";
  const auto as_planned = [](int, MadeRun&) {};
  CHECK(others(as_planned, 0) == "2 sets of runs made since (optimizer.eps)");
  CHECK(others(as_planned, 2) == earlier);
  const auto newest_begun_first = [](int set, MadeRun& run) {
    run.begun = Lab::run("", 20 - set).created;
  };
  CHECK(others(newest_begun_first, 0) == earlier);
  CHECK(others(newest_begun_first, 2) == "2 sets of runs made since (optimizer.eps)");
  // Who imports them in another order hides no look that was taken there, and none that is here.
  const auto newest_imported_first = [](int set, MadeRun& run) {
    run.imported = Lab::run("", 28 - set).created;
  };
  CHECK(others(newest_imported_first, 0) == earlier);
  CHECK(others(newest_imported_first, 2) == earlier);
}

TEST_CASE("seeds that other sets lack may be those that failed", "[report][plan]") {
  const Sets::Change with_threads = [](int set, MadeRun& run) { run.threads = set + 1; };
  const Sets sets(1, with_threads);
  CHECK(setup_of(sets.lab.table(), "Plan") == "as planned");
  const auto fail = [&](int set, int seed, int step) {
    make_failed_run(sets.lab.runs,
                    Sets::made(set, "canon_a", seed, with_threads),
                    step,
                    "the loss is no number");
  };
  // One seed tells nothing yet, and neither do runs that could not begin.
  fail(1, 1, 20);
  for (const int seed : {2, 3}) fail(1, seed, 0);
  CHECK(sets.lab.table().rows[1].sets.others.empty());
  CHECK(setup_of(sets.lab.table(), "Plan") == "as planned");
  for (const int seed : {1, 2}) fail(2, seed, 20);
  const Ablation ablation = sets.lab.table();
  CHECK(ablation.rows[1].sets.others.size() == 1);
  CHECK(setup_of(ablation, "Other runs") == "1 set of runs made since (threads)");
  CHECK(setup_of(ablation, "Plan") ==
        "not as planned: 3 seeds of other sets of runs did not complete");
}

/// Runs of three seeds of llama, and of canon_a with each of these weights, one run after the
/// other. `change` makes each of the latter differ from all others.
struct LoneRuns {
  using Change = std::function<void(int number, MadeRun& run)>;
  Lab lab;
  int made = 0;

  LoneRuns() {
    for (const int seed : {1, 2, 3}) add("llama", seed, {});
  }
  void add(const std::string& config, int seed, const Change& change) {
    MadeRun run = Lab::run(config, 10);
    run.created.replace(run.created.size() - 4, 3, std::to_string(100 + ++made));
    run.id = config + "-" + std::to_string(made);
    run.experiment.seed = static_cast<uint64_t>(seed);
    run.planned_seeds = {1, 2, 3};
    if (change) change(made, run);
    const double of_config = config[0] == 'l' ? 1 + 0.2 * (seed == 2) : 0;
    make_completed_run(lab.runs, run, {3 + 0.01 * seed * seed + 1e-4 * made + of_config});
  }
  void try_once(const std::vector<int>& seeds, const Change& change) {
    for (const int seed : seeds) add("canon_a", seed, change);
  }
  std::string other_runs(const TableSpec& table = small_table()) const {
    return setup_of(build_ablation(table, lab.read(), {}), "Other runs");
  }
};

TEST_CASE("runs of several seeds with settings of their own are sets", "[report][plan]") {
  const auto own_eps = [](int number, MadeRun& run) {
    run.experiment.optimizer.eps = 1e-8 + 1e-12 * number;
  };
  LoneRuns one_seed;
  for (int times = 0; times < 4; ++times) one_seed.try_once({1}, own_eps);
  one_seed.try_once({1, 2, 3}, {});
  CHECK(one_seed.other_runs() == "");  // a sweep of one seed

  // Nor do odd runs count of seeds that the row was not to show.
  LoneRuns odd;
  odd.try_once({7, 8, 9}, own_eps);
  odd.try_once({1, 2, 3}, {});
  CHECK(odd.other_runs() == "");
  odd.try_once({1, 3}, own_eps);
  CHECK(odd.other_runs() == "1 set of runs made since (optimizer.eps)");

  LoneRuns tried;
  for (const double decay : {0.1, 0.2, 0.3, 0.4})
    tried.try_once({1, 2, 3}, [&](int number, MadeRun& run) {
      own_eps(number, run);
      run.experiment.optimizer.weight_decay = decay;
    });
  tried.try_once({1, 1}, own_eps);
  tried.try_once({1, 2, 3}, {});
  CHECK(tried.other_runs() ==
        "4 earlier sets of runs counted (optimizer.eps; optimizer.weight_decay)");
  CHECK(factor_of_other_sets(tried.lab.table()) == Approx(5 * 4 / 0.05));
  tried.try_once({1, 3, 3}, own_eps);
  CHECK(tried.other_runs() ==
        "4 earlier sets of runs counted, 2 sets of runs made since (optimizer.eps; "
        "optimizer.weight_decay)");

  // With other conditions of the table, and where another table declares them.
  LoneRuns declared;
  TableSpec table = strict_table(), other = strict_table();
  other.name = "other";
  other.best_of = BestOfSpec{"optimizer.eps", {}, "eval_loss", Extreme::lowest};
  for (int number = 1; number < 12; ++number)
    other.best_of->values.push_back(1e-8 + 1e-12 * number);
  const std::map<std::string, std::string> recorded = {{table.name, recorded_design(table)},
                                                       {other.name, recorded_design(other)}};
  const auto as_declared = [&](int number, MadeRun& run) {
    own_eps(number, run);
    run.planned_tables = recorded;
  };
  declared.try_once({1, 2, 1, 2}, as_declared);
  declared.try_once({1, 2, 3}, [&](int, MadeRun& run) { run.planned_tables = recorded; });
  CHECK(declared.other_runs(table) == "2 earlier sets of runs counted (optimizer.eps)");
  AblationOptions options;
  options.project_tables = {table, other};
  CHECK(setup_of(build_ablation(table, declared.lab.read(), options), "Other runs") ==
        "runs of 1 other table counted (other)");
}

TEST_CASE("what the table declares to vary makes no other set", "[report][plan]") {
  const auto lr_of = [](int set, MadeRun& run) { run.experiment.optimizer.lr = 0.001 * (set + 1); };
  const Sets sets(3, lr_of);
  CHECK(build_ablation(strict_table(), sets.lab.read(), {}).rows[1].sets.others.size() == 2);
  TableSpec table = strict_table();
  table.best_of = BestOfSpec{"optimizer.lr", {0.001, 0.002, 0.003}, "eval_loss", Extreme::lowest};
  CHECK(build_ablation(table, sets.lab.read(), {}).rows[1].sets.others.empty());
  table.best_of->values = {0.003};  // those of the other values were made before
  CHECK(setup_of(build_ablation(table, sets.lab.read(), {}), "Other runs") ==
        "2 earlier sets of runs counted (optimizer.lr)");
  table.best_of->tuning_seeds = {1, 2, 3};  // of the others none could be shown
  CHECK(setup_of(build_ablation(table, sets.lab.read(), {}), "Other runs") == "");
  table = strict_table();
  group_by(table, "optimizer.lr");
  const Ablation by_lr = build_ablation(table, sets.lab.read(), {});
  REQUIRE(by_lr.rows.size() == 7);  // three of each, and canon_b without runs
  CHECK(setup_of(by_lr, "Other runs") == "");
  // Hidden ones count as in the whole table: as rows that were run together.
  const double alone = *cells_of(sets.showing_from(2, nullptr, table), "eval_loss")[1].p;
  const Ablation hidden = sets.showing_from(2, &AblationOptions::filtered_out, table);
  CHECK(setup_of(hidden, "Other runs") == "");
  CHECK(*cells_of(hidden, "eval_loss")[1].p == Approx(3 * alone));
}

TEST_CASE("a row of best_of was made when the value that it shows was", "[report][plan]") {
  const auto lr_of = [](int set, MadeRun& run) { run.experiment.optimizer.lr = 0.001 * (set + 1); };
  const Sets sets(4, lr_of);
  TableSpec table = strict_table();
  table.best_of = BestOfSpec{"optimizer.lr", {0.001, 0.004}, "eval_loss", Extreme::highest};
  const auto other_runs = [&] {
    const Ablation ablation = build_ablation(table, sets.lab.read(), {});
    REQUIRE(ablation.rows[1].runs.size() == 3);
    return setup_of(ablation, "Other runs");
  };
  CHECK(other_runs() == "2 earlier sets of runs counted (optimizer.lr)");
  table.best_of->take = Extreme::lowest;  // the first one
  CHECK(other_runs() == "2 sets of runs made since (optimizer.lr)");
}

TEST_CASE("values that were shown before a table tuned further are attempts", "[report][plan]") {
  TableSpec table = strict_table();
  table.best_of = BestOfSpec{"optimizer.lr", {0.001, 0.002}, "eval_loss", Extreme::highest};
  table.best_of->tuning_seeds = {901};
  std::string recorded = recorded_design(table);
  Lab lab;
  const auto make = [&](double lr, const std::vector<int>& seeds, int day) {
    for (const char* config : {"llama", "canon_a"}) {
      for (const int seed : seeds) {
        MadeRun run = Lab::run(config, day);
        run.id = join({config, std::to_string(day), std::to_string(seed)}, "-");
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.experiment.optimizer.lr = lr;
        run.planned_tables = std::map<std::string, std::string>{{table.name, recorded}};
        make_completed_run(lab.runs, run, {3 + 0.01 * (seed % 7) + lr + (config[0] == 'l')});
      }
    }
  };
  make(0.001, {901}, 9);
  make(0.001, {1, 2, 3}, 10);  // as the table stood: the other value is of the grid
  make(0.002, {901}, 11);
  make(0.002, {1, 2, 3}, 12);
  const auto other_runs = [&] { return setup_of(build_ablation(table, lab.read()), "Other runs"); };
  CHECK(other_runs() == "");
  table.best_of->tuning_seeds.push_back(902);
  recorded = recorded_design(table);
  make(0.001, {902}, 13);
  make(0.002, {902}, 14);
  CHECK(other_runs() == "1 earlier set of runs counted (optimizer.lr)");
}

/// LearningRates of a key, each with runs of llama and canon_a, on the days.
struct LearningRates {
  Lab lab;
  TableSpec table = strict_table();

  explicit LearningRates(const std::vector<int>& days) {
    for (size_t i = 0; i < days.size(); ++i)
      for (const char* config : {"llama", "canon_a"}) add(config, static_cast<int>(i), days[i]);
    table.rows.pop_back();
    group_by(table, "optimizer.lr");
  }

  void add(const std::string& config, int value, int day) const {
    for (const int seed : {1, 2, 3}) {
      MadeRun run = Lab::run(config, day);
      run.id = config + "-" + std::to_string(value) + "-" + std::to_string(seed);
      run.experiment.seed = static_cast<uint64_t>(seed);
      run.experiment.optimizer.lr = 0.001 * (value + 1);
      run.planned_seeds = {1, 2, 3};
      const double of_config = config[0] == 'l' ? 1 + 0.2 * (seed == 2) : 0;
      make_completed_run(lab.runs, run, {3 + 0.01 * (seed * seed + value) + of_config});
    }
  }

  Ablation built() const { return build_ablation(table, lab.read(), {}); }

  /// Of the rows of canon_a, by their values.
  std::vector<double> p_values() const {
    const Ablation ablation = built();
    const std::vector<Cell> cells = cells_of(ablation, "eval_loss");
    std::vector<double> p;
    for (size_t i = 0; i < cells.size(); ++i)
      if (ablation.rows[i].spec.config == "canon_a") p.push_back(*cells[i].p);
    return p;
  }
};

TEST_CASE("values of --by that are run together share the error", "[report][plan]") {
  const double alone = LearningRates({10}).p_values().front();
  const LearningRates together({10, 10, 10});  // all end on November 20
  CHECK(setup_of(together.built(), "Other runs") == "");
  for (const double p : together.p_values()) CHECK(p == Approx(3 * alone));
}

TEST_CASE("values of --by are run together where each seed is given to all of them in turn",
          "[report][plan]") {
  const LearningRates values({10, 10, 10});
  const auto other_runs = [&](bool in_turn) {
    std::vector<store::ConfiguredRun> runs = values.lab.read();
    for (store::ConfiguredRun& each : runs) {
      store::RunSummary& run = each.summary;
      const int seed = static_cast<int>(run.seed) - 1;
      const int value = static_cast<int>(run.id.at(run.id.size() - 3) - '0');
      const int place = in_turn ? 3 * seed + value : 3 * value + seed;
      run.begun = utc_timestamp(time_of_day(11) + 3600 * place);
      run.first_loss = utc_timestamp(time_of_day(11) + 3600 * place + 60);
      run.updated = utc_timestamp(time_of_day(11) + 3600 * place + 3000);
    }
    return setup_of(build_ablation(values.table, runs, {}), "Other runs");
  };
  CHECK(other_runs(true) == "");
  CHECK(contains(other_runs(false), "2 earlier sets of runs counted"));
}

TEST_CASE("a value of --by is known from the first losses of its runs on", "[report][plan]") {
  const auto other_runs = [](int day_of_losses) {
    const LearningRates values({10, 25});
    for (const char* config : {"llama", "canon_a"})
      for (const char* seed : {"1", "2", "3"})
        set_times(run::RunFolder(values.lab.runs / join({config, "0", seed}, "-")),
                  time_of_day(day_of_losses),
                  time_of_day(28));
    return setup_of(values.built(), "Other runs");
  };
  CHECK(contains(other_runs(21), "1 earlier set of runs counted"));
  CHECK(other_runs(26) == "");
}

TEST_CASE("hiding a value of --by makes no other value clearer", "[report][plan]") {
  for (const std::vector<int>& days : {std::vector<int>{10, 10, 10},
                                       std::vector<int>{10, 11, 12},
                                       std::vector<int>{12, 11, 10},
                                       std::vector<int>{10, 10, 21},
                                       std::vector<int>{21, 10, 10},
                                       std::vector<int>{10, 21, 21}}) {
    const LearningRates values(days);
    const std::vector<double> whole = values.p_values();
    for (const auto hide : {&AblationOptions::archived, &AblationOptions::filtered_out}) {
      for (const int hidden : {0, 1, 2}) {
        for (const bool is_of_canon_alone : {false, true}) {
          AblationOptions options;
          std::vector<store::ConfiguredRun> shown;
          for (const store::ConfiguredRun& run : values.lab.read()) {
            const bool has_value = contains(run.summary.id, "-" + std::to_string(hidden) + "-");
            const bool is_hidden =
                has_value && (!is_of_canon_alone || run.summary.config == "canon_a");
            (is_hidden ? options.*hide : shown).push_back(run);
          }
          const Ablation less = build_ablation(values.table, shown, options);
          const std::vector<Cell> cells = cells_of(less, "eval_loss");
          for (const int value : {0, 1, 2}) {
            const AblationRow* const row = find_row(less, "canon_a", shortest(0.001 * (value + 1)));
            if (value == hidden || !row) continue;
            const auto place = static_cast<size_t>(row - less.rows.data());
            CAPTURE(days, hidden, value, is_of_canon_alone);
            CHECK(*cells[place].p >= whole[static_cast<size_t>(value)] * (1 - 1e-9));
          }
        }
      }
    }
  }
}

TEST_CASE("a value of --by that is added when others are known is a later set", "[report][plan]") {
  const double alone = LearningRates({10}).p_values().front();
  const LearningRates values({10, 10, 21});  // when the first two had ended
  CHECK(setup_of(values.built(), "Other runs") ==
        "2 earlier sets of runs counted for Canon-A (0.003) (optimizer.lr)");
  const std::vector<double> p = values.p_values();
  CHECK(p[0] == Approx(2 * alone));  // as before the third was there
  CHECK(p[1] == Approx(2 * alone));
  CHECK(p[2] == Approx(std::min(1.0, 3 * 2 / 0.05 * alone)));

  // A row that waits for its runs counts as tested with those beside which it was begun.
  const LearningRates one({10});
  MadeRun run = Lab::run("canon_a", 10);
  run.experiment.optimizer.lr = 0.002;
  make_stopped_run(one.lab.runs, run, 10);
  CHECK(one.p_values().front() == Approx(2 * alone));
  const LearningRates other({10});
  run.created = Lab::run("canon_a", 21).created;
  make_stopped_run(other.lab.runs, run, 10);
  CHECK(other.p_values().front() == alone);
}

TEST_CASE("a row that is run after other sets were tried costs the others nothing",
          "[report][plan]") {
  const auto eps_of = [](int set, MadeRun& run) {
    run.experiment.optimizer.eps = 1e-8 + 1e-10 * (set % 3);
  };
  const Sets sets(3, eps_of);
  const auto table = [&](const TableSpec& spec) {
    return sets.showing([](int set) { return set % 3 == 0; }, &AblationOptions::archived, spec);
  };
  const double first = *cells_of(table(strict_table()), "eval_loss")[1].p;
  for (const int seed : {1, 2, 3})
    make_completed_run(
        sets.lab.runs, Sets::made(6, "canon_b", seed, eps_of), {3.005 + 0.01 * seed * seed});
  for (const TableSpec& spec : {strict_table(), small_table()}) {
    const Ablation later = table(spec);
    REQUIRE(later.rows[2].runs.size() == 3);
    CHECK(place_of({&later.rows[1], &later.rows[0]}).number == 1);
    CHECK(place_of({&later.rows[2], &later.rows[0]}).number == 3);
    CHECK(*cells_of(later, "eval_loss")[1].p == Approx(first));
  }
  CHECK(setup_of(table(strict_table()), "Other runs") ==
        "2 earlier sets of runs counted for Canon-B, 2 sets of runs made since (optimizer.eps)");
}

TEST_CASE("other lengths than that of a row with a budget are looks", "[report][plan]") {
  const Sets sets(3, [](int set, MadeRun& run) {
    if (run.config == "canon_a") run.experiment.train.max_steps = 2000 + set;
  });
  TableSpec table = strict_table();
  table.budget = BudgetSpec{Budget::flops, ""};
  const Ablation ablation = build_ablation(table, sets.lab.read(), {});
  CHECK(ablation.rows[1].sets.others.size() == 2);
}

TEST_CASE("a set whose scores alone are others is a look", "[report][plan]") {
  Lab lab;
  for (int set = 0; set < 3; ++set) {
    for (const char* config : {"llama", "canon_a"}) {
      for (const int seed : {1, 2, 3}) {
        MadeRun run = Lab::run(config, 10 + set);
        run.id = config + std::to_string(seed) + "-" + std::to_string(set);
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.experiment.train.eval_prompts = 40 + set;
        Outcome outcome;
        outcome.eval_loss = 3 + 0.01 * seed + (config[0] == 'l');
        outcome.scores = {{"token_accuracy", {0.5 + 0.01 * set, 640}}};
        make_completed_run(lab.runs, run, outcome);
      }
    }
  }
  CHECK(setup_of(lab.table(), "Other runs") ==
        "2 earlier sets of runs counted (train.eval_prompts)");
}

/// Runs of a table and of another one, which tunes the learning rate with seeds of its own.
struct TwoTables {
  Lab lab;
  TableSpec own = strict_table(), grid = strict_table();
  std::map<std::string, std::string> recorded;  ///< by the runs that are made next
  std::optional<double> planned_lr;             ///< of the configs when these are made
  bool are_configs = true;                      ///< without settings

  TwoTables() {
    grid.name = "grid";
    grid.best_of =
        BestOfSpec{"optimizer.lr", {0.002, 0.004}, "eval_loss", Extreme::lowest, 0, {901, 902}};
    recorded = {{own.name, design_key(own)}, {grid.name, design_key(grid)}};
  }

  void make(double lr, const std::vector<int>& seeds, int day) const {
    for (const char* config : {"llama", "canon_a"}) {
      for (const int seed : seeds) {
        MadeRun run = Lab::run(config, day);
        run.id = config + std::string("-") + std::to_string(day) + "-" + std::to_string(seed);
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.experiment.optimizer.lr = lr;
        run.planned_tables = recorded;
        if (planned_lr) {
          config::Experiment plain = run.experiment;
          plain.optimizer.lr = *planned_lr;
          run.planned_config = run::config_key(config::to_json(plain));
        }
        if (!are_configs) run.planned_config = run::no_own_config;
        make_completed_run(lab.runs, run, {3 + 0.01 * (seed % 7) + lr + (config[0] == 'l')});
      }
    }
  }

  /// The own table, if the project has these.
  Ablation beside(const std::vector<TableSpec>& tables) const {
    AblationOptions options;
    options.project_tables = tables;
    options.current_config = [](const std::string& config, const std::string&, const std::string&) {
      return nlohmann::json(config::to_json(Lab::run(config, 1).experiment));
    };
    return build_ablation(own, lab.read(), options);
  }
};

TEST_CASE("what another table declares to tune by seeds of its own is no look", "[report][plan]") {
  TwoTables both;
  both.make(0.002, {901, 902}, 10);
  both.make(0.004, {901, 902}, 11);
  both.make(Lab::run("llama", 1).experiment.optimizer.lr, {1, 2, 3}, 12);
  const auto others = [&](const TwoTables& made, const std::vector<TableSpec>& tables) {
    const Ablation ablation = made.beside(tables);
    REQUIRE(ablation.rows[1].runs.size() == 3);
    CHECK(ablation.rows[1].sets.tables.empty());
    return ablation.rows[1].sets.others.size();
  };
  CHECK(others(both, {both.own, both.grid}) == 0);
  CHECK(factor_of_other_sets(both.beside({both.own, both.grid})) == 1);

  // Who deletes the other table, or changes it afterwards, has hidden nothing.
  CHECK(others(both, {both.own}) == 2);
  TableSpec changed = both.grid;
  changed.best_of->values.push_back(0.008);
  CHECK(others(both, {both.own, changed}) == 2);
  // A table that may show these runs beside its own has them as a choice.
  both.own.must_be_equal = small_table().must_be_equal;
  CHECK(others(both, {both.own, both.grid}) == 2);

  // Tuned by the seeds that are shown, it is another table.
  TwoTables same_seeds;
  same_seeds.grid.best_of->tuning_seeds = {1, 2};
  same_seeds.recorded[same_seeds.grid.name] = design_key(same_seeds.grid);
  same_seeds.make(0.002, {1, 2}, 10);
  same_seeds.make(Lab::run("llama", 1).experiment.optimizer.lr, {1, 2, 3}, 12);
  const Ablation shown = same_seeds.beside({same_seeds.own, same_seeds.grid});
  CHECK(factor_of_other_sets(shown) == 2);

  // The table was written when they were known.
  TwoTables afterwards;
  afterwards.recorded.erase(afterwards.grid.name);
  afterwards.make(0.002, {901, 902}, 10);
  afterwards.make(Lab::run("llama", 1).experiment.optimizer.lr, {1, 2, 3}, 12);
  CHECK(others(afterwards, {afterwards.own, afterwards.grid}) == 1);
}

TEST_CASE("a table that was declared together with another counts once", "[report][plan]") {
  const double own_lr = Lab::run("llama", 1).experiment.optimizer.lr;
  TwoTables both;
  both.make(0.002, {901, 902}, 9);
  both.make(0.002, {1, 2, 3}, 10);
  both.make(0.004, {1, 2, 3}, 11);
  both.make(own_lr, {1, 2, 3}, 12);
  const Ablation second = both.beside({both.own, both.grid});
  CHECK(second.rows[1].sets.tables == std::set<std::string>{"grid"});
  CHECK(factor_of_other_sets(second) == 2);
  CHECK(setup_of(second, "Other runs") == "runs of 1 other table counted (grid)");

  // With a config that has become what the other table found its grid is as many attempts.
  for (const double then : {own_lr, 0.1}) {
    TwoTables found;
    found.planned_lr = then;
    found.make(0.002, {1, 2, 3}, 10);
    found.make(0.004, {1, 2, 3}, 11);
    found.make(own_lr, {1, 2, 3}, 12);
    const Ablation picked = found.beside({found.own, found.grid});
    CHECK(picked.rows[1].sets.others.size() == (then == own_lr ? 0 : 2));
  }

  // So it is where this table has rows by a key of its own.
  for (const bool is_written : {false, true}) {
    TwoTables found;
    group_by(found.own, "train.batch_size");
    found.recorded[found.own.name] = design_key(found.own);
    int day = 10;
    for (const double lr : {0.002, 0.004, own_lr}) {
      found.planned_lr = is_written ? lr : own_lr;
      found.make(lr, {1, 2, 3}, day++);
    }
    const Ablation picked = found.beside({found.own, found.grid});
    CHECK(picked.rows[1].sets.others.size() == (is_written ? 2 : 0));
  }

  // What is shown is chosen by who reads the table: the other one accounts for no value of --by.
  TwoTables chosen;
  group_by(chosen.own, "optimizer.lr");
  chosen.recorded[chosen.own.name] = design_key(chosen.own);
  chosen.planned_lr = own_lr;
  int day = 0;  // runs end on the 20th
  for (const double lr : {own_lr, 0.002, 0.004})
    chosen.make(lr, {1, 2, 3}, day = day == 0 ? 10 : day + 11);
  const Ablation values = chosen.beside({chosen.own, chosen.grid});
  const auto newest = std::find_if(values.rows.begin(), values.rows.end(), [](const auto& row) {
    return row.spec.config == "canon_a" && row.group == "0.004";
  });
  REQUIRE(newest != values.rows.end());
  CHECK(newest->sets.others.size() == 2);
  CHECK(newest->sets.tables.empty());

  // Nor for values that are set beside what this table varies itself.
  const double own_decay = Lab::run("llama", 1).experiment.optimizer.weight_decay;
  for (const bool has_budget : {false, true}) {
    TwoTables set_beside;
    if (has_budget)
      set_beside.own.budget = BudgetSpec{Budget::tokens, ""};
    else
      set_beside.own.best_of =
          BestOfSpec{"optimizer.weight_decay", {own_decay}, "eval_loss", Extreme::lowest};
    set_beside.recorded[set_beside.own.name] = design_key(set_beside.own);
    set_beside.planned_lr = own_lr;
    set_beside.make(0.002, {1, 2, 3}, 10);
    set_beside.make(0.004, {1, 2, 3}, 11);
    const auto others = [&] {
      const Ablation ablation = set_beside.beside({set_beside.own, set_beside.grid});
      return ablation.rows[1].sets.others.size();
    };
    CHECK(others() == 1);
    set_beside.make(own_lr, {1, 2, 3}, 12);
    CHECK(others() == 0);
  }

  // Where the config was none without settings, nobody knows which of them it was to become.
  for (const bool is_grouped : {false, true}) {
    TwoTables set_only;
    if (is_grouped) group_by(set_only.own, "train.batch_size");
    set_only.recorded[set_only.own.name] = design_key(set_only.own);
    set_only.are_configs = false;
    set_only.make(0.002, {1, 2, 3}, 10);
    set_only.make(0.004, {1, 2, 3}, 11);
    set_only.make(own_lr, {1, 2, 3}, 12);
    const Ablation taken = set_only.beside({set_only.own, set_only.grid});
    CHECK(taken.rows[1].sets.others.size() == 2);
  }

  // Runs of it that come later change nothing.
  TwoTables first;
  first.make(own_lr, {1, 2, 3}, 10);
  first.make(0.002, {1, 2, 3}, 12);
  CHECK(factor_of_other_sets(first.beside({first.own, first.grid})) == 1);

  // One that was declared when the other's losses were known is another attempt.
  TwoTables later;
  later.recorded.erase(later.own.name);
  later.make(0.002, {1, 2, 3}, 10);
  later.recorded[later.own.name] = design_key(later.own);
  later.make(own_lr, {1, 2, 3}, 12);
  const Ablation attempt = later.beside({later.own, later.grid});
  CHECK(attempt.rows[1].sets.tables.empty());
  CHECK(factor_of_other_sets(attempt) == Approx(2 / 0.05));
}

TEST_CASE("a table with a budget counts once what another one declared at the configs' own lengths",
          "[report][plan]") {
  TableSpec flops = strict_table(), tokens = strict_table();
  tokens.name = "tokens";
  flops.budget = BudgetSpec{Budget::flops, ""};
  const std::map<std::string, std::string> both = {{flops.name, design_key(flops)},
                                                   {tokens.name, design_key(tokens)}};
  struct Made {
    int steps, day;
    std::map<std::string, std::string> recorded;
    int of_config;  ///< steps of the config by itself then
  };
  // Of a model of equal size llama's 2000 steps are equal FLOPs.
  const auto shown = [&](const std::vector<Made>& sets, const std::vector<TableSpec>& tables) {
    Lab lab;
    const auto make = [&](const std::string& config, const Made& made) {
      for (const int seed : {1, 2, 3}) {
        MadeRun run = Lab::run(config, made.day);
        run.id = join({config, std::to_string(made.day), std::to_string(seed)}, "-");
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.experiment.train.max_steps = made.of_config;
        run.planned_config = run::config_key(config::to_json(run.experiment));
        run.experiment.train.max_steps = made.steps;
        run.planned_tables = made.recorded;
        make_completed_run(lab.runs, run, {3 + 0.01 * (seed * seed + made.day)});
      }
    };
    make("llama", {2000, 9, both, 2000});
    for (const Made& made : sets) make("canon_a", made);
    AblationOptions options;
    options.project_tables = tables;
    const Ablation ablation = build_ablation(flops, lab.read(), options);
    REQUIRE(ablation.rows[1].run->max_steps == 2000);
    REQUIRE(ablation.rows[1].runs.size() == 3);
    return factor_of_other_sets(ablation);
  };
  const Made row = {2000, 12, both, 2100}, own = {2100, 10, both, 2100};
  const auto attempts = [](size_t k) { return Approx(double(k * (k - 1)) / 0.05); };
  CHECK(shown({row}, {flops, tokens}) == 1);
  CHECK(shown({own, row}, {flops, tokens}) == 2);
  CHECK(shown({{2100, 14, both, 2100}, row}, {flops, tokens}) == 1);  // later
  // It is as many attempts if the other table was deleted, or written when the runs were known, if
  // it varies something itself, or if the config is another one since.
  CHECK(shown({own, row}, {flops}) == attempts(2));
  std::map<std::string, std::string> flops_alone = both;
  flops_alone.erase(tokens.name);
  CHECK(shown({{2100, 10, flops_alone, 2100}, row}, {flops, tokens}) == attempts(2));
  CHECK(shown({own, {2000, 12, both, 2200}}, {flops, tokens}) == attempts(2));
  CHECK(shown({{2200, 8, both, 2200}, own, row}, {flops, tokens}) == Approx(2 * 2 / 0.05));
  CHECK(shown({{2200, 8, both, 2100}, own, row}, {flops, tokens}) ==
        Approx(2 * 2 / 0.05));  // --set
  TableSpec other = tokens;
  other.budget = BudgetSpec{Budget::flops, "canon_b"};
  std::map<std::string, std::string> of_budgets = both;
  of_budgets[other.name] = design_key(other);
  CHECK(shown({{2100, 10, of_budgets, 2100}, {2000, 12, of_budgets, 2100}}, {flops, other}) ==
        attempts(2));
}

TEST_CASE("a table that holds rows out to choose counts a plain one of the configs once",
          "[report][plan]") {
  TableSpec grid = strict_table(), plain = strict_table();
  plain.name = "plain";
  grid.best_of =
      BestOfSpec{"optimizer.lr", {0.002, 0.004}, "eval_loss", Extreme::lowest, 4, {901, 902}};
  const std::map<std::string, std::string> both = {{grid.name, recorded_design(grid)},
                                                   {plain.name, recorded_design(plain)}};
  /// Runs of the config as it is, or with what the table that chooses changes.
  struct Made {
    int day;
    bool is_plain;
    double lr;
    std::map<std::string, std::string> recorded;
    double lr_of_config = 0.002;
  };
  const auto factor = [&](const std::vector<Made>& sets, const std::vector<TableSpec>& tables) {
    Lab lab;
    const auto make = [&](const std::string& config, const Made& made) {
      for (const int seed :
           made.is_plain ? std::vector<int>{1, 2, 3} : std::vector<int>{901, 902, 1, 2, 3}) {
        MadeRun run = Lab::run(config, made.day);
        run.id = join({config, std::to_string(made.day), std::to_string(seed)}, "-");
        run.experiment.seed = static_cast<uint64_t>(seed);
        run.experiment.optimizer.lr = made.lr_of_config;
        run.planned_config = run::config_key(config::to_json(run.experiment));
        run.experiment.optimizer.lr = made.lr;
        run.experiment.train.validation_rows = made.is_plain ? 0 : 4;
        run.planned_tables = made.recorded;
        run.planned_seeds = seed > 900 ? std::vector<int64_t>{901, 902} : std::vector<int64_t>{};
        make_completed_run(lab.runs, run, {3 + 0.01 * (seed % 100 + made.day)});
      }
    };
    for (const double lr : {0.002, 0.004}) make("llama", {lr < 0.003 ? 8 : 9, false, lr, both});
    for (const Made& made : sets) make("canon_a", made);
    AblationOptions options;
    options.project_tables = tables;
    const Ablation ablation = build_ablation(grid, lab.read(), options);
    REQUIRE(ablation.rows[1].runs.size() == 3);
    return factor_of_other_sets(ablation);
  };
  const Made low = {12, false, 0.002, both}, high = {13, false, 0.004, both};
  const Made own = {10, true, 0.002, both};
  CHECK(factor({low, high}, {grid, plain}) == 1);
  CHECK(factor({own, low, high}, {grid, plain}) == 2);
  // Not where the other table is gone or came later, nor of another setting.
  const double attempt = 2 / 0.05;
  CHECK(factor({own, low, high}, {grid}) == Approx(attempt));
  std::map<std::string, std::string> grid_alone = both;
  grid_alone.erase(plain.name);
  CHECK(factor({{10, true, 0.002, grid_alone}, low, high}, {grid, plain}) == Approx(attempt));
  CHECK(factor({{10, true, 0.003, both}, low, high}, {grid, plain}) == Approx(attempt));  // --set
  CHECK(factor({{10, true, 0.003, both, 0.003}, low, high}, {grid, plain}) == Approx(attempt));
}

TEST_CASE("of tables that vary one key each counts by itself, with the values that it lists",
          "[report][plan]") {
  TableSpec plain = strict_table();
  plain.name = "plain";
  std::vector<TableSpec> tables = {plain};
  for (const int64_t rows : {4, 5, 6}) {
    TableSpec table = strict_table();
    table.name = "of " + std::to_string(rows);
    table.best_of = BestOfSpec{"optimizer.lr", {0.002}, "validation_loss", Extreme::lowest, rows};
    tables.push_back(table);
  }
  std::map<std::string, std::string> all;
  for (const TableSpec& table : tables) all[table.name] = recorded_design(table);
  nlohmann::json current;
  /// In the order in which they were made: with so many rows held out.
  const auto tables_counted = [&](const std::vector<int64_t>& sets) {
    Lab lab;
    for (size_t day = 0; day < sets.size(); ++day) {
      for (const char* config : {"llama", "canon_a"}) {
        for (const int seed : {1, 2, 3}) {
          MadeRun run = Lab::run(config, 10 + static_cast<int>(day));
          run.id = join({config, std::to_string(day), std::to_string(seed)}, "-");
          run.experiment.seed = static_cast<uint64_t>(seed);
          run.experiment.optimizer.lr = 0.002;
          if (config[0] == 'c') current = config::to_json(run.experiment);
          run.planned_config = run::config_key(config::to_json(run.experiment));
          run.experiment.train.validation_rows = sets[day];
          run.planned_tables = all;
          Outcome outcome{3 + 0.01 * seed + 0.02 * static_cast<double>(day)};
          outcome.validation_loss = 3;
          make_completed_run(lab.runs, run, outcome);
        }
      }
    }
    AblationOptions options;
    options.project_tables = tables;
    options.current_config = [&](const std::string&, const std::string&, const std::string&) {
      return current;
    };
    const Ablation ablation = build_ablation(tables.back(), lab.read(), options);
    REQUIRE(ablation.rows[1].runs.size() == 3);
    return ablation.rows[1].sets.tables;
  };
  CHECK(tables_counted({6}).empty());
  CHECK(tables_counted({5, 6}) == std::set<std::string>{"of 5"});
  CHECK(tables_counted({4, 5, 6}) == std::set<std::string>{"of 4", "of 5"});
  CHECK(tables_counted({0, 4, 5, 6}) == std::set<std::string>{"of 4", "of 5", "plain"});
}

/// Sets of runs by optimizer.eps, under several names. What a run finds depends on eps, the seed
/// and whether it is the baseline.
struct Names {
  Lab lab;

  static MadeRun made(
      const std::string& project, const std::string& config, int eps, int seed, int day) {
    MadeRun run = Lab::run(config, day);
    run.project = project;
    run.id = join({std::to_string(day), project, config, std::to_string(eps), std::to_string(seed)},
                  "-");
    run.experiment.seed = static_cast<uint64_t>(seed);
    run.experiment.optimizer.eps = 1e-8 * eps;
    run.planned_seeds = {1, 2, 3};
    return run;
  }

  void add(const std::string& project,
           const std::string& config,
           int eps,
           int day,
           const std::vector<int>& seeds = {1, 2, 3}) const {
    const bool is_baseline = contains(config, "llama");
    for (const int seed : seeds)
      make_completed_run(lab.runs,
                         made(project, config, eps, seed, day),
                         {3.0000001234 + 0.01 * seed * seed + 0.001 * eps + is_baseline});
  }

  /// Four sets, on the days from 10 on.
  void add_four(const std::string& project,
                const std::string& baseline = "llama",
                const std::string& other = "canon_a") const {
    for (int eps = 1; eps <= 4; ++eps) {
      add(project, baseline, eps, 9 + eps);
      add(project, other, eps, 9 + eps);
    }
  }

  /// The table of a project, of whose runs those with `archived` in their names are.
  Ablation of(const std::string& project,
              const std::string& archived = "none",
              const TableSpec& table = strict_table()) const {
    AblationOptions options;
    std::vector<store::ConfiguredRun> shown;
    std::vector<store::RunSummary> all;
    for (const store::ConfiguredRun& run : lab.read()) {
      all.push_back(run.summary);
      (run.summary.project != project       ? options.elsewhere
       : contains(run.summary.id, archived) ? options.archived
                                            : shown)
          .push_back(run);
    }
    options.repetitions = first_runs_of(all);
    return build_ablation(table, shown, options);
  }
};

TEST_CASE("a value of best_of that other rows of text choose is of another set", "[report][plan]") {
  TableSpec table = strict_table();
  table.must_be_equal.emplace_back("train");
  table.best_of =
      BestOfSpec{"optimizer.lr", {0.001, 0.002, 0.003}, "validation_loss", Extreme::lowest};
  const auto built = [&](const std::vector<int64_t>& tuning_seeds, int64_t declared) {
    table.best_of->tuning_seeds = tuning_seeds;
    table.best_of->validation_rows = declared;
    Lab lab;
    for (int round = 0; round < 3; ++round) {
      for (const char* config : {"llama", "canon_a"}) {
        for (int value = 0; value < 3; ++value) {
          for (const int seed : {1, 2, 3, 4}) {
            const bool is_tuning = seed < 3;
            if (!is_tuning && !tuning_seeds.empty() && value != round) continue;
            MadeRun run = Lab::run(config, round == 0 ? 10 : 20 + round);  // runs end on the 20th
            run.id = join(
                {config, std::to_string(round), std::to_string(value), std::to_string(seed)}, "-");
            run.experiment.seed = static_cast<uint64_t>(seed);
            run.experiment.optimizer.lr = 0.001 * (value + 1);
            run.experiment.train.validation_rows = 10 + round;
            const double loss =
                3.0000001234 + 0.01 * seed * seed + 0.001 * value + (config[0] == 'l');
            Outcome outcome{loss};
            outcome.validation_loss = (value == round ? 2 : 3) + 0.1 * round;
            make_completed_run(lab.runs, run, outcome);
          }
        }
      }
    }
    AblationOptions options;
    std::vector<store::RunSummary> all;
    for (const store::ConfiguredRun& run : lab.read()) all.push_back(run.summary);
    options.repetitions = first_runs_of(all);
    return build_ablation(table, lab.read(), options);
  };
  for (const std::vector<int64_t>& tuning_seeds : {std::vector<int64_t>{1, 2}, {}}) {
    for (const int64_t declared : {0, 12}) {  // by the table, as it is now
      const Ablation ablation = built(tuning_seeds, declared);
      INFO(tuning_seeds.size() << " " << declared);
      REQUIRE(ablation.rows[1].varied == 0.003);
      CHECK(setup_of(ablation, "Other runs") ==
            "2 earlier sets of runs counted (train.validation_rows)");
    }
  }
}

/// The factor of the k-th set.
Approx of_set(int k) { return Approx(k * (k - 1) / 0.05); }

TEST_CASE("what was tried in another project counts where its runs are repeated",
          "[report][plan]") {
  const Names names;
  names.add_four("scratch");
  names.add("clean", "llama", 3, 21);
  names.add("clean", "canon_a", 3, 21);
  const std::string counted =
      "2 earlier sets of runs counted, 1 set of runs made since (optimizer.eps)";
  const Ablation ablation = names.of("clean");
  CHECK(setup_of(ablation, "Repetitions") == "6 of 6 runs repeat older ones");
  CHECK(setup_of(ablation, "Other runs") == counted);
  CHECK(factor_of_other_sets(ablation) == of_set(3));
  // A set that was given up there may have been poor.
  for (const int seed : {1, 2})
    make_failed_run(
        names.lab.runs, Names::made("scratch", "llama", 9, seed, 9), 20, "the loss is no number");
  CHECK(factor_of_other_sets(names.of("clean")) == of_set(4));
  CHECK(setup_of(names.of("clean"), "Plan") ==
        "not as planned: 3 seeds of other sets of runs did not complete");
  // What nobody ran there is new here.
  names.add("new", "llama", 5, 21);
  names.add("new", "canon_a", 5, 21);
  CHECK(factor_of_other_sets(names.of("new")) == 1);
}

TEST_CASE("what was tried before a config was renamed counts", "[report][plan]") {
  const Names names;
  names.add_four("canon", "old_llama", "old_canon");
  names.add("canon", "llama", 3, 21);
  names.add("canon", "canon_a", 3, 21);
  CHECK(factor_of_other_sets(names.of("canon")) == of_set(3));
}

TEST_CASE("what was tried before the copy of a copy counts", "[report][plan]") {
  const Names names;
  names.add_four("scratch");
  for (const char* config : {"llama", "canon_a"}) {
    for (const int eps : {3, 5, 6}) names.add("copy", config, eps, 19 + eps);
    names.add("clean", config, 6, 26);
  }
  const Ablation ablation = names.of("clean");
  CHECK(setup_of(ablation, "Other runs") == "5 earlier sets of runs counted (optimizer.eps)");
  CHECK(factor_of_other_sets(ablation) == of_set(6));
  CHECK(factor_of_other_sets(names.of("copy")) == of_set(6));
}

TEST_CASE("what was tried counts where a part of the runs is repeated", "[report][plan]") {
  const Names some_seeds;
  some_seeds.add_four("scratch");
  for (const char* config : {"llama", "canon_a"})
    some_seeds.add("clean", config, 3, 21, {1, 11, 12});
  // Of seeds that nobody has run it is new: all four were known, of which it is one.
  CHECK(setup_of(some_seeds.of("clean"), "Other runs") ==
        "3 earlier sets of runs counted (optimizer.eps)");

  const Names baseline_alone;
  baseline_alone.add_four("scratch");
  baseline_alone.add("clean", "llama", 3, 21);
  baseline_alone.add("clean", "canon_a", 3, 21, {4, 5, 6});
  const Ablation ablation = baseline_alone.of("clean");
  CHECK(ablation.rows[0].sets.others.size() == 3);
  CHECK(ablation.rows[1].sets.others.size() == 3);  // of the project that this is a copy of
  CHECK(factor_of_other_sets(ablation) == of_set(4));

  // A run of another name makes no copy.
  const Names renamed;
  renamed.add_four("scratch", "old_llama");
  renamed.add("clean", "llama", 3, 21);
  renamed.add("clean", "canon_a", 3, 21, {4, 5, 6});
  CHECK(renamed.of("clean").rows[0].sets.others.size() == 3);
  CHECK(renamed.of("clean").rows[1].sets.others.empty());
}

TEST_CASE("who repeats runs elsewhere changes no verdict on the older ones", "[report][plan]") {
  const Names names;
  names.add("first", "llama", 1, 10);
  names.add("first", "canon_a", 1, 10);
  names.add_four("second");
  for (const char* config : {"llama", "canon_a"}) names.add("second", config, 1, 21);
  CHECK(setup_of(names.of("first"), "Other runs") == "");
  // Nor does one who does so under the same name, when the row's runs are there.
  names.add("first", "llama", 4, 22);
  names.add("first", "canon_a", 4, 22);
  CHECK(factor_of_other_sets(names.of("first", "-4-")) == 1);
}

TEST_CASE("what another row shows was not tried for this one", "[report][plan]") {
  const Names names;
  names.add("clean", "llama", 1, 10);
  names.add("clean", "llama", 2, 11);  // by --set, and then by a config of that name
  for (const int seed : {1, 2, 3})
    make_completed_run(names.lab.runs,
                       Names::made("clean", "canon_a", 2, seed, 21),
                       {3.0000001234 + 0.01 * seed * seed + 0.001 * 2 + 1});
  const Ablation ablation = names.of("clean", "llama-2", small_table());
  CHECK(setup_of(ablation, "Repetitions") == "3 of 6 runs repeat older ones");
  CHECK(ablation.rows[1].sets.others.empty());
}

TEST_CASE("seeds that were run under another name are told of", "[report][plan]") {
  Lab lab;
  const auto add = [&](const std::string& config, const std::string& id, int seed) {
    MadeRun run = Lab::run(config, 10);
    run.id = id + std::to_string(seed);
    run.experiment.seed = static_cast<uint64_t>(seed);
    make_completed_run(lab.runs, run, {3 + 0.01 * seed + (config[0] == 'l')});
  };
  for (const int seed : {2, 3}) {
    add("llama", "llama", seed);
    add("canon_a", "canon_a", seed);
  }
  CHECK(setup_of(lab.table(), "Other seeds") == "");
  MadeRun pilot = Lab::run("llama", 5);
  for (const int seed : {1, 2, 3, 4}) {  // of the one experiment that the lab's configs are
    pilot.id = "pilot" + std::to_string(seed);
    pilot.config = "pilot";
    pilot.experiment.seed = static_cast<uint64_t>(seed);
    make_completed_run(lab.runs, pilot, {4 + 0.01 * seed});
  }
  const Ablation ablation = lab.table();
  CHECK(ablation.rows[0].other_seeds == std::set<int64_t>{1, 4});
  CHECK(ablation.rows[1].other_seeds == std::set<int64_t>{1, 4});
  CHECK(setup_of(ablation, "Other seeds") == "4 seeds of these experiments not shown");
}

}  // namespace
}  // namespace forge::tables
