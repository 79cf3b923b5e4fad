#include "core/results/tables/comparability.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/estimate.h"
#include "core/results/tables/row_comparison.h"
#include "core/results/tables/sheet.h"
#include "core/run/program_hash.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tables {
namespace {

using namespace tests;

TableSpec table() {
  TableSpec table;
  table.name = "t";
  table.title = "T";
  table.baseline = "llama";
  table.rows = {{"llama", "Llama", "", ""}, {"canon", "Canon", "A", ""}};
  table.columns = {{ColumnKind::model, "Model"},
                   {ColumnKind::metric, "Eval Loss", "eval_loss"},
                   {ColumnKind::overhead, "Overhead"}};
  return table;
}

store::ConfiguredRun run_of(const std::string& config, const std::string& backend, double speed) {
  store::ConfiguredRun run;
  run.summary.id = config + "-" + backend;
  run.summary.config = config;
  run.summary.backend = backend;
  run.summary.profile = "quick";
  run.summary.seed = 1;
  run.summary.created = "2026-01-01T00:00:00Z";
  run.summary.status = run::RunState::completed;
  run.summary.metrics["eval_loss"] = 2;
  run.summary.metrics["tokens_per_second"] = speed;
  run.config = {{"seed", 1}, {"optimizer", {{"lr", backend == "b" ? 0.2 : 0.1}}}};
  return run;
}

const std::vector<store::ConfiguredRun> runs = {run_of("llama", "a", 100),
                                                run_of("canon", "a", 50),
                                                run_of("llama", "b", 10),
                                                run_of("canon", "b", 9)};

TEST_CASE("runs of two backends do not mix in one table", "[report]") {
  const Ablation ablation = build_ablation(table(), runs);
  REQUIRE(ablation.rows.size() == 2);
  CHECK(ablation.rows[0].run->backend == ablation.rows[1].run->backend);
  REQUIRE(ablation.excluded.size() == 2);
  CHECK(contains(ablation.excluded[0].reason, "backend "));
}

TEST_CASE("a key that must be equal tells an empty value from any other", "[report][hostile]") {
  std::vector<store::ConfiguredRun> own = {run_of("llama", "a", 100), run_of("canon", "a", 50)};
  TableSpec spec = table();
  spec.must_be_equal = {"model.canon.set"};
  const auto compared = [&](const char* baseline, const char* variant) {
    own[0].config["model"]["canon"]["set"] = baseline;
    own[1].config["model"]["canon"]["set"] = variant;
    const Ablation ablation = build_ablation(spec, own);
    const size_t rows = static_cast<size_t>(
        std::count_if(ablation.rows.begin(), ablation.rows.end(), [](const AblationRow& row) {
          return row.is_comparable();
        }));
    std::string reasons;
    for (const ExcludedRuns& runs : ablation.excluded) reasons += runs.reason + "\n";
    for (const AblationRow& row : ablation.rows)
      for (const std::string& why : row.violations) reasons += why + "\n";
    return std::make_pair(rows, reasons);
  };
  CHECK(compared("A", "A").first == 2);
  CHECK(compared("", "").first == 2);
  for (const auto& [left, right] :
       {std::pair("", "AC"), std::pair("AC", ""), std::pair("A", "AB")}) {
    const auto [rows, reasons] = compared(left, right);
    INFO(left << " " << right << ": " << reasons);
    CHECK(rows == 1);
    CHECK(contains(reasons, "model.canon.set "));
  }
}

TEST_CASE("a row that another backend alone computed compares in loss, not in speed and memory",
          "[report]") {
  std::vector<store::ConfiguredRun> own = {run_of("llama", "a", 100), run_of("canon", "b", 50)};
  own[1].config = own[0].config;
  for (store::ConfiguredRun& run : own) run.summary.metrics["peak_memory_bytes"] = 1000;
  own[0].summary.numerics_version = 3;
  const Ablation ablation = build_ablation(table(), own);
  CHECK(ablation.excluded.empty());
  const AblationRow& row = ablation.rows[1];
  CHECK(row.is_comparable());
  CHECK_FALSE(row.same_backend);
  CHECK_FALSE(row.throughput_change);
  CHECK_FALSE(row.memory_change);
  CHECK(compared_cells(ablation, "eval_loss")[1].standing == Standing::one_seed);
  CHECK(compared_cells(ablation, "tokens_per_second")[1].standing == Standing::not_comparable);
  const auto said = std::find_if(ablation.setup.begin(),
                                 ablation.setup.end(),
                                 [](const SetupEntry& entry) { return entry.name == "Backends"; });
  REQUIRE(said != ablation.setup.end());
  CHECK(said->short_text == "Canon by backend b: compared in loss, not in speed and memory");
  const Sheet sheet = make_sheet(ablation);
  REQUIRE(sheet.footnotes.size() == 1);
  CHECK(contains(sheet.footnotes[0], "computed by backend b, unlike the baseline: its loss"));
  SECTION("a run that differs in more is not comparable") {
    own[1].config["optimizer"]["lr"] = 0.3;
    TableSpec strict = table();
    strict.must_be_equal = {"optimizer"};
    CHECK_FALSE(build_ablation(strict, own).rows[1].is_comparable());
  }
  SECTION("where the table's backend computed the row, that is the one shown") {
    own.push_back(run_of("canon", "a", 90));
    own.back().summary.numerics_version = own[0].summary.numerics_version;
    const Ablation both = build_ablation(table(), own);
    CHECK(both.rows[1].run->backend == "a");
    CHECK(both.rows[1].throughput_change);
    CHECK(both.excluded.size() == 1);
  }
}

TEST_CASE("runs of an external program before and after an edit do not mix in one table",
          "[report]") {
  Lab lab;
  const auto add = [&](const char* config, int day, uint64_t seed, const char* program) {
    MadeRun made = Lab::run(config, day);
    made.experiment.backend = "external";
    made.experiment.external.command = {"python3", "worker.py"};
    made.experiment.external.working_directory = "/clone/backends/mine";
    made.experiment.seed = seed;
    made.program = program;
    make_completed_run(lab.runs, made, {3.0 + 0.01 * day, 4000, 1000});
  };
  add("llama", 10, 1, "before");
  add("canon_a", 11, 1, "before");
  REQUIRE(lab.table().excluded.empty());
  REQUIRE(lab.table().rows[1].is_comparable());
  SECTION("the program that fills the most rows is shown, whatever is newer") {
    add("llama", 12, 2, "after");
    add("llama", 13, 3, "after");
    const Ablation ablation = lab.table();
    CHECK(ablation.rows[0].runs.size() == 1);
    CHECK(excluded_text(ablation) ==
          "llama: program of [\"python3\",\"worker.py\"] after, this table shows before x2\n");
    CHECK(ablation.rows[1].is_comparable());
  }
  SECTION("that of an own backend which an older forge did not record is another one") {
    add("llama", 12, 2, "");
    CHECK(
        excluded_text(lab.table()) ==
        "llama: program of [\"python3\",\"worker.py\"] not recorded, this table shows before x1\n");
  }
  SECTION("of two that fill as many rows it is the one as it is now") {
    add("llama", 12, 1, "after");
    add("canon_a", 13, 1, "after");
    const std::vector<store::ConfiguredRun> runs = lab.read();
    const auto shown = [&](const std::string& program) {
      std::vector<const store::ConfiguredRun*> all;
      for (const store::ConfiguredRun& run : runs) all.push_back(&run);
      return choose_group(
                 small_table(),
                 all,
                 [&](const store::ConfiguredRun& run) { return run.summary.program == program; })
          ->back()
          .value;
    };
    CHECK(shown("before") == "before");
    CHECK(shown("after") == "after");
    CHECK(
        differences_from_config(runs[0], runs[0].config, {"as it is now"}, small_table()).size() ==
        1);
    CHECK(differences_from_config(runs[0], runs[0].config, {runs[0].summary.program}, small_table())
              .empty());
  }
  SECTION("rows may have programs of their own") {
    MadeRun made = Lab::run("canon_b", 12);
    made.experiment.backend = "external";
    made.experiment.external.command = {"python3", "another.py"};
    made.program = "another";
    make_completed_run(lab.runs, made);
    const Ablation ablation = lab.table();
    for (const AblationRow& row : ablation.rows) CHECK(row.is_comparable());
  }
}

TEST_CASE("each config's program is compared with its own files as they are now", "[report]") {
  Lab lab;
  std::map<std::string, nlohmann::json> configs;
  for (const char* config : {"llama", "canon_a"}) {
    MadeRun made = Lab::run(config, 10);
    made.experiment.backend = "external";
    made.experiment.external.command = {std::string("./") + config};
    made.experiment.external.working_directory = lab.folder.path().string();
    lab.folder.write(config, config);
    made.program = run::program_hash(made.experiment.external);
    make_completed_run(lab.runs, made);
  }
  const std::vector<store::ConfiguredRun> runs = lab.read();
  for (const store::ConfiguredRun& run : runs) configs[run.summary.config] = run.config;
  AblationOptions options;
  options.current_config = [&](const std::string& config, const auto&, const auto&) {
    return configs[config];
  };
  const auto differences = [&](size_t row) {
    return build_ablation(small_table(), runs, options).rows[row].differs_from_config.size();
  };
  CHECK(differences(0) == 0);
  CHECK(differences(1) == 0);
  lab.folder.write("canon_a", "edited");
  CHECK(differences(0) == 0);
  CHECK(differences(1) == 1);
}

TEST_CASE("runs of libraries that were told to compute otherwise are not compared", "[report]") {
  std::vector<store::ConfiguredRun> two = {run_of("llama", "a", 100), run_of("canon", "a", 50)};
  two[1].environment["variables"] = {{"DNNL_MAX_CPU_ISA", "SSE41"}};
  TableSpec of_one_device = table();
  of_one_device.must_be_equal = {"device"};
  const Ablation ablation = build_ablation(of_one_device, two);
  const int comparable = ablation.rows[0].is_comparable() + ablation.rows[1].is_comparable();
  CHECK(comparable == 1);
  CHECK(numerics_variables_of(two[0]).empty());
  CHECK(numerics_variables_of(two[1]) == "DNNL_MAX_CPU_ISA=SSE41");
  // Nor are they two seeds of one sample.
  two[1] = run_of("llama", "a", 50);
  two[1].summary.id = "other";
  two[1].summary.seed = 2;
  two[1].environment["variables"] = {{"DNNL_MAX_CPU_ISA", "SSE41"}};
  std::vector<ExcludedRuns> excluded;
  const auto candidates = newest_first(two);
  CHECK(sample_of(candidates, excluded, "tokens_per_second", {}).runs.size() == 1);
  REQUIRE(excluded.size() == 1);
  CHECK(contains(excluded[0].reason, "DNNL_MAX_CPU_ISA=SSE41"));
}

TEST_CASE("a run whose attempts ran on other machines is not compared with one of a single machine",
          "[report]") {
  TableSpec of_one_device = table();
  of_one_device.must_be_equal = {"device"};
  std::vector<store::ConfiguredRun> three = {
      run_of("llama", "a", 100), run_of("canon", "a", 50), run_of("llama", "a", 100)};
  three[2].summary.id = "mixed";
  three[2].summary.seed = 2;
  store::RunSummary& mixed = three[2].summary;
  for (store::ConfiguredRun& run : three) {
    run.summary.device_name = "EPYC";
    run.summary.variables = store::no_variables;
    run.summary.libraries = R"({"torch":"1.13.0"})";
  }
  std::string what;
  SECTION("variables") { mixed.variables = what = "no variables and DNNL_MAX_CPU_ISA=SSE41"; }
  SECTION("device") { mixed.device_name = what = "Xeon and EPYC"; }
  SECTION("libraries") {
    what = "library torch 1.13.0 and 2.5.1";
    mixed.libraries = R"({"torch":"1.13.0 and 2.5.1"})";
  }
  const Ablation ablation = build_ablation(of_one_device, three);
  CHECK(ablation.rows[0].runs.size() == 1);
  REQUIRE(ablation.excluded.size() == 1);
  CHECK(ablation.excluded[0].runs == std::vector<std::string>{"mixed"});
  CHECK(contains(ablation.excluded[0].reason, what + ", this table shows"));
}

TEST_CASE("training losses of other log intervals are not compared", "[report]") {
  std::vector<store::ConfiguredRun> two = {run_of("llama", "a", 100), run_of("canon", "a", 50)};
  two[0].config["train"]["log_every"] = 1;
  two[1].config["train"]["log_every"] = 10;
  const auto comparable = [&](const TableSpec& table) {
    int count = 0;
    for (const AblationRow& row : build_ablation(table, two).rows) count += row.is_comparable();
    return count;
  };
  CHECK(comparable(table()) == 2);
  TableSpec of_losses = table();
  of_losses.columns.push_back({ColumnKind::metric, "Train Loss", "train_loss"});
  CHECK(comparable(of_losses) == 1);
  of_losses = table();
  of_losses.claims = {{"canon", "", "llama", {}, {}, "train_loss", "quick"}};
  CHECK(comparable(of_losses) == 1);
  of_losses.claims.clear();
  of_losses.primary = "train_loss";
  CHECK(comparable(of_losses) == 1);
  two[0].config["train"]["log_every"] = 10;
  CHECK(comparable(of_losses) == 2);
}

TEST_CASE("a table that is divided by backend has a row for each, against its own baseline",
          "[report]") {
  TableSpec divided = table();
  group_by(divided, "backend");
  const Ablation ablation = build_ablation(divided, runs);
  REQUIRE(ablation.rows.size() == 4);
  CHECK(ablation.excluded.empty());
  CHECK(ablation.rows[0].group == "a");
  CHECK(ablation.rows[1].group == "b");
  CHECK(*ablation.rows[2].throughput_change == Approx(-0.5));
  CHECK(*ablation.rows[3].throughput_change == Approx(-0.1));
  const Sheet sheet = make_sheet(ablation);
  CHECK(sheet.columns[1].title == "Backend");
  CHECK(sheet.rows[3][1].text == "b");
  CHECK(to_json(ablation).at("by") == "backend");
  CHECK(to_json(ablation).at("rows")[3].at("backend") == "b");
  CHECK(contains(to_csv(ablation), ",backend\r\n"));
}

TEST_CASE("a table that is divided by backend shows each backend of the user's own", "[report]") {
  const auto run_by = [](const std::string& config, const std::string& backend, int64_t seed = 1) {
    store::ConfiguredRun run = run_of(config, backend, 10);
    run.summary.id += "-" + std::to_string(seed);
    run.summary.seed = seed;
    run.summary.program = "files of " + backend;
    run.summary.backend_version = "1." + backend;
    run.config = {{"seed", seed}, {"backend", backend}, {"external", {{"command", {"./worker"}}}}};
    return run;
  };
  std::vector<store::ConfiguredRun> own = {run_by("llama", "oracle"),
                                           run_by("canon", "oracle"),
                                           run_by("llama", "oracle2"),
                                           run_by("canon", "oracle2")};
  TableSpec divided = table();
  divided.must_be_equal = {"code"};
  group_by(divided, "backend");
  const Ablation ablation = build_ablation(divided, own);
  CHECK(excluded_text(ablation).empty());
  REQUIRE(ablation.rows.size() == 4);
  for (const AblationRow& row : ablation.rows) {
    CHECK(row.completed());
    CHECK(row.is_comparable());
  }
  CHECK(setup_of(ablation, "Programs") == "the programs of backends oracle, oracle2 differ");
  SECTION("of one backend it shows one program") {
    own.push_back(run_by("llama", "oracle2", 2));
    own.back().summary.program = "edited";
    CHECK(contains(excluded_text(build_ablation(divided, own)),
                   "llama: program of backend oracle2: [\"./worker\"] edited, this table shows "
                   "files of oracle2"));
  }
  SECTION("what another backend's program holds now is not that of the config") {
    AblationOptions options;
    options.current_config = [&](const auto&, const auto&, const auto&) { return own[0].config; };
    for (const AblationRow& row : build_ablation(divided, own, options).rows)
      if (row.group == "oracle2") CHECK(row.differs_from_config.empty());
  }
  SECTION("without it programs do not mix, and no footnote says that they compare") {
    own.erase(own.begin() + 2);
    own.erase(own.begin() + 1);
    const Ablation mixed = build_ablation(table(), own);
    CHECK(mixed.rows[0].is_comparable() != mixed.rows[1].is_comparable());
    for (const std::string& footnote : make_sheet(mixed).footnotes)
      CHECK_FALSE(contains(footnote, "its loss is comparable"));
  }
}

TEST_CASE("a table can be divided by any key, and a config without runs stays one row",
          "[report]") {
  TableSpec divided = table();
  divided.must_be_equal = {"optimizer"};
  divided.rows.push_back({"none", "None", "", ""});
  group_by(divided, "optimizer.lr");
  std::vector<store::ConfiguredRun> same = runs;
  for (store::ConfiguredRun& run : same) run.summary.backend = "a";
  const Ablation ablation = build_ablation(divided, same);
  REQUIRE(ablation.rows.size() == 5);
  CHECK(ablation.rows[0].group == "0.1");
  CHECK(ablation.rows[4].group.empty());
  CHECK_FALSE(ablation.rows[4].run);
  CHECK(contains(error_of([] {
                   TableSpec wrong = table();
                   group_by(wrong, "optimizer.lrr");
                 }),
                 "optimizer.lr"));
}

TEST_CASE("a run that does not compare is left out once, whatever the rows are divided by",
          "[report]") {
  TableSpec divided = table();
  divided.must_be_equal = {"device"};
  group_by(divided, "backend");
  std::vector<store::ConfiguredRun> more = runs;
  more.push_back(run_of("llama", "c", 1));
  more.back().summary.threads = 7;
  const Ablation ablation = build_ablation(divided, more);
  CHECK(ablation.rows.size() == 4);
  REQUIRE(ablation.excluded.size() == 1);
  CHECK(ablation.excluded[0].runs.size() == 1);
}

/// The run with another learning rate and seed, made later.
store::ConfiguredRun tuned(const std::string& config, double lr, int seed) {
  store::ConfiguredRun run = run_of(config, "a", 100);
  run.summary.id += "-" + std::to_string(lr) + "-" + std::to_string(seed);
  run.summary.seed = seed;
  run.summary.created = "2026-02-01T00:00:00Z";
  run.summary.metrics["eval_loss"] = 2 + 1e-6 * seed;
  run.config = {{"seed", seed}, {"optimizer", {{"lr", lr}}}};
  return run;
}

AblationOptions with_config_of_lr(double lr) {
  AblationOptions options;
  options.current_config = [lr](const auto&, const auto&, const auto&) {
    return nlohmann::json{{"seed", 1}, {"optimizer", {{"lr", lr}}}};
  };
  return options;
}

TEST_CASE("a row shows runs of its config as it is now, not newer or more of other settings",
          "[report]") {
  for (const bool lr_must_be_equal : {true, false}) {
    TableSpec strict = table();
    if (lr_must_be_equal) strict.must_be_equal = {"optimizer"};
    std::vector<store::ConfiguredRun> all = {run_of("llama", "a", 1), run_of("canon", "a", 1)};
    for (const int seed : {1, 2, 3})
      for (const char* config : {"llama", "canon"}) all.push_back(tuned(config, 0.3, seed));
    const Ablation ablation = build_ablation(strict, all, with_config_of_lr(0.1));
    for (const AblationRow& row : ablation.rows) {
      CHECK(row.runs.size() == 1);
      CHECK(row.run->id == row.spec.config + "-a");
      CHECK(row.differs_from_config.empty());
    }
    REQUIRE(ablation.excluded.size() == 2);
    CHECK(ablation.excluded[0].runs.size() == 3);
    CHECK(contains(ablation.excluded[0].reason, "optimizer.lr 0.3, "));
    const Ablation edited = build_ablation(strict, all, with_config_of_lr(0.3));
    for (const AblationRow& row : edited.rows) CHECK(row.runs.size() == 3);
  }
}

TEST_CASE("the same text in other rows or in another order is other data", "[report]") {
  TableSpec strict = table();
  strict.must_be_equal = {"data"};
  for (const auto& [key, value, reason] :
       {std::tuple{"rows", nlohmann::json("padded"), "data.rows padded, this table shows packed"},
        std::tuple{"seed", nlohmann::json(9), "data.seed 9, this table shows 0"}}) {
    std::vector<store::ConfiguredRun> all = {run_of("llama", "a", 1), run_of("canon", "a", 1)};
    for (store::ConfiguredRun& run : all) {
      run.summary.data_fingerprint = "f";
      run.config["data"] = {{"rows", "packed"}, {"seed", 0}};
    }
    all[0].summary.created = "2026-02-01T00:00:00Z";
    all[1].config["data"][key] = value;
    const Ablation ablation = build_ablation(strict, all);
    CHECK(ablation.rows[1].violations == std::vector<std::string>{reason});
  }
}

TEST_CASE("scores of other numbers of prompts are of another evaluation", "[report]") {
  const auto run_with = [](const std::string& config, int64_t prompts, const char* task) {
    store::ConfiguredRun run = run_of(config, "a", 100);
    run.summary.evaluation = "256 rows of 16 tokens";
    run.config["data"] = {{"source", "task"}, {"task", {{"name", task}}}};
    run.config["train"] = {{"eval_prompts", prompts}};
    return run;
  };
  TableSpec equal = table();
  equal.must_be_equal = {"evaluation"};
  const Ablation ablation =
      build_ablation(equal, {run_with("llama", 40, "brevo1"), run_with("canon", 300, "brevo1")});
  CHECK(ablation.rows[0].is_comparable() != ablation.rows[1].is_comparable());
  const bool is_first = ablation.rows[0].is_comparable();
  CHECK(setup_of(ablation, "Evaluation") == std::string("evaluated on 256 rows of 16 tokens, ") +
                                                (is_first ? "40 prompts" : "256 prompts"));
  CHECK(contains(ablation.rows[is_first ? 1 : 0].violations.at(0), " prompts, this table shows "));
  CHECK(build_ablation(equal, {run_with("llama", 40, "mano"), run_with("canon", 300, "mano")})
            .rows[1]
            .is_comparable());
}

TEST_CASE("a fingerprint that differs is short, with the name of its text where that differs, too",
          "[report]") {
  const std::string ours = "41497efb12345678aaaaaaaaaaaaaaaa", theirs(32, 'c');
  CHECK(
      violations({{"data", ours, "a.txt"}}, {{"data", theirs, "b.txt"}}) ==
      std::vector<std::string>{"data a.txt (41497efb1234), this table shows b.txt (cccccccccccc)"});
  CHECK(violations({{"data", ours, "a.txt"}}, {{"data", theirs, "a.txt"}}) ==
        std::vector<std::string>{"data 41497efb1234, this table shows cccccccccccc"});
  store::ConfiguredRun run = run_of("llama", "a", 100);
  run.config["data"] = {{"source", "text"}, {"path", "/texts/tiny.txt"}};
  TableSpec equal = table();
  equal.must_be_equal = {"data"};
  CHECK(conditions_of(run, equal).front().source == "tiny.txt");
}

TEST_CASE("a key that stands in one run alone is compared as well", "[report]") {
  std::vector<store::ConfiguredRun> all = {run_of("llama", "a", 1), run_of("canon", "a", 1)};
  all[0].config["optimizer"] = {{"lr", 0.1}};
  all[1].config["optimizer"] = {{"lr", 0.1}, {"weight_decay_of", {{"matrices", 30}}}};
  TableSpec equal = table();
  equal.must_be_equal = {"optimizer"};
  const std::string key = "optimizer.weight_decay_of.matrices";
  for (const bool is_newest : {false, true}) {
    all[is_newest ? 1 : 0].summary.created = "2026-02-01T00:00:00Z";
    all[is_newest ? 0 : 1].summary.created = "2026-01-01T00:00:00Z";
    const Ablation ablation = build_ablation(equal, all);
    CHECK(ablation.rows[is_newest ? 0 : 1].violations ==
          std::vector<std::string>{is_newest ? key + " none, this table shows 30"
                                             : key + " 30, this table shows none"});
  }
  equal.must_be_equal = {key};
  CHECK_FALSE(build_ablation(equal, all).rows[0].is_comparable());
  equal.must_be_equal = {};
  CHECK(setup_of(build_ablation(equal, all), "Rows differ in") == "rows differ in " + key);
}

TEST_CASE("rows that different external programs computed are said to be", "[report]") {
  std::vector<store::ConfiguredRun> all = {run_of("llama", "a", 1), run_of("canon", "a", 1)};
  for (store::ConfiguredRun& run : all) {
    run.config["external"] = {{"command", {"python3", run.summary.config + ".py"}}};
    run.summary.program = "program of " + run.summary.config;
  }
  const auto differs = [&] { return setup_of(build_ablation(table(), all), "Rows differ in"); };
  CHECK(differs() == "rows differ in external.command; external.program");
  TableSpec equal = table();
  equal.must_be_equal = {"code"};
  const Ablation ablation = build_ablation(equal, all);
  CHECK(ablation.rows[0].is_comparable() != ablation.rows[1].is_comparable());
  for (store::ConfiguredRun& run : all) run.summary.program = "";  // how forge starts its own
  CHECK(differs() == "");
}

TEST_CASE("a row that went on from trained weights is not compared with drawn ones", "[report]") {
  std::vector<store::ConfiguredRun> all = {run_of("llama", "a", 1), run_of("canon", "a", 1)};
  all[0].summary.created = "2026-02-01T00:00:00Z";
  all[1].summary.initial_weights_hash = "abc";
  const Ablation mixed = build_ablation(table(), all);
  CHECK(mixed.rows[1].violations ==
        std::vector<std::string>{"begins with trained weights, this table shows drawn weights"});
  all[0].summary.initial_weights_hash = "def";  // each goes on from its own
  for (const AblationRow& row : build_ablation(table(), all).rows) CHECK(row.is_comparable());
}

TEST_CASE("seeds that change nothing are one run", "[report]") {
  std::vector<store::ConfiguredRun> all;
  for (const int seed : {1, 2, 3}) {
    all.push_back(tuned("llama", 0.3, seed));
    all.back().summary.metrics["eval_loss"] = seed == 3 ? 1.51234567 : 1.25123456;
  }
  // Where one seed changes something, those that agree count too: runs that collapse to one loss
  // are the poor ones, and the mean of the others would be too good.
  CHECK(build_ablation(table(), all).rows[0].runs.size() == 3);
  for (store::ConfiguredRun& run : all) run.summary.metrics["eval_loss"] = 1.25123456;
  const Ablation ablation = build_ablation(table(), all);
  CHECK(ablation.rows[0].runs.size() == 1);
  REQUIRE(ablation.excluded.size() == 1);
  CHECK(contains(ablation.excluded[0].reason, " to the last bit: they count as one run"));
  for (store::ConfiguredRun& run : all) run.summary.metrics["eval_loss"] = 0;
  CHECK(build_ablation(table(), all).rows[0].runs.size() == 1);
  // Runs that diverge end alike, whatever they are.
  for (store::ConfiguredRun& run : all) run.summary.metrics["eval_loss"] = INFINITY;
  CHECK(build_ablation(table(), all).rows[0].runs.size() == 3);
  CHECK(build_ablation(table(), all).excluded.empty());
}

TEST_CASE("one stray run does not take the place of three seeds", "[report]") {
  TableSpec strict = table();
  strict.must_be_equal = {"optimizer"};
  std::vector<store::ConfiguredRun> all;
  for (const int seed : {1, 2, 3}) all.push_back(tuned("llama", 0.3, seed));
  all.push_back(tuned("llama", 0.2, 1));
  all.back().summary.created = "2026-03-01T00:00:00Z";
  CHECK(build_ablation(strict, all).rows[0].runs.size() == 3);
}

TEST_CASE("a row of runs with other settings than the config's says so and decides no claim",
          "[report]") {
  std::vector<store::ConfiguredRun> all;
  for (const int seed : {1, 2, 3})
    for (const char* config : {"llama", "canon"}) {
      all.push_back(tuned(config, 0.3, seed));
      all.back().summary.metrics["eval_loss"] =
          (config[0] == 'l' ? 2 : 1 + 1e-5 * seed * seed) + 0.001 * seed;
    }
  TableSpec claiming = table();
  claiming.claims = {{"canon", "llama", "", {}, {}, "eval_loss", "quick"}};
  const Ablation changed = build_ablation(claiming, all, with_config_of_lr(0.1));
  const std::string note = "optimizer.lr 0.3 (now 0.1)";
  CHECK(changed.rows[0].differs_from_config == std::vector<std::string>{note});
  const Sheet sheet = make_sheet(changed);
  REQUIRE(sheet.footnotes.size() == 1);
  CHECK(sheet.footnotes[0] == "made with other settings than the config has now: " + note);
  CHECK(to_json(changed)["rows"][1]["differs_from_config"] == nlohmann::ordered_json{note});
  CHECK(contains(to_csv(changed), ",differs_from_config"));
  const JudgedClaim judged = judge_claims(changed).front();
  CHECK(judged.verdict == Verdict::not_decidable);
  CHECK(contains(judged.reason,
                 "it is about the configs as they are now, canon ran with " + note +
                     ", where it is \u22121.0000"));
  CHECK(judge_claims(build_ablation(claiming, all, with_config_of_lr(0.3))).front().verdict ==
        Verdict::holds);
  CHECK(cells_of(changed, "eval_loss")[1].standing == Standing::better);
}

TEST_CASE("what a table varies itself is no other setting, and neither is a moved folder",
          "[report]") {
  store::ConfiguredRun run = tuned("llama", 0.3, 7);
  run.config["data"] = {{"path", "/old/home/books.txt"}};
  nlohmann::json current = {
      {"seed", 1}, {"optimizer", {{"lr", 0.1}}}, {"data", {{"path", "/new/books.txt"}}}};
  CHECK(differences_from_config(run, current, {}, table()) ==
        std::vector<std::string>{"optimizer.lr 0.3 (now 0.1)"});
  TableSpec sweep = table();
  sweep.best_of = BestOfSpec{"optimizer.lr", {0.1, 0.3}, "eval_loss", Extreme::lowest, 0};
  CHECK(differences_from_config(run, current, {}, sweep).empty());
  TableSpec divided = table();
  group_by(divided, "optimizer.lr");
  CHECK(differences_from_config(run, current, {}, divided).empty());
  current["data"]["path"] = "/new/code.txt";
  current["train"] = {{"initial_weights", "w/model.safetensors"}};
  CHECK(differences_from_config(run, current, {}, sweep) ==
        std::vector<std::string>{"data.path \"books.txt\" (now \"code.txt\")",
                                 "train.initial_weights none (now \"model.safetensors\")"});
}

TEST_CASE("a text or tokenizer that was edited since is another setting than the config's",
          "[report]") {
  store::ConfiguredRun run = tuned("llama", 0.1, 7);
  run.summary.data_fingerprint = "0123456789abcdef";
  run.summary.tokenizer_fingerprint = "feedfeedfeedfeed";
  CHECK(differences_from_config(run, run.config, {}, table()).empty());
  CHECK(differences_from_config(
            run, run.config, {"", {"0123456789abcdef", "feedfeedfeedfeed"}}, table())
            .empty());
  CHECK(differences_from_config(run, run.config, {"", {"abcdef0123456789", "beef"}}, table()) ==
        std::vector<std::string>{"the text 0123456789ab (now abcdef012345)",
                                 "the tokenizer feedfeedfeed (now beef)"});
  // A table asks for the files that the run would read now, with its own settings.
  run.config["data"] = {{"path", "/old/books.txt"}, {"held_out_fraction", 0.2}};
  nlohmann::json current = run.config;
  current["data"] = {{"path", "/new/books.txt"}, {"held_out_fraction", 0.1}};
  AblationOptions options;
  options.current_config = [&](const auto&, const auto&, const auto&) { return current; };
  std::vector<nlohmann::json> asked_for;
  options.current_data = [&](const nlohmann::json& config) {
    asked_for.push_back(config.at("data"));
    return data::DataFingerprints{"abcdef0123456789", ""};
  };
  TableSpec by_split = table();
  group_by(by_split, "data.held_out_fraction");
  const Ablation ablation = build_ablation(by_split, {run}, options);
  CHECK(asked_for ==
        std::vector<nlohmann::json>{{{"path", "/new/books.txt"}, {"held_out_fraction", 0.2}}});
  CHECK(ablation.rows[0].differs_from_config ==
        std::vector<std::string>{"the text 0123456789ab (now abcdef012345)"});
}

TEST_CASE("paths of a config now stand for those of a run where they name the same file",
          "[report]") {
  const nlohmann::json own = {
      {"data",
       {{"path", "/a/one.txt"},
        {"evaluation_path", "/a/held.txt"},
        {"sources", {{"code", {{"path", "/a/code"}}}, {"gone", {{"path", "/a/gone"}}}}}}},
      {"tokenizer", {{"path", nullptr}}}};
  const nlohmann::json current = {{"data",
                                   {{"path", "/b/one.txt"},
                                    {"evaluation_path", "/b/other.txt"},
                                    {"sources", {{"code", {{"path", "/b/code"}}}}}}},
                                  {"tokenizer", {{"path", "/b/tokenizer.json"}}}};
  nlohmann::json expected = own;
  expected["data"]["path"] = "/b/one.txt";
  expected["data"]["sources"]["code"]["path"] = "/b/code";
  CHECK(with_current_paths(own, current) == expected);
}

TEST_CASE(
    "runs of files that cannot be read now are none of the config as it is now where they "
    "differ",
    "[report]") {
  const auto differences = [](const std::string& other_text, const std::string& weights_now) {
    std::vector<store::ConfiguredRun> runs = {tuned("llama", 0.1, 7), tuned("llama", 0.1, 8)};
    runs[0].summary.data_fingerprint = "0123456789abcdef";
    runs[1].summary.data_fingerprint = other_text;
    for (store::ConfiguredRun& run : runs) {
      run.summary.initial_weights_hash = "feed";
      run.config["train"] = {{"initial_weights", "base"}};
    }
    AblationOptions options;
    options.current_config = [&](const auto&, const auto&, const auto&) { return runs[0].config; };
    options.current_data = [](const auto&) { return data::DataFingerprints(); };
    options.current_weights = [&](const auto&) { return weights_now; };
    return build_ablation(table(), runs, options).rows[0].differs_from_config;
  };
  CHECK(differences("0123456789abcdef", "feed").empty());
  CHECK(differences("0123456789abcdef", "").empty());
  CHECK(differences("abcdef0123456789", "feed").size() == 1);
  CHECK(differences("0123456789abcdef", "beef") ==
        std::vector<std::string>{"the initial weights feed (now beef)"});
}

TEST_CASE(
    "a row shows the runs of its backend's newest numerics, though there are more of older "
    "ones",
    "[report]") {
  std::vector<store::ConfiguredRun> runs = {
      tuned("llama", 0.1, 1), tuned("llama", 0.1, 2), tuned("llama", 0.1, 3)};
  for (store::ConfiguredRun& run : runs) run.summary.numerics_version = 1;
  CHECK(build_ablation(table(), runs, with_config_of_lr(0.1)).rows[0].runs.size() == 3);
  runs[2].summary.numerics_version = 2;
  const Ablation newest = build_ablation(table(), runs, with_config_of_lr(0.1));
  REQUIRE(newest.rows[0].runs.size() == 1);
  CHECK(newest.rows[0].runs[0].seed == 3);
  CHECK(newest.rows[0].differs_from_config.empty());
}

TEST_CASE("a profile that the config has not now is another setting", "[report]") {
  store::ConfiguredRun run = tuned("llama", 0.1, 7);
  run.summary.profile = "quick";
  AblationOptions options;
  options.current_config = [&](const auto&, const std::string& profile, const auto&) {
    return profile == "quick" ? nlohmann::json() : run.config;
  };
  CHECK(build_ablation(table(), {run}, options).rows[0].differs_from_config ==
        std::vector<std::string>{"profile quick, which the config has not now"});
}

TEST_CASE("a row of text of which nothing is scored is none", "[report]") {
  const std::vector<store::ConfiguredRun> runs = {tuned("llama", 0.1, 1), tuned("llama", 0.1, 2)};
  AblationOptions options;
  options.evaluation_rows = [](const std::string&) {
    return store::EvaluationRows{{0, 1.5, 0}, {0, 16, 0}};
  };
  const store::EvaluationRows rows = build_ablation(table(), runs, options).rows[0].evaluation_rows;
  CHECK(rows.losses == std::vector<double>{1.5});
  CHECK(rows.tokens == std::vector<int64_t>{16});
}

}  // namespace
}  // namespace forge::tables
