#include "core/results/tables/completeness.h"

#include <functional>
#include <map>
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

/// The letters are the configs of the runs in their order, each with its next seed, one behind the
/// other.
void train_in_order(const Lab& lab, const std::string& order) {
  double begun = time_of_day(20);
  std::map<char, int> seeds;
  for (const char letter : order) {
    const bool is_baseline = letter == 'a';
    const int seed = ++seeds[letter];
    MadeRun run = Lab::run(is_baseline ? "llama" : "canon_a", 20);
    run.created = utc_timestamp(begun);
    run.id = letter + std::to_string(seed);
    run.experiment.seed = static_cast<uint64_t>(seed);
    run.planned_seeds = {1, 2, 3, 4};
    const double speed = is_baseline ? 4000 + 1.3 * seed : 5000 + 1.7 * seed;
    const run::RunFolder folder =
        make_completed_run(lab.runs, run, {3 + 0.01 * seed + is_baseline, speed});
    set_times(folder, begun + 10, begun + 75);
    begun += 80;
  }
}

/// What the table says of the speeds of runs that were begun and ended in these minutes.
struct Minutes {
  int begun, ended;
};
std::string speeds_of(const std::string& order,
                      const std::vector<Minutes>& times,
                      const std::function<void(store::RunSummary&)>& change = {}) {
  Lab lab;
  train_in_order(lab, order);
  std::vector<store::ConfiguredRun> runs = lab.read();
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
    return a.summary.created < b.summary.created;
  });
  for (size_t i = 0; i < runs.size(); ++i) {
    store::RunSummary& run = runs[i].summary;
    run.begun = utc_timestamp(time_of_day(21) + 60 * times.at(i).begun);
    run.updated = utc_timestamp(time_of_day(21) + 60 * times.at(i).ended);
    if (change) change(run);
  }
  return setup_of(build_ablation(small_table(), runs), "Speed");
}

/// Runs of nine minutes, one behind the other, and a day between those that a bar divides.
std::string speeds_with_breaks(const std::string& order,
                               const std::function<void(store::RunSummary&)>& change = {}) {
  std::string letters;
  std::vector<Minutes> times;
  int minute = 0;
  for (const char each : order) {
    if (each == '|') {
      minute += 24 * 60;
    } else {
      letters += each;
      times.push_back({minute, minute + 9});
      minute += 10;
    }
  }
  return speeds_of(letters, times, change);
}

TEST_CASE("a table says where the speeds of its rows were not measured in turn", "[report]") {
  const auto speed_of = [](const std::string& order) {
    Lab lab;
    train_in_order(lab, order);
    return setup_of(lab.table(), "Speed");
  };
  CHECK(speed_of("abba") == "");
  CHECK(speed_of("abbaab") == "");
  CHECK(speed_of("ababab") == "speeds measured in one order");
  CHECK(speed_of("aaabbb") == "speeds not measured in turn");
  CHECK(speed_of("aabb") == "speeds not measured in turn");

  // Whatever shows or tests a speed is a table with speeds.
  Lab lab;
  train_in_order(lab, "aaabbb");
  const auto speed_with = [&](const std::function<void(TableSpec&)>& add,
                              SpeedSource source = SpeedSource::runs) {
    TableSpec table = small_table();
    table.columns = {{ColumnKind::model, "Model"}, {ColumnKind::metric, "Eval Loss", "eval_loss"}};
    table.tokens_per_second = source;
    add(table);
    return setup_of(build_ablation(table, lab.read()), "Speed");
  };
  const auto add_column = [](const ColumnSpec& column) {
    return [column](TableSpec& table) { table.columns.push_back(column); };
  };
  ColumnSpec derived{ColumnKind::derived, "x"};
  derived.expression = parse_expression("tokens_per_second/baseline.tokens_per_second");
  const ColumnSpec overhead{ColumnKind::overhead, "Overhead"},
      time{ColumnKind::metric, "Time", "wall_seconds"};
  const auto claim_speed = [](TableSpec& table) {
    table.claims = {{"canon_a", "", "llama", {}, {}, "tokens_per_second", "quick"}};
  };
  const std::string warning = "speeds not measured in turn";
  CHECK(speed_with([](TableSpec&) {}) == "");
  CHECK(speed_with(add_column(overhead)) == warning);
  CHECK(speed_with(add_column(derived)) == warning);
  CHECK(speed_with(claim_speed) == warning);
  CHECK(speed_with([](TableSpec& table) { table.primary = "tokens_per_second"; }) == warning);
  // `forge bench` measures in turn; the runs' own times are theirs.
  CHECK(speed_with(add_column(overhead), SpeedSource::benchmark) == "");
  CHECK(speed_with(claim_speed, SpeedSource::benchmark) == "");
  CHECK(speed_with(add_column(time), SpeedSource::benchmark) == warning);
}

TEST_CASE("runs of one order are in turn if one was made soon after the other", "[report]") {
  Lab lab;
  train_in_order(lab, "abbaabba");
  const auto speed_of = [&](const std::vector<std::string>& times, double wall_seconds) {
    std::vector<store::ConfiguredRun> runs = lab.read();
    std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) {
      return a.summary.created < b.summary.created;
    });
    for (size_t i = 0; i < runs.size(); ++i) {
      store::RunSummary& run = runs[i].summary;
      run.begun = "2026-11-" + times.at(i) + ":00.000Z";
      run.updated = "2026-11-" + times.at(i) + ":30.000Z";
      run.metrics[results::wall_seconds_name] = wall_seconds + i;
    }
    return setup_of(build_ablation(small_table(), runs), "Speed");
  };
  // Planned in turn, and begun when somebody resumed them.
  std::vector<store::ConfiguredRun> waited = lab.read();
  for (store::ConfiguredRun& run : waited)
    run.summary.begun =
        run.summary.config == "llama" ? "2026-11-22T10:00:00.000Z" : "2026-11-23T10:00:00.000Z";
  CHECK(setup_of(build_ablation(small_table(), waited), "Speed") == "speeds not measured in turn");
  const std::vector<std::string> at_once = {"10T10:00",
                                            "10T10:01",
                                            "10T10:02",
                                            "10T10:03",
                                            "10T10:04",
                                            "10T10:05",
                                            "10T10:06",
                                            "10T10:07"};
  CHECK(speed_of(at_once, 20) == "");
  // Both rows each day.
  const std::vector<std::string> daily = {"10T10:00",
                                          "10T10:01",
                                          "11T10:00",
                                          "11T10:01",
                                          "12T10:00",
                                          "12T10:01",
                                          "13T10:00",
                                          "13T10:01"};
  CHECK(speed_of(daily, 20) == "");
  // One in the mornings, the other one in the evenings.
  const std::vector<std::string> apart = {"10T08:00",
                                          "10T20:00",
                                          "10T20:01",
                                          "11T08:00",
                                          "11T08:01",
                                          "11T20:00",
                                          "11T20:01",
                                          "12T08:00"};
  CHECK(speed_of(apart, 20) == "speeds not measured in turn");
  CHECK(speed_of(apart, 86400) == "");  // a break that is shorter than a run
}

TEST_CASE("all runs of two rows lie in turn, not as many as the smaller one has",
          "[report][turns]") {
  const std::string warning = "speeds not measured in turn";
  CHECK(speeds_with_breaks("aaaaaa|baabba") == warning);
  CHECK(speeds_with_breaks("abba|bbbb") == warning);
  CHECK(speeds_with_breaks("aabaabaab") == warning);
  const auto with_own_seeds = [](store::RunSummary& run) {
    if (run.config == "canon_a") run.seed += 100;
  };
  CHECK(speeds_with_breaks("aaaaaa|baabba", with_own_seeds) == warning);
  CHECK(speeds_with_breaks("abbaabba", with_own_seeds) == "");
  CHECK(speeds_with_breaks("abababab", with_own_seeds) == "speeds measured in one order");
}

TEST_CASE("plans that a command carries out are in turn, in one go or in several",
          "[report][turns]") {
  const std::string warning = "speeds not measured in turn";
  CHECK(speeds_with_breaks("abbaabbaabbaabba") == "");
  CHECK(speeds_with_breaks("abbaabba|abba") == "");  // further seeds of both
  CHECK(speeds_with_breaks("abbaa") == "");          // while it runs
  CHECK(speeds_with_breaks("abbaa|bba") == "");      // resumed in the middle of a turn
  CHECK(speeds_with_breaks("a|bbaa|bba") == warning);
  CHECK(speeds_with_breaks("abba|a|b") == "");
  // Several devices are handed the same order, and may begin it in another one.
  CHECK(speeds_of("aabb", {{0, 9}, {0, 9}, {0, 9}, {0, 9}}) == "");
  CHECK(speeds_of("aabbab", {{0, 9}, {0, 9}, {0, 9}, {0, 9}, {9, 18}, {9, 18}}) == "");
  CHECK(speeds_of("aabb", {{0, 9}, {9, 18}, {18, 27}, {27, 36}}) == warning);
  CHECK(speeds_of("aaabbb", {{0, 9}, {0, 9}, {0, 9}, {9, 18}, {9, 18}, {9, 18}}) == warning);
}

TEST_CASE("a run that went on after a long break has no neighbours", "[report][turns]") {
  const auto resumed = [](const std::set<std::string>& ids) {
    return [ids](store::RunSummary& run) {
      if (ids.count(run.id) == 0) return;
      run.attempts = 2;
      run.updated = utc_timestamp(time_of_day(25));
    };
  };
  CHECK(speeds_with_breaks("abbaabba", resumed({"a3"})) == "");
  CHECK(speeds_with_breaks("abbaabba", resumed({"a3", "a4"})) == "speeds not measured in turn");
  // One that soon went on has its place where most of it was trained.
  const std::vector<Minutes> times = {
      {0, 8}, {1, 10}, {2, 10}, {3, 8}, {4, 9}, {5, 11}, {6, 11}, {7, 9}};
  CHECK(speeds_of("abbaabba", times) == "");
  CHECK(speeds_of("abbaabba", times, [](store::RunSummary& run) { run.attempts = 2; }) ==
        "speeds not measured in turn");
  // So has one whose first steps another one trained.
  const auto continued = [](store::RunSummary& run) { run.continued = run.config == "canon_a"; };
  CHECK(speeds_with_breaks("abbaabba", continued) == "speeds not measured in turn");
}

TEST_CASE("a claim on speeds that were not measured in turn is not decidable", "[report]") {
  const auto verdict_of = [](const std::string& order, const ClaimSpec& claim) {
    Lab lab;
    train_in_order(lab, order);
    TableSpec table = small_table();
    table.claims = {claim};
    return verdict_line(judge_claims(build_ablation(table, lab.read())).front());
  };
  const ClaimSpec plain = {"canon_a", "", "llama", {}, {}, "tokens_per_second", "quick"};
  ClaimSpec own_words;
  own_words.profile = "quick";
  own_words.claim = "Canon-A is faster";
  own_words.holds = "tokens_per_second[canon_a] > tokens_per_second[llama]";
  own_words.comparison = parse_comparison(own_words.holds);
  own_words.expression = difference_of(*own_words.comparison);
  for (const ClaimSpec& claim : {plain, own_words}) {
    CHECK(contains(verdict_of("abbaabba", claim), "holds: "));
    const std::string one_after_another = verdict_of("aaaabbbb", claim);
    CHECK(contains(one_after_another, "not decidable: "));
    CHECK(contains(one_after_another, "; speeds not measured in turn: "));
  }
}

TEST_CASE("a claim on the speed of one row alone compares it with rows of another time",
          "[report]") {
  const auto verdicts_of = [](const std::string& order) {
    Lab lab;
    train_in_order(lab, order);
    TableSpec table = small_table();
    table.rows.resize(2);
    ClaimSpec own_words;
    own_words.profile = "quick";
    own_words.claim = "Canon-A is fast";
    own_words.holds = "tokens_per_second[canon_a] > 1";
    own_words.comparison = parse_comparison(own_words.holds);
    own_words.expression = difference_of(*own_words.comparison);
    table.claims = {{"canon_a", "", "", 1, {}, "tokens_per_second", "quick"},
                    {"llama", "", "", {}, 1e6, "tokens_per_second", "quick"},
                    own_words};
    std::vector<std::string> lines;
    for (const JudgedClaim& claim : judge_claims(build_ablation(table, lab.read())))
      lines.push_back(verdict_line(claim));
    return lines;
  };
  for (const std::string& line : verdicts_of("abbaabba")) CHECK(contains(line, "holds: "));
  for (const std::string& line : verdicts_of("aaaabbbb")) {
    INFO(line);
    CHECK(contains(line, "not decidable: "));
    CHECK(contains(line, "; speeds not measured in turn: "));
  }
  // Who hides the other row would compare it all the same.
  CHECK(contains(verdicts_of("aaaa")[1], "not decidable: "));
  CHECK(contains(verdicts_of("aaaa")[1], "canon_a, which the table declares, has no runs"));
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
  for (store::RunSummary& run : table.rows[1].runs) run.redone_evaluations = 1;
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
