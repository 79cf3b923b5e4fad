#include "core/results/tables/repetitions.h"

#include <cmath>
#include <functional>

#include "core/base/text.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/run_times.h"
#include "core/results/tables/table_design.h"
#include "core/results/tables/verdicts.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;
using store::RunSummary;

/// A run of seed 1 that was planned and ended on these days of November.
RunSummary completed(const std::string& id, int planned, int ended) {
  RunSummary run;
  run.id = id;
  run.key = id;
  run.status = run::RunState::completed;
  run.seed = 1;
  run.parameters = 4434176;
  run.tokens = 30720;
  run.created = "2026-11-" + std::to_string(planned) + "T10:00:00.000Z";
  run.updated = "2026-11-" + std::to_string(ended) + "T10:00:00.000Z";
  run.metrics = {{"eval_loss", 3.14159265358979}, {"train_loss", 2.71828182845905}};
  return run;
}

/// The id of the first run with the numbers of `repeated`, "" for none.
std::string first_id(const RunSummary& repeated, const std::vector<RunSummary>& older) {
  std::vector<RunSummary> runs = {repeated};  // in any order
  runs.insert(runs.end(), older.begin(), older.end());
  const FirstRuns found = first_runs_of(runs);
  const auto first = found.find(repeated.id);
  return first == found.end() ? "" : first->second.id;
}

TEST_CASE("a run with the numbers of an older one is that one", "[report][plan]") {
  const RunSummary old = completed("old", 12, 13);
  CHECK(first_id(completed("new", 20, 21), {old}) == "old");
  CHECK(first_id(completed("new", 20, 21), {completed("older", 10, 11), old}) == "older");
  const auto changed = [&](const std::function<void(RunSummary&)>& change) {
    RunSummary run = completed("new", 20, 21);
    change(run);
    return first_id(run, {old});
  };
  CHECK(changed([](RunSummary& run) { run.config = run.project = "another"; }) == "old");
  CHECK(changed([](RunSummary& run) { run.archived = 1; }) == "old");
  // Another log_every makes another training loss, other rows another evaluation.
  CHECK(changed([](RunSummary& run) { run.metrics["train_loss"] = 2.5; }) == "old");
  CHECK(changed([](RunSummary& run) { run.metrics["eval_loss"] = 3.5; }) == "old");
  CHECK(changed([](RunSummary& run) { run.metrics.erase("eval_loss"); }) == "old");
  CHECK(changed([](RunSummary& run) {
          run.metrics = {{"eval_loss", 3.14159265358978}, {"train_loss", 2.71828182845904}};
        }) == "");
  CHECK(changed([](RunSummary& run) { run.seed = 2; }) == "");
  CHECK(changed([](RunSummary& run) { run.parameters += 1; }) == "");
  CHECK(changed([](RunSummary& run) { run.tokens += 1024; }) == "");
  CHECK(changed([](RunSummary& run) { run.status = run::RunState::stopped; }) == "");
}

TEST_CASE("a run that was planned before the other one ended repeats nothing", "[report][plan]") {
  CHECK(first_id(completed("new", 20, 22), {completed("old", 10, 21)}) == "");
  CHECK(first_id(completed("new", 20, 22), {completed("old", 10, 20)}) == "old");
  CHECK(first_id(completed("new", 20, 22), {completed("long", 10, 30), completed("old", 12, 14)}) ==
        "old");
}

TEST_CASE("a run that goes on later was known from its first loss on", "[report][plan]") {
  RunSummary old = completed("old", 10, 25);
  old.first_loss = "2026-11-12T10:00:00.000Z";
  CHECK(first_id(completed("new", 20, 22), {old}) == "old");
  CHECK(first_id(old, {completed("new", 20, 22)}) == "");
  old.first_loss = "2026-11-21T10:00:00.000Z";
  CHECK(first_id(completed("new", 20, 22), {old}) == "");
}

TEST_CASE("numbers that are rounded may be equal by chance", "[report][plan]") {
  RunSummary old = completed("old", 10, 11), repeated = completed("new", 20, 21);
  old.metrics = repeated.metrics = {{"eval_loss", 3.1416}, {"train_loss", 2.718}};
  CHECK(first_id(repeated, {old}) == "");
  repeated.key = old.key;  // of one identity they are no chance
  CHECK(first_id(repeated, {old}) == "old");
  repeated.metrics["eval_loss"] = 3.1417;
  CHECK(first_id(repeated, {old}) == "");
  // A loss that is no number, or that is nothing, tells no runs apart.
  for (const double loss : {std::nan(""), 0.0}) {
    old.metrics = repeated.metrics = {{"eval_loss", loss}, {"train_loss", loss}};
    CHECK(first_id(repeated, {old}) == "");
  }
}

TEST_CASE("what one loss and another loss have in common is one run", "[report][plan]") {
  RunSummary first = completed("first", 10, 11), middle = completed("middle", 12, 13);
  middle.metrics["train_loss"] = 2.5123451234;
  RunSummary last = completed("last", 20, 21);
  last.metrics = {{"eval_loss", 3.5123451234}, {"train_loss", 2.5123451234}};
  CHECK(first_id(last, {middle, first}) == "first");
}

/// Three seeds of llama and canon_a, looked at one after another, and the same again with a plan
/// and a table that was written meanwhile, changed by `change`.
struct Laundered {
  Lab lab;
  TableSpec table = small_table();

  explicit Laundered(const std::function<void(MadeRun&)>& change, bool as_gpu = false) {
    table.columns.push_back({ColumnKind::metric, "Train loss", "train_loss"});
    table.must_be_equal = {"profile", "data", "tokenizer", "evaluation"};
    for (const bool again : {false, true}) {
      for (const std::string config : {"llama", "canon_a"}) {
        for (int seed = 1; seed <= 3; ++seed) {
          MadeRun run = Lab::run(config, (again ? 20 : 10) + seed);
          run.id = config + "-" + std::to_string(seed) + (again ? "-again" : "");
          run.experiment.seed = static_cast<uint64_t>(seed);
          run.planned_seeds = again ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{seed};
          run.planned_tables = std::map<std::string, std::string>();
          if (again) {
            run.planned_tables =
                std::map<std::string, std::string>{{table.name, design_key(table)}};
            change(run);
          }
          const double other = as_gpu && again ? 1e-5 * seed * seed : 0;
          make_completed_run(
              lab.runs, run, {3.0000001234 + 0.01 * seed * seed + other + (config == "llama")});
        }
      }
    }
  }

  /// The table of the runs that `is_shown`; the others are archived.
  Ablation built(const std::function<bool(const RunSummary&)>& is_shown = {}) const {
    AblationOptions options;
    std::vector<store::ConfiguredRun> shown;
    std::vector<RunSummary> all;
    for (store::ConfiguredRun& run : lab.read()) {
      all.push_back(run.summary);
      if (run.summary.project != MadeRun().project) {
        options.elsewhere.push_back(run);
      } else {
        (!is_shown || is_shown(run.summary) ? shown : options.archived).push_back(run);
      }
    }
    options.repetitions = first_runs_of(all);
    return build_ablation(table, shown, options);
  }
};

std::string short_text(const Ablation& ablation, const std::string& name) {
  for (const SetupEntry& entry : ablation.setup)
    if (entry.name == name) return entry.short_text;
  return "";
}

void require_known_before(const Ablation& ablation) {
  REQUIRE(ablation.rows[1].runs.size() == 3);
  CHECK(ends_with(ablation.rows[1].run->id, "-again"));
  CHECK(ablation.rows[1].is_comparable());
  CHECK(short_text(ablation, "Plan") == "number of seeds not planned");
  CHECK(short_text(ablation, "Table") == "table written after its runs");
  CHECK(short_text(ablation, "Repetitions") == "6 of 6 runs repeat older ones");
}

TEST_CASE("who makes known runs again with another log_every has planned nothing",
          "[report][plan]") {
  const auto log = [](MadeRun& run) { run.experiment.train.log_every = 7; };
  require_known_before(Laundered(log).built());
  // On a device that computes other bits the first result counts.
  const Ablation ablation = Laundered(log, true).built();
  CHECK(
      ablation.rows[1].violations ==
      std::vector<std::string>{"3 seeds had another result in a run that is archived or left out, "
                               "and a chosen part is no sample"});
}

TEST_CASE("who makes known runs again with a setting that changes no number has planned nothing",
          "[report][plan]") {
  const Laundered by_evaluations([](MadeRun& run) { run.experiment.train.eval_every = 5; });
  require_known_before(by_evaluations.built());
  require_known_before(
      by_evaluations.built([](const RunSummary& run) { return ends_with(run.id, "-again"); }));
}

TEST_CASE("who makes known runs again under another name has planned nothing", "[report][plan]") {
  Laundered renamed([](MadeRun& run) { run.config += "2"; });
  renamed.table.baseline += "2";
  for (RowSpec& row : renamed.table.rows) row.config += "2";
  const Ablation ablation = renamed.built();
  require_known_before(ablation);
  CHECK(short_text(ablation, "Other seeds") == "");
  // Of an experiment's seeds it may show those that turned out well.
  make_completed_run(renamed.lab.runs,
                     [] {
                       MadeRun run = Lab::run("llama", 14);
                       run.experiment.seed = 4;
                       return run;
                     }(),
                     {4.2});
  CHECK(short_text(renamed.built(), "Other seeds") == "2 seeds of these experiments not shown");

  const Laundered in_a_copy([](MadeRun& run) {
    run.project = "projects/copy";
    run.experiment.train.eval_every = 5;
  });
  std::vector<RunSummary> all;
  AblationOptions options;
  std::vector<store::ConfiguredRun> shown;
  for (store::ConfiguredRun& run : in_a_copy.lab.read()) {
    all.push_back(run.summary);
    (run.summary.project == "projects/copy" ? shown : options.elsewhere).push_back(run);
  }
  options.repetitions = first_runs_of(all);
  require_known_before(build_ablation(in_a_copy.table, shown, options));
}

TEST_CASE("a row of which seeds were logged otherwise is compared with nothing", "[report]") {
  Laundered some([](MadeRun& run) { run.experiment.train.log_every = 7; });
  for (const char* config : {"llama", "canon_a"}) {
    MadeRun run = Lab::run(config, 14);
    run.experiment.seed = 4;
    make_completed_run(some.lab.runs, run, {3.5});
    make_failed_run(
        some.lab.runs,
        [&] {
          MadeRun failed = Lab::run(config, 15);
          failed.experiment.seed = 5;
          return failed;
        }(),
        20,
        "the loss is no number");
    MadeRun more = Lab::run(config, 26);
    more.experiment.seed = 6;
    more.experiment.train.log_every = 7;
    make_completed_run(some.lab.runs, more, {3.7});
    more = Lab::run(config, 27);
    more.experiment.seed = 7;
    more.experiment.train.log_every = 7;
    make_completed_run(some.lab.runs, more, {3.8});
  }
  const Ablation ablation = some.built();
  const AblationRow& row = ablation.rows[1];
  REQUIRE(row.runs.size() == 5);
  CHECK(row.violations ==
        std::vector<std::string>{
            "1 of its 6 seeds ran with another train.log_every, and a chosen part is no sample "
            "(repeat them: 'forge run --force')",
            "1 of its 6 seeds failed or were stopped, and those that remain are no sample "
            "(complete them: 'forge runs resume')"});
}

TEST_CASE("a run that waited until an older one was known repeats it", "[report][plan]") {
  RunSummary waited = completed("new", 10, 22);
  const RunSummary old = completed("old", 12, 13);
  CHECK(first_id(waited, {old}) == "");
  waited.begun = "2026-11-20T10:00:00.000Z";
  CHECK(first_id(waited, {old}) == "old");
  RunSummary imported = completed("new", 10, 11);
  CHECK(first_id(imported, {old}) == "");
  CHECK(made_at(imported) == imported.created);
  imported.imported = "2026-11-20T10:00:00.000Z";
  CHECK(made_at(imported) == imported.imported);
  CHECK(begun_at(imported) == imported.created);
}

TEST_CASE("a seed's first run is the one that was begun first", "[report]") {
  Lab lab;
  const auto add = [&](const std::string& id, int day, int begun, double loss) {
    MadeRun run = Lab::run("llama", day);
    run.id = id;
    run.begun = Lab::run("", begun).created;
    make_completed_run(lab.runs, run, {loss});
  };
  add("planned-first", 10, 18, 3.1);
  add("begun-first", 11, 12, 3.2);
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[0].runs.size() == 1);
  CHECK(ablation.rows[0].runs[0].id == "begun-first");
  CHECK(contains(excluded_text(ablation), "repeats begun-first with another loss"));
}

}  // namespace
}  // namespace forge::tables
