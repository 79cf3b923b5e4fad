#include "core/results/tables/turns.h"

#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/results/metrics.h"
#include "core/results/tables/verdicts.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::tables {
namespace {

using namespace tests;

/// The letters are the configs of the runs in their order, each with its next seed, one behind the
/// other.
void train_in_order(const Lab& lab, const std::string& order) {
  double begun = time_of_day(20);
  std::map<char, int> seeds;
  for (const char letter : order) {
    const bool is_baseline = letter == 'a';
    const int seed = ++seeds[letter];
    MadeRun run = Lab::run(is_baseline ? "llama" : letter == 'b' ? "canon_a" : "canon_b", 20);
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
  // A break that is shorter than a run.
  CHECK(speed_of(apart, 86400) == "speeds measured hours apart");
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
  CHECK(speeds_with_breaks("abbaabba|baab") == "");  // further seeds of both
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

TEST_CASE("what lies between two rows of a turn is no break while others are trained",
          "[report][turns]") {
  const std::string warning = "speeds not measured in turn";
  // Runs of twenty minutes, of three rows there and back.
  const auto run_one_by_one = [](const std::string& order, const std::set<size_t>& after_a_break) {
    std::vector<Minutes> times;
    int minute = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      if (after_a_break.count(i) > 0) minute += 60;
      times.push_back({minute, minute + 20});
      minute += 21;
    }
    return speeds_of(order, times, [](store::RunSummary& run) {
      run.metrics[results::wall_seconds_name] = 1190;
    });
  };
  CHECK(run_one_by_one("abccbaabccba", {}) == "");
  CHECK(run_one_by_one("abccbaabccba", {3}) == "");
  CHECK(run_one_by_one("abccbaabccba", {1, 5}) == warning);
  CHECK(run_one_by_one("aaabbbccc", {}) == warning);
}

TEST_CASE("a machine that is cold after breaks makes no row look slower", "[report][turns]") {
  const std::string warning = "speeds of one row measured after breaks";
  CHECK(speeds_with_breaks("abba|abba|abba") == warning);
  CHECK(speeds_with_breaks("abba|abba") == "");  // two of four pairs are a t of 1.7
  CHECK(speeds_with_breaks("abba|baab|abba") == "");
  CHECK(speeds_with_breaks("ab|ba|ab|ba") == "");
  CHECK(speeds_with_breaks("abccba|abccba|abccba") == warning);
  CHECK(speeds_with_breaks("abccba|bcaacb") == "");
  // Of two devices both are cold.
  CHECK(speeds_of("abab", {{0, 9}, {0, 9}, {100, 109}, {100, 109}}) == "");
}

TEST_CASE("an order of runs that by itself would seem a difference is known", "[report][turns]") {
  // t of 1 and -1 and 0, by hand: 1.5 of 4:1, 2.0 and p = 0.102 of 5:1, 2.25 of 8:2, 2.24 of three
  // of six.
  CHECK_FALSE(would_seem_real(4, 1, 5));
  CHECK_FALSE(would_seem_real(5, 1, 6));
  CHECK(would_seem_real(8, 2, 10));
  CHECK(would_seem_real(2, 8, 10));
  CHECK(would_seem_real(3, 0, 6));
  CHECK_FALSE(would_seem_real(2, 0, 4));
  for (const size_t pairs : {2, 3, 5, 10}) {
    CHECK(would_seem_real(int64_t(pairs), 0, pairs));
    CHECK_FALSE(would_seem_real(0, 0, pairs));
  }
  CHECK_FALSE(would_seem_real(1, 0, 1));
}

TEST_CASE("speeds of runs that were begun hours apart are not tested", "[report][turns]") {
  const auto run_one_by_one = [](const std::string& order,
                                 int minutes,
                                 const std::function<void(store::RunSummary&)>& change = {}) {
    std::vector<Minutes> times;
    for (int i = 0; i < static_cast<int>(order.size()); ++i)
      times.push_back({i * minutes, (i + 1) * minutes});
    return speeds_of(order, times, [&](store::RunSummary& run) {
      run.metrics[results::wall_seconds_name] = 60.0 * minutes;
      if (change) change(run);
    });
  };
  const std::string warning = "speeds measured hours apart";
  // Where forge drew which one comes first, no day comes in step with it.
  const auto draw = [](store::RunSummary& run) { run.drawn_order = "one"; };
  CHECK(run_one_by_one("abbaabba", 300, draw) == "");
  const auto draw_each = [](store::RunSummary& run) { run.drawn_order = run.config; };
  CHECK(run_one_by_one("abbaabba", 300, draw_each) == warning);
  CHECK(run_one_by_one("abbaabba", 110) == "");
  CHECK(run_one_by_one("abbaabba", 130) == warning);
  CHECK(run_one_by_one("abccbaabc", 55) == "");
  CHECK(run_one_by_one("abccbaabc", 70) == warning);  // two of them lie between the outer ones
  // On two devices at once, however long they take.
  CHECK(speeds_of("abba", {{0, 600}, {0, 600}, {600, 1200}, {600, 1200}}) == "");
}

TEST_CASE("rows are in turn by their seeds where one run was made again at the end",
          "[report][turns]") {
  const std::string warning = "speeds not measured in turn";
  const auto rotate_seeds = [](store::RunSummary& run) {
    if (run.config == "canon_a") run.seed = run.seed % 5 + 1;  // the first one's turn is the last
  };
  CHECK(speeds_with_breaks("abaabbaabb", rotate_seeds) == "");
  CHECK(speeds_with_breaks("abaabbaabb") == warning);
  CHECK(speeds_with_breaks("aaaaabbbbb", rotate_seeds) == warning);
}

TEST_CASE("one run of two rows may have gone on after it was stopped", "[report][turns]") {
  const std::string warning = "speeds not measured in turn";
  const auto resumed = [](const std::set<std::string>& ids) {
    return [ids](store::RunSummary& run) { run.resumptions = ids.count(run.id) > 0 ? 1 : 0; };
  };
  CHECK(speeds_with_breaks("abbaabba", resumed({"a3"})) == "");
  CHECK(speeds_with_breaks("abbaabba", resumed({"a3", "a4"})) == warning);
  CHECK(speeds_with_breaks("abbaabba", resumed({"a3", "b4"})) == warning);
  const auto continued = [](store::RunSummary& run) { run.continued = run.config == "canon_a"; };
  CHECK(speeds_with_breaks("abbaabba", continued) == warning);
}

TEST_CASE("a speed that was measured again after it was told is not tested", "[report][turns]") {
  const auto lost = [](store::RunSummary& run) { run.lost_windows = run.id == "a3" ? 2 : 0; };
  CHECK(speeds_with_breaks("abbaabba", lost) == "speeds of runs trained anew not tested");
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

}  // namespace
}  // namespace forge::tables
