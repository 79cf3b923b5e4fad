#include "core/results/tables/measured_speeds.h"
#include "core/base/text.h"

#include "core/config/experiment.h"
#include "core/results/tables/ablation.h"
#include "core/results/tables/sheet.h"
#include "tests/core/results/benchmark/maker.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;
using benchmark::Record;

TableSpec measured_table() {
  TableSpec table = small_table();
  table.tokens_per_second = SpeedSource::benchmark;
  return table;
}

/// What each row of the small table shows: its speed and what is said of it. Every measurement but
/// one of SGD is of the row as it is trained.
std::vector<std::string> shown(const std::vector<Record>& records) {
  std::vector<SpeedRow> rows;
  for (const RowSpec& row : measured_table().rows)
    rows.push_back({row.config, [](const Record& record) {
                      const bool is_other = record.train.at("optimizer") == "sgd";
                      return std::string(is_other ? "of SGD" : "");
                    }});
  std::vector<std::string> texts;
  for (const auto& speed : choose_speeds(measured_table(), rows, records)) {
    texts.push_back(
        speed
            ? std::to_string(std::lround(speed->record.tokens_per_second)) +
                  (speed->not_comparable_because.empty() ? "" : " " + speed->not_comparable_because)
            : "none");
  }
  return texts;
}

using Texts = std::vector<std::string>;

Ablation ablation_of(const Lab& lab, const std::vector<Record>& records) {
  return build_ablation(measured_table(), lab.read(), {"", std::nullopt, records});
}

TEST_CASE("rows show the newest call that measured the most of them", "[report]") {
  REQUIRE(shown({}) == Texts{"none", "none", "none"});
  // Newest first, as the store gives them; two of the small table's three configs on day 20.
  REQUIRE(shown({made_record("llama", 20, 4000),
                 made_record("canon_a", 20, 3000),
                 made_record("llama", 19, 1000),
                 made_record("canon_a", 19, 2000)}) == Texts{"4000", "3000", "none"});
}

TEST_CASE("a row of another call says so", "[report]") {
  REQUIRE(shown({made_record("canon_b", 21, 500),
                 made_record("llama", 20, 4000),
                 made_record("canon_a", 20, 3000)}) ==
          Texts{"4000", "3000", "500 measured in another call, on 2026-11-21"});
  // Of calls with as many rows the one with the baseline is shown, though another is newer.
  REQUIRE(shown({made_record("canon_a", 21, 3000), made_record("llama", 20, 4000)}) ==
          Texts{"4000", "3000 measured in another call, on 2026-11-21", "none"});
}

TEST_CASE("a row of another number of processes says so", "[report]") {
  Record by_two = made_record("canon_a", 20, 7000);
  by_two.processes = 2;
  REQUIRE(shown({made_record("llama", 20, 4000), by_two}) ==
          Texts{"4000", "7000 by 2 processes", "none"});
}

TEST_CASE("a row of another device or other settings says so", "[report]") {
  Record other = made_record("canon_b", 21, 500);
  other.device = {"cuda", "NVIDIA H200", 8, {}, "libtorch", "0.1.0", 1};
  REQUIRE(shown({other, made_record("llama", 20, 4000), made_record("canon_a", 20, 3000)})[2] ==
          "500 measured in another call, on 2026-11-21, on NVIDIA H200");
  Record larger = made_record("canon_a", 20, 3000);
  larger.train["batch_size"] = 4;
  larger.train["z_loss"]["kind"] = "palm";
  REQUIRE(shown({made_record("llama", 20, 4000), larger})[1] ==
          "3000 train.batch_size 4 where others have 8, train.z_loss.kind \"palm\" where others "
          "have \"none\"");
}

TEST_CASE("what is no row's and no training is passed over", "[report]") {
  Record operations;
  operations.kind = benchmark::Kind::operations;
  operations.config = "llama";
  REQUIRE(shown({made_record("other", 21, 1), operations}) == Texts{"none", "none", "none"});
}

TEST_CASE("a measured speed stands in the table with how it was measured", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  make_completed_run(lab.runs, Lab::run("canon_a", 20), {3.0, 4100, 3 << 19});
  const Ablation ablation = ablation_of(lab,
                                        {made_record("canon_b", 21, 500),
                                         made_record("llama", 20, 8000),
                                         made_record("canon_a", 20, 6000)});
  const AblationRow& canon_a = ablation.rows[1];
  REQUIRE(tokens_per_second_of(canon_a, ablation.table) == 6000);
  REQUIRE(*canon_a.throughput_change == Approx(-0.25));
  REQUIRE(*canon_a.memory_change == Approx(0.5));  // of the runs
  REQUIRE_FALSE(ablation.rows[2].throughput_change);

  const Sheet sheet = make_sheet(ablation);
  REQUIRE(sheet.rows[0][3].text == "8,000");
  REQUIRE(sheet.rows[1][3].text == "6,000");
  // A row without a run has a speed all the same, and its own column says what is missing.
  REQUIRE(contains(sheet.rows[2][2].text, "missing"));
  REQUIRE(sheet.rows[2][3].text == "500 [1]");
  REQUIRE(sheet.footnotes == std::vector<std::string>{"measured in another call, on 2026-11-21"});
  const SetupEntry& speed = ablation.setup[ablation.setup.size() - 2];
  REQUIRE(speed.name == "Speed");
  REQUIRE(speed.value ==
          "forge bench on 2026-11-20, Test CPU, 2 threads, 8 × 128 tokens, float32, median of 3 "
          "windows, spread within one process at most 0.5 %");
  REQUIRE(contains(to_terminal(ablation, {}), "speed: forge bench"));
}

TEST_CASE("a row that was not measured names the command for all rows", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  const Sheet sheet = make_sheet(ablation_of(lab, {made_record("llama", 20, 8000)}));
  REQUIRE(sheet.rows[0][3].text == "8,000");
  REQUIRE(sheet.rows[1][3].text == "\u2014 [1]");
  REQUIRE(sheet.rows[2][3].text == "\u2014 [1]");
  REQUIRE(sheet.footnotes.size() == 1);
  REQUIRE(contains(sheet.footnotes[0], "'forge bench llama canon_a canon_b'"));
}

TEST_CASE("a table of runs knows nothing of measurements", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  const Ablation ablation = build_ablation(
      small_table(), lab.read(), {"", std::nullopt, {made_record("llama", 20, 8000)}});
  REQUIRE(tokens_per_second_of(ablation.rows[0], ablation.table) == 4300);
  REQUIRE_FALSE(to_json(ablation)["rows"][0].contains("benchmark"));
}

TEST_CASE("machines are told which measurement a speed is of", "[report]") {
  Lab lab;
  make_completed_run(lab.runs, Lab::run("llama", 20), {3.25, 4300, 1 << 20});
  const auto json =
      to_json(ablation_of(lab, {made_record("llama", 20, 8000), made_record("canon_b", 20, 500)}));
  REQUIRE(json["rows"][0]["tokens_per_second"] == 8000);
  REQUIRE(json["rows"][0]["benchmark"]["id"] == "2026-11-20-llama");
  REQUIRE(json["rows"][0]["benchmark"]["spread"] == 0.005);
  REQUIRE(json["rows"][1]["benchmark"].is_null());
  REQUIRE(json["rows"][2]["status"] == "missing");
  REQUIRE(json["rows"][2]["tokens_per_second"] == 500);
  REQUIRE(contains(to_csv(ablation_of(lab, {made_record("canon_b", 20, 500)})), ",500.0,"));
}

config::Experiment with_optimizer(const std::string& type) {
  config::Experiment experiment = MadeRun().experiment;
  experiment.optimizer.type = type;
  return experiment;
}

TEST_CASE("a measurement of a row as it is trained is taken before a newer one of other settings",
          "[report]") {
  const Record llama = made_record("llama", 20, 4000), canon_a = made_record("canon_a", 20, 3000);
  const auto of_sgd = [](const std::string& config, int day) {
    return made_record(config, day, 9000, with_optimizer("sgd"));
  };
  REQUIRE(
      shown({of_sgd("llama", 21), of_sgd("canon_a", 21), of_sgd("canon_b", 21), llama, canon_a}) ==
      Texts{"4000", "3000", "9000 of SGD"});
  // That call measured one row as it is trained.
  REQUIRE(shown({of_sgd("canon_a", 21), made_record("llama", 21, 5000), canon_a}) ==
          Texts{"5000", "3000 measured in another call, on 2026-11-20", "none"});
  REQUIRE(shown({of_sgd("llama", 21), of_sgd("llama", 22)}) ==
          Texts{"9000 of SGD", "none", "none"});
}

/// In what a measurement of an experiment differs from a run of the usual one.
std::string difference_of(const config::Experiment& experiment, const TableSpec& table = {}) {
  return why_of_other_training(made_record("llama", 20, 4000, experiment),
                               speed_settings_of(config::to_json(MadeRun().experiment)),
                               "the runs",
                               table);
}

TEST_CASE("the report names what decides the speed of training", "[report]") {
  config::Experiment same = MadeRun().experiment;
  same.name = "Another";
  same.seed = 7;
  same.data.order_seed = 8;
  same.data.path = "/elsewhere";
  same.train.initial_weights_seed = 9;
  same.train.max_steps = 7;
  same.train.eval_rows = 3;
  same.train.log_every = 1;
  same.optimizer.lr = 0.5;
  same.schedule.warmup_steps = 3;
  CHECK(difference_of(same) == "");
  CHECK(difference_of(with_optimizer("muon")) ==
        "measured with optimizer.type muon (the runs: adamw)");
  config::Experiment other = MadeRun().experiment;
  other.train.batch_size = 4;
  other.train.recompute = config::Recompute::blocks;
  CHECK(difference_of(other) ==
        "measured with train.batch_size 4 (the runs: 8); train.recompute blocks (the runs: none)");
  other = MadeRun().experiment;
  other.model.num_layers = 2;
  CHECK(difference_of(other) == "measured with model.num_layers 2 (the runs: 4)");
  other = MadeRun().experiment;
  other.optimizer.weight_decay = 0.5;
  CHECK(difference_of(other) == "measured with optimizer.weight_decay 0.5 (the runs: 0.01)");

  // What best_of varies need not be measured for each value, unless a step depends on it.
  TableSpec table;
  table.best_of = BestOfSpec{"optimizer.weight_decay", {0.01, 0.5}, "eval_loss"};
  CHECK(difference_of(other, table) == "");
  table.best_of->key = "train.batch_size";
  other = MadeRun().experiment;
  other.train.batch_size = 4;
  CHECK(difference_of(other, table) != "");
}

TEST_CASE("a record of an older forge is compared by what it knows", "[report]") {
  Record old = made_record("llama", 20, 4000, with_optimizer("sgd"));
  old.settings = nlohmann::json::object();
  const SpeedSettings own = speed_settings_of(config::to_json(MadeRun().experiment));
  CHECK(why_of_other_training(old, own, "the runs", {}) ==
        "measured with optimizer.type sgd (the runs: adamw)");
  old.train["optimizer"] = "adamw";
  old.train["initial_weights_seed"] = 3;
  CHECK(why_of_other_training(old, own, "the runs", {}) == "");
}

/// Two rows with runs of three seeds and evaluations, and a claim at equal time.
struct TimedLab : Lab {
  TimedLab() {
    for (const char* config : {"llama", "canon_a"}) {
      for (const int seed : {1, 2, 3}) {
        MadeRun made = run(config, 9 + seed);
        made.id += "-" + std::to_string(seed);
        made.experiment.seed = uint64_t(seed);
        make_completed_run(runs, made, {3 + 0.01 * seed, 4000});
      }
    }
  }
  Ablation timed(const std::vector<Record>& records, const CurrentConfig& current = {}) const {
    TableSpec table = measured_table();
    table.columns.push_back({ColumnKind::metric, "At equal time", "eval_loss_at_equal_time"});
    table.claims = {{"canon_a", "llama", "", {}, {}, "eval_loss_at_equal_time", "quick"},
                    {"canon_a", "", "llama", {}, {}, "tokens_per_second", "quick"}};
    AblationOptions options;
    options.benchmarks = records;
    options.current_config = current;
    options.evaluations = [](const std::string& id) {
      store::LossPoint early, late;
      early.tokens = 10000;
      early.loss = 4;
      late.tokens = 30720;
      late.loss = 3 + (starts_with(id, "llama") ? 0.5 : 0.0);
      return std::vector<store::LossPoint>{early, late};
    };
    return build_ablation(table, read(), options);
  }
};

TEST_CASE("a measurement of other settings than those of the runs decides nothing", "[report]") {
  const TimedLab lab;
  const auto of = [](const char* type) {
    return std::vector<Record>{made_record("llama", 21, 8000, with_optimizer(type)),
                               made_record("canon_a", 21, 16000, with_optimizer(type))};
  };
  const Ablation good = lab.timed(of("adamw"));
  CHECK(good.rows[1].throughput_change);
  CHECK_FALSE(good.rows[1].loss_at_equal_time.empty());
  const Ablation other = lab.timed(of("sgd"));
  const std::string why = "measured with optimizer.type sgd (the runs: adamw)";
  CHECK(other.rows[1].speed->not_comparable_because == why);
  CHECK_FALSE(other.rows[1].throughput_change);
  CHECK(other.rows[0].loss_at_equal_time.empty());
  CHECK(other.rows[1].loss_at_equal_time.empty());
  CHECK(setup_of(other, "Speed").empty());
  const Sheet sheet = make_sheet(other);
  CHECK(sheet.rows[1][3].text == "16.0K [1]");
  CHECK(sheet.footnotes.front() == why);
  CHECK(to_json(other)["rows"][1]["benchmark"]["otherwise"] == why);
  const std::vector<JudgedClaim> claims = judge_claims(other);
  CHECK(contains(verdict_line(claims[0]), "not decidable: "));
  CHECK(contains(verdict_line(claims[0]), why));
  CHECK(contains(verdict_line(claims[1]), "no comparable speed of canon_a and llama"));
}

TEST_CASE("a measurement counts for runs as their attempts were trained", "[report]") {
  const TimedLab lab;
  const auto why_with = [&](const std::function<void(Record&)>& change) {
    Record record = made_record("llama", 21, 8000);
    change(record);
    return lab.timed({record}).rows[0].speed->not_comparable_because;
  };
  CHECK(why_with([](Record&) {}) == "");
  CHECK(why_with([](Record& record) { record.device.threads = 4; }) ==
        "measured with device Test CPU, 4 threads (the runs: Test CPU, 2 threads)");
  CHECK(why_with([](Record& record) { record.processes = 2; }) ==
        "measured with processes 2 (the runs: 1)");
  CHECK(why_with([](Record& record) { record.train["micro_batch_size"] = 4; }) ==
        "measured with train.micro_batch_size 4 (the runs: 0)");
  CHECK(why_with([](Record& record) { record.program = "abc"; }) ==
        "measured with other files of its command than the runs: 'forge bench' measures anew");
}

TEST_CASE("a row without runs is measured as its config is now", "[report]") {
  const TimedLab lab;
  const CurrentConfig current = [](const std::string&, const std::string&, const std::string&) {
    return config::to_json(MadeRun().experiment);
  };
  const Ablation ablation =
      lab.timed({made_record("canon_b", 21, 500, with_optimizer("lion"))}, current);
  CHECK(ablation.rows[2].speed->not_comparable_because ==
        "measured with optimizer.type lion (the config: adamw)");
}

}  // namespace
}  // namespace forge::tables
