#include "core/results/tables/known_seeds.h"

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/results/tables/repetitions.h"
#include "core/results/tables/table_design.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

/// Runs of which all end on the 20th: those that are planned later find what they found.
struct Commands {
  using Change = std::function<void(MadeRun&)>;
  Lab lab;

  /// One command of these configs and seeds; what a run finds depends on its settings too.
  void run(const std::vector<std::string>& configs,
           const std::vector<int>& seeds,
           int day,
           const Change& change = {}) const {
    for (const std::string& config : configs) {
      for (size_t i = 0; i < seeds.size(); ++i) {
        MadeRun made = Lab::run(config, day);
        made.created = made.created.substr(0, 20) + std::to_string(100 + i) + "Z";  // the order
        made.id = join({std::to_string(100 + day), config, std::to_string(seeds[i])}, "-");
        made.experiment.seed = static_cast<uint64_t>(seeds[i]);
        made.planned_seeds.assign(seeds.begin(), seeds.end());
        if (change) change(made);
        Outcome outcome;
        outcome.eval_loss =
            3 + std::sqrt(seeds[i]) / 70 + 1e4 * made.experiment.optimizer.eps + (config[0] == 'l');
        outcome.is_exact = true;
        make_completed_run(lab.runs, made, outcome);
      }
    }
  }

  static Change eps(double value) {
    return [value](MadeRun& made) { made.experiment.optimizer.eps = value; };
  }

  /// Each seed alone, with an optimizer.eps of its own.
  void try_one_by_one(const std::vector<std::string>& configs,
                      const std::vector<int>& seeds,
                      int first_day = 1) const {
    for (size_t i = 0; i < seeds.size(); ++i)
      run(configs,
          {seeds[i]},
          first_day + static_cast<int>(i),
          eps(1e-8 + 1e-10 * static_cast<double>(i + 1)));
  }

  /// What the table says against comparing a row, "" if it compares it.
  std::string of(size_t row, const TableSpec& table = small_table()) const {
    std::vector<store::RunSummary> all;
    const std::vector<store::ConfiguredRun> runs = lab.read();
    for (const store::ConfiguredRun& run : runs) all.push_back(run.summary);
    AblationOptions options;
    options.repetitions = first_runs_of(all);
    const Ablation ablation = build_ablation(table, runs, options);
    return join(ablation.rows.at(row).violations, "; ");
  }
  std::string baseline() const { return of(0); }
  std::string canon_a() const { return of(1); }
  std::string canon_b() const { return of(2); }
};

const std::vector<std::string> both = {"llama", "canon_a"};

std::vector<int> up_to(int last) {
  std::vector<int> seeds;
  for (int seed = 1; seed <= last; ++seed) seeds.push_back(seed);
  return seeds;
}

TEST_CASE("seeds that were picked from a known baseline's are no sample", "[report][plan]") {
  Commands commands;
  commands.run({"llama"}, up_to(40), 10);
  commands.run({"canon_a"}, {3, 7, 12}, 21);
  CHECK(commands.canon_a() ==
        "its seeds may have been chosen: 3 of its 3 seeds were known when they were begun, and "
        "it lacks 9 that were known before these (1, 2, 4, 5, 6, 8, 9, 10 and 1 more): the first "
        "known seeds are compared, or new ones");
  CHECK(commands.baseline() == "");
  // It has all of them in the end.
  commands.run({"canon_a"}, {1, 2, 4, 5, 6, 8, 9, 10}, 22);
  CHECK(contains(commands.canon_a(), "lacks 1 that were known before these (11)"));
  commands.run({"canon_a"}, {11}, 23);
  CHECK(commands.canon_a() == "");
}

TEST_CASE("known seeds were known wherever they were run", "[report][plan]") {
  const auto imported = [](MadeRun& made) { made.imported = Lab::run("", 25).created; };
  Commands commands;
  commands.run({"llama"}, up_to(40), 10, imported);
  commands.run({"canon_a"}, {3, 7, 12}, 21);  // on this machine, before the others came
  CHECK(contains(commands.canon_a(), "it lacks 9 that were known before these"));
  Commands alike;
  alike.run({"llama"}, up_to(40), 10, imported);
  alike.run({"canon_a"}, {1, 2, 3}, 21);
  CHECK(alike.canon_a() == "");
  // Who imports the row's runs knows what was told until then.
  Commands both_ways;
  both_ways.run({"llama"}, up_to(40), 10);
  both_ways.run({"canon_a"}, {3, 7, 12}, 5, imported);
  CHECK(contains(both_ways.canon_a(), "it lacks 9 that were known before these"));
}

TEST_CASE("seeds that were picked to be repeated under another name are no sample",
          "[report][plan]") {
  Commands commands;
  commands.run({"old_canon"}, up_to(40), 10);
  commands.run({"canon_a"}, {1, 2, 3}, 21);  // with the losses of the old ones
  CHECK(commands.canon_a() == "");
  Commands picked;
  picked.run({"old_canon"}, up_to(40), 10);
  picked.run({"canon_a"}, {3, 7, 12}, 21);
  CHECK(contains(picked.canon_a(), "it lacks 9 that were known before these"));
}

TEST_CASE("seeds that were tried one by one and picked are no sample", "[report][plan]") {
  const Commands picked;
  picked.try_one_by_one(both, up_to(8));
  picked.run(both, {2, 5, 6}, 21);
  CHECK(contains(picked.baseline(), "it lacks 3 that were known before these (1, 3, 4)"));
  CHECK(contains(picked.canon_a(), "it lacks 3 that were known before these (1, 3, 4)"));
  // It does not matter of which row they were known, or under which name.
  const Commands of_one;
  of_one.try_one_by_one({"canon_b"}, up_to(8));
  of_one.run(both, {2, 5, 6}, 21);
  CHECK(contains(of_one.baseline(), "may have been chosen"));
  CHECK(contains(of_one.canon_a(), "may have been chosen"));
  const Commands renamed;
  renamed.try_one_by_one({"old_canon"}, up_to(8));
  renamed.try_one_by_one({"canon_a"}, {1}, 21);  // what the old one had found
  renamed.run({"canon_a"}, {2, 5, 6}, 22);
  CHECK(contains(renamed.canon_a(), "it lacks 3 that were known before these (1, 3, 4)"));
  // Others follow it: they have no better reason.
  picked.run({"canon_b"}, {2, 5, 6}, 22);
  CHECK(contains(picked.canon_b(), "may have been chosen"));
}

TEST_CASE("the first known seeds are a sample, and so are new ones", "[report][plan]") {
  const Commands same;  // for all rows, one command or several
  same.run(both, up_to(5), 10);
  same.run({"canon_b"}, up_to(5), 21);
  CHECK(same.baseline() + same.canon_a() + same.canon_b() == "");
  same.run(both, {6, 7, 8, 9, 10}, 22);
  same.run({"canon_b"}, {6, 7, 8, 9, 10}, 23);
  CHECK(same.baseline() + same.canon_a() + same.canon_b() == "");

  const Commands less;
  less.run({"llama"}, up_to(10), 10);
  less.run({"canon_a"}, up_to(3), 21);
  less.run({"canon_b"}, {11, 12, 13}, 21);
  CHECK(less.canon_a() + less.canon_b() == "");

  const Commands tried;  // then planned
  for (int i = 1; i <= 8; ++i) tried.run(both, {1}, i, Commands::eps(1e-8 + 1e-10 * i));
  tried.run(both, up_to(5), 21);
  CHECK(tried.baseline() + tried.canon_a() == "");

  const Commands new_ones;
  new_ones.try_one_by_one(both, {1, 2, 3, 7, 9});
  new_ones.run(both, {11, 4, 6}, 21);
  CHECK(new_ones.baseline() + new_ones.canon_a() == "");

  const Commands planned_before;
  planned_before.run({"llama"}, up_to(40), 10);
  planned_before.run({"canon_a"}, {9, 3, 31}, 12);  // nothing has ended then
  CHECK(planned_before.canon_a() == "");

  const Commands in_its_order;
  in_its_order.run({"llama"}, {9, 3, 31, 1, 2}, 10);
  in_its_order.run({"canon_a"}, {3, 9, 31}, 21);
  in_its_order.run({"canon_b"}, up_to(3), 21);
  CHECK(in_its_order.canon_a() == "");
  CHECK(contains(in_its_order.canon_b(), "it lacks 2 that were known before these (9, 31)"));
}

TEST_CASE("seeds of runs that waited until others were known are chosen", "[report][plan]") {
  const auto canon_a_begun = [](int day, bool are_others_running) {
    const Commands commands;
    commands.run({"llama"}, up_to(6), 10);
    commands.run(
        {"canon_a"}, {3, 5, 6}, 12, [&](MadeRun& made) { made.begun = Lab::run("", day).created; });
    std::vector<FileLock> running;
    for (const int seed : {1, 2, 4}) {
      MadeRun made = Lab::run("canon_a", 12);
      made.id = "running-" + std::to_string(seed);
      made.experiment.seed = static_cast<uint64_t>(seed);
      if (are_others_running) running.push_back(make_running_run(commands.lab.runs, made, 10));
    }
    return commands.canon_a();
  };
  CHECK(canon_a_begun(13, false) == "");
  CHECK(contains(canon_a_begun(25, false), "it lacks 3 that were known before these (1, 2, 4)"));
  CHECK(canon_a_begun(25, true) == "");
}

TEST_CASE("seeds that one command planned for both rows are no choice, whatever was tried before",
          "[report][plan]") {
  const auto canon_a = [](const std::vector<int>& of_canon_a, bool does_another_wait) {
    const Commands commands;
    commands.run({"llama"}, {7, 8}, 5);
    for (const char* id : {"105-llama-7", "105-llama-8"})
      set_times(run::RunFolder(commands.lab.runs / id), time_of_day(6), time_of_day(6));
    commands.run({"llama"}, {1, 2, 3}, 12);
    // They were planned with these, and begun when they had told.
    commands.run(
        {"canon_a"}, of_canon_a, 12, [](MadeRun& made) { made.begun = Lab::run("", 25).created; });
    MadeRun waits = Lab::run("canon_a", 12);
    waits.id = "waits";
    waits.experiment.seed = 4;
    if (does_another_wait) make_unstarted_run(commands.lab.runs, waits);
    return commands.canon_a();
  };
  CHECK(canon_a({1, 2, 3}, false) == "");
  CHECK(contains(canon_a({1, 2, 3}, true), "lacks 2 that were known before these (7, 8)"));
  CHECK(contains(canon_a({1, 2}, false), "lacks 2 that were known before these (7, 8)"));
}

TEST_CASE("a row may have the seeds of another one, whatever was tried before", "[report][plan]") {
  const Commands commands;
  commands.try_one_by_one({"canon_b"}, {7, 8, 9});
  commands.run({"llama"}, up_to(5), 12);
  commands.run({"canon_a"}, up_to(5), 21);
  CHECK(commands.canon_a() == "");
  commands.run({"canon_b"}, {2, 4, 5}, 21);
  CHECK(contains(commands.canon_b(), "(1, 3, 7, 8, 9)"));
}

TEST_CASE("a single known seed is no choice", "[report][plan]") {
  const Commands commands;
  commands.try_one_by_one(both, {42, 1});
  commands.run(both, up_to(5), 21);
  CHECK(commands.baseline() + commands.canon_a() == "");
}

TEST_CASE("seeds that a row was tuned with are not passed over", "[report][plan]") {
  TableSpec table = small_table();
  table.best_of =
      BestOfSpec{"optimizer.lr", {0.002, 0.004}, "eval_loss", Extreme::lowest, 0, {901, 902}};
  const auto lr = [](double value) {
    return [value](MadeRun& made) {
      made.experiment.optimizer.lr = value;
      made.id += value < 0.003 ? "-low" : "-high";
    };
  };
  const Commands commands;
  for (const double value : {0.002, 0.004}) commands.run(both, {901, 902}, 10, lr(value));
  commands.run({"canon_a"}, up_to(3), 12, lr(0.002));
  commands.run({"llama"}, up_to(3), 21, lr(0.002));
  CHECK(commands.of(0, table) == "");
  CHECK(commands.of(1, table) == "");
}

TEST_CASE("seeds that were known before they became tuning seeds are passed over",
          "[report][plan]") {
  TableSpec table = small_table();
  table.best_of = BestOfSpec{"optimizer.lr", {0.002}, "eval_loss", Extreme::lowest, 0, {1, 2}};
  const auto recording = [](std::map<std::string, std::string> tables, double eps) {
    return [=](MadeRun& made) {
      made.experiment.optimizer.lr = 0.002;
      made.experiment.optimizer.eps = eps;
      made.planned_tables = tables;
    };
  };
  const std::map<std::string, std::string> now = {{table.name, recorded_design(table)}};
  const auto violations = [&](const std::map<std::string, std::string>& of_preview, double eps) {
    const Commands commands;
    commands.run(both, {1, 2, 3, 4, 5}, 10, recording(of_preview, eps));
    commands.run(both, {1, 2}, 21, recording(now, 1e-8));
    commands.run(both, {3, 4, 5}, 22, recording(now, 1e-8));
    return commands.of(1, table);
  };
  CHECK(contains(violations({}, 2e-8), "it lacks 2 that were known before these (1, 2)"));
  CHECK(violations(now, 2e-8) == "");
}

TEST_CASE("seeds that were tuning seeds when they were run are no sample", "[report][plan]") {
  TableSpec table = small_table();
  table.best_of =
      BestOfSpec{"optimizer.lr", {0.002}, "eval_loss", Extreme::lowest, 0, {1, 2, 3, 4, 5, 6}};
  const auto recording = [](const TableSpec& then, double eps = 1e-8) {
    return [&then, eps](MadeRun& made) {
      made.experiment.optimizer.lr = 0.002;
      made.experiment.optimizer.eps = eps;
      made.planned_tables = std::map<std::string, std::string>{{then.name, recorded_design(then)}};
    };
  };
  TableSpec picked = table;
  picked.best_of->tuning_seeds = {4, 5, 6};
  const std::string why =
      "its seeds may have been chosen: 3 of its 3 seeds were tuning seeds when they were run (1, "
      "2, 3): run new ones, or declare these again";
  const Commands commands;
  commands.run(both, up_to(6), 10, recording(table));
  CHECK(commands.of(0, picked) == why);
  CHECK(commands.of(1, picked) == why);
  TableSpec divided = picked;
  group_by(divided, "optimizer.eps");
  CHECK(commands.of(1, divided) == why);
  TableSpec not_tuned = picked;
  not_tuned.best_of.reset();
  CHECK(contains(commands.of(1, not_tuned), "6 of its 6 seeds were tuning seeds"));
  // Rows by the key of best_of show the tuning seeds that the table declares.
  TableSpec by_value = table;
  group_by(by_value, "optimizer.lr");
  CHECK(commands.of(1, by_value) == "");
  // Seeds that are run again are known all the same.
  commands.run(both, up_to(3), 21, recording(picked, 2e-8));
  commands.run(both, {4, 5, 6}, 21, recording(picked, 2e-8));
  CHECK(contains(commands.of(1, picked), "were tuning seeds when they were run"));

  const Commands new_ones;  // declared, and not run as tuning seeds
  new_ones.run(both, {4, 5, 6}, 10, recording(table));
  new_ones.run(both, up_to(3), 21, recording(picked));
  CHECK(new_ones.of(0, picked) == "");
  CHECK(new_ones.of(1, picked) == "");
}

TEST_CASE("what tuned another table is neither shown nor lacked", "[report][plan]") {
  TableSpec grid = small_table();
  grid.name = "grid";
  grid.best_of =
      BestOfSpec{"optimizer.lr", {0.002, 0.004}, "eval_loss", Extreme::lowest, 0, {901, 902, 903}};
  const TableSpec table = small_table();
  const auto recording = [&](double lr, double eps = 1e-8, const std::string& more = "") {
    return [=](MadeRun& made) {
      made.experiment.optimizer.lr = lr;
      made.experiment.optimizer.eps = eps;
      made.id += (lr < 0.003 ? "-low" : "-high") + more;
      made.planned_tables = std::map<std::string, std::string>{
          {grid.name, recorded_design(grid)}, {table.name, recorded_design(table)}};
    };
  };
  const auto rows_of = [&](const Commands& commands) {
    return build_ablation(table, commands.lab.read()).rows;
  };
  const Commands commands;
  for (const double lr : {0.002, 0.004}) commands.run(both, {901, 902, 903}, 10, recording(lr));
  CHECK_FALSE(rows_of(commands)[1].is_comparable());   // there is no sample yet
  commands.run(both, up_to(4), 12, recording(0.004));  // the rows of the other table
  commands.run(both, up_to(4), 14, recording(0.002));
  for (const AblationRow& row : rows_of(commands)) {
    if (row.spec.config == "canon_b") continue;
    CHECK(row.runs.size() == 4);
    CHECK(row.planned_seeds == 4);
    CHECK(row.violations.empty());
  }
  // Nor is what repeats it, and who takes some of these seeds for other runs takes known ones.
  commands.run(both, {901, 902}, 21, recording(0.002, 1e-8, "-again"));
  CHECK(rows_of(commands)[1].runs.size() == 4);
  Commands other;
  other.run(both, {901, 902, 903}, 10, recording(0.002));
  other.run(both, {902, 903, 904}, 21, recording(0.002, 2e-8));
  CHECK(contains(other.canon_a(), "it lacks 1 that were known before these (901)"));
  // A command of other seeds as well was none to tune that table.
  const Commands mixed;
  mixed.run(both, {901, 902, 1, 2}, 10, recording(0.002));
  CHECK(rows_of(mixed)[1].runs.size() == 4);
}

TEST_CASE("seeds are known from their first losses, also if their runs go on later",
          "[report][plan]") {
  const auto canon_a_beside_llama = [](int day_of_losses) {
    const Commands commands;
    std::vector<std::string> ids;
    commands.run({"llama"}, up_to(8), 10, [&](const MadeRun& made) { ids.push_back(made.id); });
    for (const std::string& id : ids)
      set_times(
          run::RunFolder(commands.lab.runs / id), time_of_day(day_of_losses), time_of_day(28));
    commands.run({"canon_a"}, {3, 5, 7}, 25);
    return commands.canon_a();
  };
  CHECK(contains(canon_a_beside_llama(21), "it lacks 4 that were known before these (1, 2, 4, 6)"));
  CHECK(canon_a_beside_llama(26) == "");
}

TEST_CASE("seeds that failed and were repeated are not chosen", "[report][plan]") {
  const Commands commands;
  commands.run({"llama"}, up_to(10), 10);
  MadeRun failed = Lab::run("canon_a", 21);
  failed.id = "failed";
  failed.experiment.seed = 1;
  make_failed_run(commands.lab.runs, failed, 20, "out of memory");
  commands.run({"canon_a"}, {2, 3}, 21);
  commands.run({"canon_a"}, {1}, 22);
  CHECK(commands.canon_a() == "");
}

}  // namespace
}  // namespace forge::tables
