#include "core/results/tables/ablation.h"

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <sstream>

#include "core/base/text.h"

#include "core/base/files.h"
#include "core/results/tables/comparability.h"
#include "core/results/tables/provenance.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

TEST_CASE("every row shows the newest completed run and its change against the baseline",
          "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000});
  make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.3, 3600, 1500});
  make_completed_run(lab.runs, Lab::run("canon_a", 11), {3.3, 5000, 900});
  make_completed_run(lab.runs, Lab::run("canon_b", 10), {3.2, 4000, 1000});
  make_completed_run(lab.runs, Lab::run("not_in_the_table", 12));
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows.size() == 3);
  REQUIRE(ablation.rows[0].run->id == "llama-10");
  REQUIRE_FALSE(ablation.rows[0].throughput_change.has_value());
  REQUIRE(ablation.rows[1].run->id == "canon_a-11");
  REQUIRE(ablation.rows[1].throughput_change.value() == Approx(0.25));
  REQUIRE(ablation.rows[1].memory_change.value() == Approx(-0.1));
  REQUIRE(ablation.rows[2].throughput_change.value() == 0.0);
  REQUIRE(excluded_text(ablation) == "canon_a: older than the run shown x1\n");
  REQUIRE(ablation.profile == "quick");
}

TEST_CASE("a table shows what the evaluated text says of its losses", "[report]") {
  Lab lab;
  for (const char* config : {"llama", "canon_a"}) {
    MadeRun run = Lab::run(config, 10);
    run.entropy_floor = 0.45;
    run.repeated_sentences = 0.6617;
    make_completed_run(lab.runs, run, {config[0] == 'l' ? 0.53 : 0.52});
  }
  make_completed_run(lab.runs, Lab::run("canon_b", 10), {0.5});  // by an older version
  const Ablation ablation = lab.table();
  const auto setup = [&](const std::string& name) {
    for (const SetupEntry& entry : ablation.setup)
      if (entry.name == name) return entry.value;
    return std::string();
  };
  CHECK(setup("Entropy floor") == "0.4500 nats a token, which no model can predict");
  CHECK(setup("Repeated sentences") == "66.2 % of those evaluated are in the training text");
  const std::string metric = "eval_loss_above_floor";
  REQUIRE(values_of(ablation.rows[1], metric).size() == 1);
  CHECK(values_of(ablation.rows[1], metric)[0] == Approx(0.07));
  CHECK(values_of(ablation.rows[2], metric).empty());
}

TEST_CASE("a table says what its conditions leave open", "[report]") {
  Lab lab;
  MadeRun llama = Lab::run("llama", 10), canon = Lab::run("canon_a", 11);
  canon.experiment.optimizer.lr = 0.5;
  canon.experiment.seed = 7;
  make_completed_run(lab.runs, llama, {3.0});
  make_completed_run(lab.runs, canon, {2.0});
  TableSpec table = small_table();
  const auto differs = [&] {
    for (const SetupEntry& entry : build_ablation(table, lab.read(), {}).setup)
      if (entry.name == "Rows differ in") return entry.short_text;
    return std::string();
  };
  table.must_be_equal.clear();
  CHECK(differs() == "rows differ in optimizer.lr");
  table.must_be_equal = {"optimizer"};
  CHECK(differs() == "");  // only one row is left to compare
}

TEST_CASE("a table says that rows go on from weights of their own", "[report]") {
  Lab lab;
  const auto make = [&](const std::string& config, int day, const std::string& weights) {
    MadeRun made = Lab::run(config, day);
    made.experiment.train.initial_weights = "/models/" + weights;
    made.initial_weights = weights;
    make_completed_run(lab.runs, made, {3.0});
  };
  make("llama", 10, "aa");
  make("canon_a", 11, "aa");
  TableSpec table = small_table();
  table.must_be_equal = {"train"};
  const auto beginnings = [&] {
    return setup_of(build_ablation(table, lab.read(), {}), "Initial weights");
  };
  CHECK(beginnings() == "");
  make("canon_b", 12, "bb");
  CHECK(beginnings() == "rows begin from trained weights of their own, each a single draw");
  table.must_be_equal = {"train.initial_weights"};
  CHECK(beginnings() == "");  // canon_b is left out
}

/// As when memory ran out after the run's first steps.
void halve(const run::RunFolder& folder, int64_t rows) {
  // Before the two lines that a completed run's log ends with.
  const std::string log = read_file(folder.events_file());
  const size_t end = log.rfind('{', log.rfind("\"finished\""));
  write_file_atomic(folder.events_file(), log.substr(0, end));
  append_event(folder, worker::MicroBatch{10, "evaluate", 1, 32, "out of memory"});
  append_event(folder, worker::MicroBatch{10, "train", rows, 32, "out of memory"});
  append_line(folder, log.substr(end));
}

TEST_CASE("throughput and memory of a row are no sample where other devices trained", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000});
  MadeRun second = Lab::run("canon_a", 11), other = Lab::run("canon_b", 10);
  second.experiment.seed = 43;
  second.device_name = other.device_name = "another CPU";
  make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.4, 4000, 1000});
  make_completed_run(lab.runs, second, {3.3, 7600, 1500});
  make_completed_run(lab.runs, other, {3.2, 9000, 1000});
  TableSpec table = small_table();
  table.must_be_equal = {"profile"};
  const Ablation ablation = build_ablation(table, lab.read(), {});
  REQUIRE(ablation.rows[1].runs.size() == 2);
  REQUIRE(values_of(ablation.rows[1], results::eval_loss_name).size() == 2);
  for (const char* metric : {results::tokens_per_second_name, results::peak_memory_name}) {
    CHECK(values_of(ablation.rows[1], metric).empty());
    CHECK_FALSE(mean_of(ablation.rows[1].runs, metric).has_value());
    CHECK(values_of(ablation.rows[2], metric).size() == 1);
  }
  CHECK_FALSE(ablation.rows[2].throughput_change.has_value());
  CHECK_FALSE(ablation.rows[2].memory_change.has_value());
  const std::vector<std::string> footnotes = make_sheet(ablation).footnotes;
  CHECK(footnotes.at(0).find(": its losses are one sample, its throughput and memory are not") !=
        std::string::npos);
  CHECK(
      std::count(footnotes.begin(),
                 footnotes.end(),
                 "trained on another CPU, 2 threads, unlike the baseline: its loss is comparable, "
                 "its throughput and memory are not") == 1);
  // Without speed and memory the loss leads to the footnote.
  table.columns = {{ColumnKind::model, "Model"}, {ColumnKind::metric, "Eval Loss", "eval_loss"}};
  const Sheet losses = make_sheet(build_ablation(table, lab.read(), {}));
  size_t marked = 0;
  for (size_t i = 0; i < losses.footnotes.size(); ++i) {
    if (losses.footnotes[i].find("throughput and memory are not") == std::string::npos) continue;
    const std::string mark = " [" + std::to_string(i + 1) + "]";
    for (const auto& row : losses.rows) marked += row[1].text.find(mark) != std::string::npos;
  }
  CHECK(marked == 2);
}

TEST_CASE("throughput and memory of a row are no sample where other numbers of processes trained",
          "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000});
  MadeRun second = Lab::run("canon_a", 11);
  second.experiment.seed = 43;
  make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.4, 4000, 1000});
  divide_among_two(make_completed_run(lab.runs, second, {3.3, 7600, 1500}));
  const Ablation ablation = lab.table();
  const AblationRow& row = ablation.rows[1];
  REQUIRE(row.runs.size() == 2);
  REQUIRE(values_of(row, results::eval_loss_name).size() == 2);
  for (const char* metric : {results::tokens_per_second_name, results::peak_memory_name}) {
    CHECK(values_of(row, metric).empty());
    CHECK_FALSE(mean_of(row.runs, metric).has_value());
  }
  REQUIRE(make_sheet(ablation).footnotes.at(0) ==
          "trained by 1 and 2 processes: its losses are one sample, its throughput and memory are "
          "not");
}

TEST_CASE("throughput and memory of runs with other values of train.recompute are not compared",
          "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000});
  MadeRun second = Lab::run("canon_a", 11), other = Lab::run("canon_b", 10);
  second.experiment.seed = 43;
  second.experiment.train.recompute = other.experiment.train.recompute = model::Recompute::blocks;
  make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.4, 4000, 1500});
  make_completed_run(lab.runs, second, {3.3, 3600, 500});
  make_completed_run(lab.runs, other, {3.2, 3600, 500});
  const Ablation ablation = lab.table();
  const AblationRow& both = ablation.rows[1];
  REQUIRE(both.runs.size() == 2);
  CHECK(values_of(both, results::eval_loss_name).size() == 2);
  for (const char* metric : {results::tokens_per_second_name, results::peak_memory_name})
    CHECK_FALSE(mean_of(both.runs, metric).has_value());
  for (const AblationRow* row : {&both, &ablation.rows[2]}) {
    CHECK_FALSE(row->throughput_change.has_value());
    CHECK_FALSE(row->memory_change.has_value());
  }
  const std::vector<std::string> footnotes = make_sheet(ablation).footnotes;
  REQUIRE(footnotes.size() == 4);
  CHECK(footnotes[0] ==
        "trained with train.recompute blocks (canon_a-11) and with none (canon_a-10): its losses "
        "are one sample, its throughput and memory are not");
  CHECK(footnotes[2] ==
        "trained with train.recompute blocks (canon_b-10), unlike the baseline: its loss is "
        "comparable, its throughput and memory are not");
  // So is a run of which some attempts had it.
  std::vector<store::ConfiguredRun> mixed = lab.read();
  for (store::ConfiguredRun& run : mixed) run.summary.recompute = "none and blocks";
  const Ablation of_mixed = build_ablation(small_table(), mixed, {});
  CHECK_FALSE(mean_of(of_mixed.rows[2].runs, results::peak_memory_name).has_value());
  CHECK_FALSE(of_mixed.rows[2].throughput_change.has_value());
  CHECK(make_sheet(of_mixed).footnotes.at(0) ==
        "trained with train.recompute none and blocks (llama-10): its loss is comparable, its "
        "throughput and memory are not");
}

TEST_CASE("throughput and memory are compared between runs of as many processes", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000});
  divide_among_two(make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.4, 7600, 1500}));
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[1].run->processes == "2");
  REQUIRE_FALSE(ablation.rows[1].throughput_change.has_value());
  REQUIRE_FALSE(ablation.rows[1].memory_change.has_value());
  REQUIRE(make_sheet(ablation).footnotes ==
          std::vector<std::string>{"trained by 2 processes, unlike the baseline: its loss is "
                                   "comparable, its throughput and memory are not"});
}

TEST_CASE("throughput and memory are compared between runs with as many rows at once", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10), {3.5, 4000, 1000});
  halve(make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.4, 3600, 1500}), 8);
  make_completed_run(lab.runs, Lab::run("canon_b", 10), {3.2, 4000, 1000});
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[1].run->micro_batch_size == 8);
  REQUIRE_FALSE(ablation.rows[1].throughput_change.has_value());
  REQUIRE_FALSE(ablation.rows[1].memory_change.has_value());
  REQUIRE(ablation.rows[2].throughput_change.has_value());
  const Sheet sheet = make_sheet(ablation);
  REQUIRE(sheet.footnotes ==
          std::vector<std::string>{"8 rows of a step were computed at once, unlike the baseline's: "
                                   "its throughput and memory are not comparable"});
  size_t marked = 0;
  for (const SheetCell& cell : sheet.rows[1]) marked += cell.text.find("[1]") != std::string::npos;
  REQUIRE(marked == 3);
  for (const SheetCell& cell : sheet.rows[2]) REQUIRE(cell.text.find("[1]") == std::string::npos);

  SECTION("which the baseline may have too") {
    halve(make_completed_run(lab.runs, Lab::run("llama", 11), {3.5, 4000, 1000}), 8);
    const Ablation both = lab.table();
    REQUIRE(both.rows[1].throughput_change.value() == Approx(-0.1));
    REQUIRE_FALSE(both.rows[2].throughput_change.has_value());
  }
}

TEST_CASE("a row without a run is missing with the command that makes it", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  const Ablation ablation = lab.table();
  REQUIRE_FALSE(ablation.rows[1].run.has_value());
  REQUIRE(state_text(ablation.rows[1]) == "missing");
  REQUIRE(command_for(ablation.rows[1], ablation) == "forge run canon_a --set profile=quick");
  REQUIRE(command_for(lab.table("full").rows[0], lab.table("full")) ==
          "forge run llama --set profile=full");
}

TEST_CASE("without runs the command leaves the profile to the config", "[report]") {
  TableSpec table = small_table();
  table.claims.emplace_back();  // about runs of the profile "full"
  const Ablation ablation = build_ablation(table, {});
  REQUIRE(command_for(ablation.rows[0], ablation) == "forge run llama");
}

TEST_CASE("the command for a missing run names the device that the runs shown were told",
          "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  const auto command = [&](const std::string& typed) {
    std::vector<store::ConfiguredRun> runs = lab.read();
    runs.at(0).summary.command = typed;
    AblationOptions options;
    options.current_config = [&](const auto&, const auto&, const auto&) { return runs[0].config; };
    const Ablation ablation = build_ablation(small_table(), runs, options);
    return command_for(ablation.rows[1], ablation);
  };
  CHECK(contains(command("forge run llama --device=cpu"), " --device cpu"));
  CHECK_FALSE(contains(command("forge run llama"), "--device"));
}

/// The config after the --set options of a command.
nlohmann::json applied(nlohmann::json config, const std::string& command) {
  std::istringstream words(command);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || word.find('.') > equals) continue;
    std::string path = "/" + word.substr(0, equals);
    std::replace(path.begin(), path.end(), '.', '/');
    const nlohmann::json value =
        nlohmann::json::parse(word.substr(equals + 1), nullptr, /*allow_exceptions=*/false);
    config[nlohmann::json::json_pointer(path)] =
        value.is_discarded() ? nlohmann::json(word.substr(equals + 1)) : value;
  }
  return config;
}

TEST_CASE("the command for a missing run makes one that the table compares", "[report]") {
  const uint64_t seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const auto sometimes = [&] { return random() % 2 == 0; };
  for (int round = 0; round < 20; ++round) {
    Lab lab;
    MadeRun shown = Lab::run("llama", 10);
    const config::Experiment usual = shown.experiment;
    if (sometimes()) shown.experiment.train.max_steps = 60;
    if (sometimes()) shown.experiment.train.eval_rows = 8;
    if (sometimes()) shown.experiment.train.seq_len = 64;
    if (sometimes()) shown.experiment.optimizer.lr = 3e-3;
    if (sometimes()) shown.experiment.data.path = "stories.txt";
    if (sometimes()) shown.experiment.seed = 7;
    make_completed_run(lab.runs, shown);
    TableSpec table = small_table();
    table.must_be_equal = {"profile", "data", "evaluation", "train", "optimizer"};
    AblationOptions options;
    options.current_config = [&](const std::string&, const std::string& profile, const auto&) {
      REQUIRE((profile == "quick" || profile == ""));
      return config::to_json(usual);
    };
    const Ablation ablation = build_ablation(table, lab.read(), options);
    const std::vector<std::string> commands = missing_commands(ablation);
    REQUIRE(commands.size() == 2);
    INFO(commands[0]);
    REQUIRE(contains(commands[0], "forge run canon_a --set profile=quick"));
    REQUIRE(contains(commands[0], " --seed 7") == (shown.experiment.seed == 7));
    nlohmann::json made = applied(config::to_json(usual), commands[0]);
    made["seed"] = shown.experiment.seed;
    const nlohmann::json wanted = config::to_json(shown.experiment);
    REQUIRE(made == wanted);
  }
}

TEST_CASE("a table of no runs at all is all missing", "[report]") {
  const Ablation ablation = build_ablation(small_table(), {});
  for (const AblationRow& row : ablation.rows) REQUIRE(state_text(row) == "missing");
  REQUIRE(ablation.setup.empty());
  REQUIRE(command_for(ablation.rows[0], ablation) == "forge run llama");
}

TEST_CASE("the runs of a table that asks for seeds are made by its own command, which plans them",
          "[report]") {
  TableSpec table = small_table();
  table.seeds = 4;
  CHECK(missing_commands(build_ablation(table, {})) ==
        std::vector<std::string>{"forge run --table small"});
  Lab lab;
  const auto add = [&](uint64_t seed) {
    MadeRun run = Lab::run("llama", 10);
    run.id = "llama-" + std::to_string(seed);
    run.experiment.seed = seed;
    make_completed_run(lab.runs, run, {3 + 0.01 * double(seed)});
  };
  const auto built = [&](int64_t steps) {
    AblationOptions options;
    options.current_config = [&, steps](const auto&, const auto&, const auto&) {
      nlohmann::json config = lab.read()[0].config;
      if (steps > 0) config["train"]["max_steps"] = steps;
      return config;
    };
    return build_ablation(table, lab.read(), options);
  };
  add(Lab::run("llama", 10).experiment.seed);
  const Ablation one = built(0);
  CHECK(missing_commands(one) ==
        std::vector<std::string>{"forge run --table small --set profile=quick"});
  CHECK(contains(setup_of(one, "Uncertainty"), "(run more with --seeds 4)"));
  // What the table's command would make does not stand beside runs of other settings or seeds.
  for (const std::string& command : missing_commands(built(7)))
    CHECK(contains(command, "forge run canon_"));
  add(7);
  for (const std::string& command : missing_commands(built(0)))
    CHECK(contains(command, "forge run canon_"));
}

TEST_CASE("a run that is not completed says how it stands", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  make_failed_run(lab.runs, Lab::run("canon_a", 10), 10, "out of memory");
  const FileLock lock = make_running_run(lab.runs, Lab::run("canon_b", 10), 20);
  const Ablation ablation = lab.table();
  REQUIRE(state_text(ablation.rows[1]) == "failed");
  REQUIRE(ablation.rows[1].run->failure_reason == "out of memory");
  REQUIRE(state_text(ablation.rows[2]) == "running 66 %");
  REQUIRE_FALSE(ablation.rows[2].throughput_change.has_value());
  REQUIRE(ablation.excluded.empty());
}

TEST_CASE("a completed run stays when a newer one has not come that far", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  make_failed_run(lab.runs, Lab::run("llama", 11), 10, "no");
  make_stopped_run(lab.runs, Lab::run("llama", 12), 10);
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[0].run->id == "llama-10");
  REQUIRE(excluded_text(ablation) == "llama: stopped at 33 % x1\nllama: failed x1\n");
}

TEST_CASE("of runs that are not completed the newest is shown", "[report]") {
  Lab lab;
  make_stopped_run(lab.runs, Lab::run("llama", 10), 10);
  make_queued_run(lab.runs, Lab::run("llama", 11));
  REQUIRE(state_text(lab.table().rows[0]) == "queued");
}

/// What is left out when one run differs from two others in what `edit` does.
std::string excluded_after(const std::function<void(MadeRun&)>& edit) {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  make_completed_run(lab.runs, Lab::run("canon_a", 10));
  MadeRun other = Lab::run("canon_b", 20);
  edit(other);
  make_completed_run(lab.runs, other);
  const Ablation ablation = lab.table();
  REQUIRE(state_text(ablation.rows[0]) == "completed");
  REQUIRE(state_text(ablation.rows[1]) == "completed");
  const bool shown = ablation.rows[2].run.has_value();
  REQUIRE(shown == ablation.excluded.empty());
  return excluded_text(ablation);
}

/// What the only run of canon_b breaks after an edit.
std::string broken_by(const std::function<void(MadeRun&)>& edit) {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20));
  make_completed_run(lab.runs, Lab::run("canon_a", 20));
  MadeRun other = Lab::run("canon_b", 20);
  edit(other);
  make_completed_run(lab.runs, other);
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[2].completed());
  REQUIRE(ablation.rows[1].is_comparable());
  REQUIRE(ablation.excluded.empty());
  REQUIRE(ablation.rows[2].throughput_change.has_value() == ablation.rows[2].is_comparable());
  return join(ablation.rows[2].violations, "; ");
}

TEST_CASE("a row whose runs differ in what must be equal is shown with what it breaks",
          "[report]") {
  REQUIRE(broken_by([](MadeRun&) {}).empty());
  REQUIRE(broken_by([](MadeRun& run) { run.experiment.profile = "full"; }) ==
          "profile full, this table shows quick");
  REQUIRE(broken_by([](MadeRun& run) { run.data_fingerprint = "other"; }) ==
          "data other, this table shows d1d1d1d1d1d1");
  REQUIRE(broken_by([](MadeRun& run) { run.tokenizer_fingerprint = "other"; }) ==
          "tokenizer other, this table shows e2e2e2e2e2e2");
  REQUIRE(broken_by([](MadeRun& run) { run.experiment.train.eval_rows = 32; }) ==
          "evaluation 32 rows of 128 tokens, this table shows 64 rows of 128 tokens; "
          "train.eval_rows 32, this table shows 64");
  REQUIRE(broken_by([](MadeRun& run) { run.experiment.train.max_steps = 20; }) ==
          "train.max_steps 20, this table shows 30");
  REQUIRE(broken_by([](MadeRun& run) { run.threads = 4; }) == "threads 4, this table shows 2");
  REQUIRE(broken_by([](MadeRun& run) { run.device_type = "cuda"; }) ==
          "device cuda, this table shows cpu");
  REQUIRE(broken_by([](MadeRun& run) { run.experiment.seed = 43; }).empty());
}

TEST_CASE("what continues a repetition with another loss is left out as that is", "[report]") {
  const std::string reason =
      "continues a run that repeats an older one with another loss, and a seed's first run counts";
  CHECK(broken_by([](MadeRun& run) { run.repeats = "canon_b-1"; }) == reason);
  Lab lab;
  for (const char* config : {"llama", "canon_a", "canon_b"})
    make_completed_run(lab.runs, Lab::run(config, 20));
  MadeRun other = Lab::run("canon_b", 21);
  other.experiment.seed = 43;
  other.repeats = "canon_b-1";
  make_completed_run(lab.runs, other);
  const Ablation ablation = lab.table();
  CHECK(ablation.rows[2].runs.size() == 1);
  CHECK(excluded_text(ablation) == "canon_b: " + reason + " x1\n");
}

TEST_CASE("a comparable run is shown rather than a newer one that is not", "[report]") {
  REQUIRE(excluded_after([](MadeRun&) {}).empty());
  Lab lab;
  for (const char* config : {"llama", "canon_a", "canon_b"})
    make_completed_run(lab.runs, Lab::run(config, 20));
  MadeRun newer = Lab::run("canon_b", 21);
  newer.data_fingerprint = "other";
  make_completed_run(lab.runs, newer);
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[2].run->id == "canon_b-20");
  REQUIRE(excluded_text(ablation) == "canon_b: data other, this table shows d1d1d1d1d1d1 x1\n");
}

TEST_CASE("a row shows the newest run of each seed and means over them", "[report]") {
  Lab lab;
  const auto add = [&](const char* config, int day, int seed, Outcome outcome) {
    MadeRun made = Lab::run(config, day);
    made.experiment.seed = static_cast<uint64_t>(seed);
    make_completed_run(lab.runs, made, outcome);
  };
  add("llama", 10, 2, {3.5, 4000, 1000});
  add("llama", 11, 1, {3.3, 4200, 1000});
  add("llama", 12, 1, {3.3, 4400, 1000});
  add("canon_a", 10, 1, {3.0, 2000, 2000});
  add("canon_a", 11, 2, {3.1, 2200, 2000});
  const Ablation ablation = lab.table();
  const AblationRow& llama = ablation.rows[0];
  REQUIRE(llama.runs.size() == 2);
  CHECK(llama.runs[0].id == "llama-12");
  CHECK(llama.runs[1].id == "llama-10");
  CHECK(llama.run->id == "llama-12");
  CHECK(excluded_text(ablation) == "llama: older than the run shown x1\n");
  CHECK(tokens_per_second_of(llama, ablation.table) == 4200.0);
  CHECK(ablation.rows[1].throughput_change.value() == Approx(2100.0 / 4200 - 1));
  CHECK(ablation.rows[1].memory_change.value() == 1.0);
  CHECK(contains(ablation.setup[5].value, "1, 2"));
  // Who repeats a run until it is good would choose between results.
  add("llama", 13, 1, {3.1, 4600, 1000});
  const Ablation repeated = lab.table();
  CHECK(repeated.rows[0].run->id == "llama-12");
  CHECK(contains(excluded_text(repeated),
                 "llama: repeats llama-11 with another loss, and a seed's first run counts x1\n"));
}

TEST_CASE("a seed whose events are damaged is named where its row shows no loss", "[report]") {
  Lab lab;
  for (int day = 10; day < 13; ++day) {
    MadeRun made = Lab::run("llama", day);
    made.experiment.seed = static_cast<uint64_t>(day);
    const run::RunFolder folder = make_completed_run(lab.runs, made, {3.5, 4000, 1000, {}});
    if (day != 11) continue;
    // Of a worker that says no eval_loss at its end only the evaluation does.
    std::string log;
    for (const std::string& line :
         split(std::string(trim(read_file(folder.events_file()))), '\n')) {
      nlohmann::json event = nlohmann::json::parse(line);
      if (event.at("event") == "finished") event["eval_loss"] = nullptr;
      log += (event.at("event") == "evaluation" ? "{\"event\":" : event.dump()) + "\n";
    }
    write_file_atomic(folder.events_file(), log);
  }
  make_completed_run(lab.runs, Lab::run("canon_a", 10), {3.25, 4000, 1000, {}});
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[0].runs.size() == 3);
  const std::string text = to_terminal(ablation);
  INFO(text);
  CHECK(contains(text,
                 "no eval_loss in the events of llama-11: they may be damaged; a mean needs the "
                 "value of every seed\n"));
}

TEST_CASE("a row that is larger than the table allows is marked", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20));
  MadeRun large = Lab::run("canon_a", 20);
  large.experiment.model.hidden_size = 320;
  make_completed_run(lab.runs, large);
  std::vector<store::ConfiguredRun> runs = lab.read();
  for (store::ConfiguredRun& run : runs) {
    if (run.summary.config == "canon_a") run.summary.parameters = 5'000'000;
  }
  const Ablation ablation = build_ablation(small_table(), runs);
  const std::vector<std::string>& violations = ablation.rows[1].violations;
  REQUIRE(violations.size() == 2);
  CHECK(violations[0] == "12.8 % more parameters than Llama 4M, this table allows 2.0 %");
  CHECK(contains(violations[1], "% more FLOPs a token than Llama 4M, this table allows 5.0 %"));
  TableSpec free = small_table();
  free.parameters_within.reset();
  free.flops_within.reset();
  CHECK(build_ablation(free, runs).rows[1].is_comparable());
}

TEST_CASE("what cannot change a number keeps no run out", "[report]") {
  REQUIRE(excluded_after([](MadeRun& run) { run.experiment.train.log_every = 5; }).empty());
  REQUIRE(excluded_after([](MadeRun& run) { run.experiment.train.checkpoint_every = 5; }).empty());
  REQUIRE(excluded_after([](MadeRun& run) { run.experiment.name = "other"; }).empty());
  REQUIRE(excluded_after([](MadeRun& run) { run.experiment.optimizer.lr = 0.5; }).empty());
}

TEST_CASE("what a table does not ask to be equal may differ", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  MadeRun other = Lab::run("canon_a", 10);
  other.experiment.train.max_steps = 20;
  other.threads = 8;
  make_completed_run(lab.runs, other);
  TableSpec table = small_table();
  table.must_be_equal = {"profile", "train.seq_len"};
  REQUIRE(build_ablation(table, lab.read()).excluded.empty());
}

TEST_CASE("the group of runs that fills the most rows is shown and of equals the newest",
          "[report]") {
  const auto full = [](MadeRun run) {
    run.id += "-full";
    run.experiment.profile = "full";
    return run;
  };
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  make_completed_run(lab.runs, Lab::run("canon_a", 10));
  make_completed_run(lab.runs, full(Lab::run("llama", 20)));
  REQUIRE(lab.table().profile == "quick");
  make_completed_run(lab.runs, full(Lab::run("canon_a", 20)));
  REQUIRE(lab.table().profile == "full");
  REQUIRE(lab.table("quick").rows[0].run->id == "llama-10");
  // More rows with any run do not outweigh completed ones.
  make_failed_run(lab.runs, Lab::run("canon_b", 25), 10, "no");
  REQUIRE(lab.table().profile == "quick");  // of equals the one with more rows
  make_completed_run(lab.runs, full(Lab::run("canon_b", 20)));
  REQUIRE(lab.table().profile == "full");
}

TEST_CASE("a profile that is asked for leaves the others out", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  const Ablation ablation = lab.table("full");
  REQUIRE(state_text(ablation.rows[0]) == "missing");
  REQUIRE(excluded_text(ablation) == "llama: profile quick, this table shows full x1\n");
}

TEST_CASE("runs left out for the same reason are counted", "[report]") {
  Lab lab;
  for (int day = 10; day < 14; ++day) make_completed_run(lab.runs, Lab::run("llama", day));
  REQUIRE(excluded_text(lab.table()) == "llama: older than the run shown x3\n");
}

TEST_CASE("without the baseline there is no overhead", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("canon_a", 10));
  REQUIRE_FALSE(lab.table().rows[1].throughput_change.has_value());
  make_failed_run(lab.runs, Lab::run("llama", 10), 10, "no");
  REQUIRE_FALSE(lab.table().rows[1].memory_change.has_value());
}

TEST_CASE("a run whose device is not known yet belongs to the table", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 10));
  make_queued_run(lab.runs, Lab::run("canon_a", 10));
  REQUIRE(state_text(lab.table().rows[1]) == "queued");
}

TEST_CASE("runs that differ in more than the seed are never one sample", "[report]") {
  const uint64_t seed = std::random_device()();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const auto any = [&](auto a, decltype(a) b) { return random() % 2 == 0 ? a : b; };
  for (int round = 0; round < 20; ++round) {
    Lab lab;
    const int runs = 2 + static_cast<int>(random() % 8);
    for (int day = 1; day <= runs; ++day) {
      MadeRun made = Lab::run(any("llama", "canon_a"), day);
      made.experiment.seed = static_cast<int64_t>(random() % 4);
      made.experiment.optimizer.lr = any(1e-3, 3e-3);
      made.experiment.optimizer.weight_decay = any(0.1, 0.0);
      made.data_fingerprint = any("d1d1d1d1d1d1", "d2d2d2d2d2d2");
      made.threads = any(2, 4);
      if (random() % 4 > 0) {
        make_completed_run(lab.runs, made);
      } else {
        make_failed_run(lab.runs, made, 10, "no");
      }
    }
    TableSpec table = small_table();
    table.must_be_equal = {"profile"};
    if (random() % 2 == 0) table.best_of = BestOfSpec{"optimizer.lr", {1e-3}, "eval_loss"};
    const std::vector<store::ConfiguredRun> stored = lab.read();
    const Ablation ablation = build_ablation(table, stored);
    size_t seen = 0;
    for (const ExcludedRuns& entry : ablation.excluded) seen += entry.runs.size();
    for (const AblationRow& row : ablation.rows) {
      std::set<std::string> identities;
      for (const store::ConfiguredRun& run : stored) {
        const bool shown = std::any_of(row.runs.begin(), row.runs.end(), [&](const auto& own) {
          return own.id == run.summary.id;
        });
        if (shown) identities.insert(run::run_key(identity_without_seed(run)));
        if (shown && table.best_of) REQUIRE(run.config["optimizer"]["lr"] == 1e-3);
      }
      REQUIRE(identities.size() <= 1);
      seen += row.run && row.runs.empty() ? 1 : row.runs.size();
    }
    REQUIRE(seen == stored.size());
  }
}

TEST_CASE("a run left out of a row's sample says in what it differs", "[report]") {
  Lab lab;
  for (int day = 10; day < 12; ++day) {
    MadeRun made = Lab::run("llama", day);
    made.experiment.seed = day;
    make_completed_run(lab.runs, made);
  }
  MadeRun other = Lab::run("llama", 12);
  other.experiment.optimizer.lr = 0.5;
  make_completed_run(lab.runs, other);
  const Ablation ablation = lab.table();
  REQUIRE(ablation.rows[0].runs.size() == 2);
  REQUIRE(contains(excluded_text(ablation), "llama: optimizer.lr 0.5, the run shown has "));
}

TEST_CASE("a row of which a filter leaves out seeds is compared with nothing", "[report]") {
  tests::Lab lab;
  for (const char* config : {"llama", "canon_a"}) {
    for (int seed = 1; seed <= 3; ++seed) {
      tests::MadeRun made = tests::Lab::run(config, 10 + seed);
      made.experiment.seed = seed;
      const double loss = (config[0] == 'l' ? 3.0 + 0.01 * seed * seed : 2.0 + 0.01 * seed);
      tests::make_completed_run(lab.runs, made, {loss, 4300, 1 << 30});
    }
  }
  const auto filtered = [&](const std::vector<std::string>& where) {
    const std::vector<store::ConfiguredRun> all = lab.read();
    AblationOptions options;
    options.filter = where;
    std::vector<store::ConfiguredRun> kept = store::select(all, where);
    for (const store::ConfiguredRun& run : all) {
      const auto is_run = [&](const auto& other) { return other.summary.id == run.summary.id; };
      if (std::none_of(kept.begin(), kept.end(), is_run)) options.filtered_out.push_back(run);
    }
    return build_ablation(tests::small_table(), kept, options);
  };
  const Ablation chosen = filtered({"eval_loss<3.02"});  // one seed of llama, all of canon_a
  CHECK_FALSE(chosen.rows[0].is_comparable());
  CHECK(chosen.rows[0].violations ==
        std::vector<std::string>{
            "--where leaves out 2 of its 3 seeds, and a chosen part is no sample"});
  CHECK(chosen.rows[1].is_comparable());
  CHECK(cells_of(chosen, "eval_loss")[1].standing == Standing::not_comparable);
  CHECK(contains(to_terminal(chosen), "only runs with eval_loss<3.02"));
  // A row without runs is not missing: no command is to make it again.
  const Ablation none = filtered({"config=canon_a"});
  CHECK(state_text(none.rows[0]) == "left out");
  CHECK(missing_commands(none) ==
        std::vector<std::string>{"forge run canon_b --set profile=quick"});
  // A filter that leaves out nothing of a sample changes nothing.
  const Ablation all = filtered({"seed<9"});
  CHECK(all.rows[0].is_comparable());
  CHECK(cells_of(all, "eval_loss")[1].standing == Standing::better);
}

TEST_CASE("commands of a table that was asked for with -p name the project", "[report]") {
  TableSpec table = small_table();
  table.project_option = " -p '/far away'";
  const Ablation empty = build_ablation(table, {});
  for (const std::string& command : missing_commands(empty)) {
    INFO(command);
    CHECK(contains(command, "forge run "));
    CHECK(contains(command, " -p '/far away'"));
  }
  CHECK(missing_commands(empty).size() == table.rows.size());
  CHECK(contains(table_command(empty), " -p '/far away'"));
  CHECK(contains(bench_command(table), " -p '/far away'"));
  for (const std::string& command : reproduction_commands({empty}))
    CHECK(contains(command, " -p '/far away'"));
}

}  // namespace
}  // namespace forge::tables
