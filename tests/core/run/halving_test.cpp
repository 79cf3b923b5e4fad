#include "core/run/halving.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "core/base/random.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::error_of;
using Steps = std::vector<int64_t>;

HalvingRule rule_of(int64_t first, int64_t eta) {
  HalvingRule rule;
  rule.first = first;
  rule.eta = eta;
  return rule;
}

/// A run that has reached its aim with these losses.
Contestant arrived_run(std::vector<double> losses) {
  Contestant contestant;
  contestant.aim = int(losses.size()) - 1;
  contestant.losses = std::move(losses);
  return contestant;
}

/// A run that goes to a rung now.
Contestant active_run(std::vector<double> losses) {
  Contestant contestant = arrived_run(std::move(losses));
  ++contestant.aim;
  contestant.is_active = true;
  return contestant;
}

/// "0>1" for a certain step of run 0 to rung 1, "0?1" for a guess.
std::vector<std::string> next_texts(const std::vector<NextRun>& next) {
  std::vector<std::string> list;
  for (const NextRun& run : next)
    list.push_back(std::to_string(run.contestant) + (run.is_certain ? ">" : "?") +
                   std::to_string(run.rung));
  return list;
}
using Texts = std::vector<std::string>;

TEST_CASE("rungs grow by eta up to the run's length", "[run][halving]") {
  REQUIRE(rung_steps(rule_of(200, 3), 1600) == Steps{200, 600, 1600});
  REQUIRE(rung_steps(rule_of(200, 3), 1800) == Steps{200, 600, 1800});
  REQUIRE(rung_steps(rule_of(200, 3), 1801) == Steps{200, 600, 1800, 1801});
  REQUIRE(rung_steps(rule_of(1, 2), 2) == Steps{1, 2});
  REQUIRE(rung_steps(rule_of(1, 2), std::numeric_limits<int64_t>::max()).back() ==
          std::numeric_limits<int64_t>::max());
  REQUIRE(error_of([] { rung_steps(rule_of(200, 3), 200); }).find("train.max_steps is 200") !=
          std::string::npos);
}

TEST_CASE("all runs begin, and interrupted ones go on", "[run][halving]") {
  Contestant interrupted = active_run({1.0});
  interrupted.is_active = false;
  REQUIRE(next_texts(next_runs({{}, active_run({}), interrupted}, 3, 3)) == Texts{"0>0", "2>1"});
}

TEST_CASE("of a settled rung the best go on, at least one", "[run][halving]") {
  const std::vector<Contestant> runs = {arrived_run({6}),
                                        arrived_run({5}),
                                        arrived_run({4}),
                                        arrived_run({3}),
                                        arrived_run({2}),
                                        arrived_run({1})};
  REQUIRE(next_texts(next_runs(runs, 3, 3)) == Texts{"5>1", "4>1"});
  REQUIRE(next_texts(next_runs({arrived_run({2}), arrived_run({1})}, 3, 3)) == Texts{"1>1"});
  // The rung above waits for those that are promoted now.
  REQUIRE(next_texts(next_runs({arrived_run({1, 1}), arrived_run({2}), arrived_run({3})}, 3, 3)) ==
          Texts{"0>2"});
  REQUIRE(next_runs({arrived_run({1, 1, 1}), arrived_run({2}), arrived_run({3})}, 3, 3).empty());
}

TEST_CASE("while others are on their way a promotion is a guess", "[run][halving]") {
  const std::vector<Contestant> runs = {
      arrived_run({3}), arrived_run({1}), arrived_run({2}), active_run({})};
  REQUIRE(next_texts(next_runs(runs, 3, 3)) == Texts{"1?1"});
  REQUIRE(next_runs({arrived_run({3}), arrived_run({1}), active_run({})}, 3, 3).empty());
  // Who is beyond the rung changes nothing there.
  REQUIRE(next_texts(next_runs({active_run({1, 1}),
                                arrived_run({2}),
                                arrived_run({3}),
                                arrived_run({4}),
                                arrived_run({5}),
                                arrived_run({6})},
                               3,
                               4)) == Texts{"1>1"});
}

TEST_CASE("of equal losses the earlier run is better", "[run][halving]") {
  REQUIRE(next_texts(next_runs({arrived_run({2}), arrived_run({1}), arrived_run({1})}, 3, 2)) ==
          Texts{"1>1"});
}

TEST_CASE("the best of a search has the lowest finite loss of those that reached the end",
          "[run][halving]") {
  const double nan = std::nan("");
  REQUIRE(best_contestant({arrived_run({1, nan}), arrived_run({1, 3}), arrived_run({1, 2})}, 2) ==
          2U);
  REQUIRE(best_contestant({arrived_run({1, 2}), arrived_run({1, 2}), arrived_run({0.5})}, 2) == 0U);
  REQUIRE_FALSE(best_contestant({arrived_run({1, nan}), arrived_run({1})}, 2));
  CHECK(is_better(3, nan));
  CHECK_FALSE(is_better(nan, 3));
  CHECK_FALSE(is_better(nan, nan));
  CHECK_FALSE(is_better(-std::numeric_limits<double>::infinity(), 3));
}

TEST_CASE("a run that failed is the worst of its rung, and no loss that is not finite goes on",
          "[run][halving]") {
  Contestant failed = active_run({});
  failed.is_active = false;
  failed.is_out = true;
  REQUIRE(next_texts(next_runs({failed, arrived_run({2}), arrived_run({3})}, 3, 2)) ==
          Texts{"1>1"});
  REQUIRE(next_runs({failed, failed, failed}, 3, 2).empty());
  const double nan = std::nan("");
  REQUIRE(next_runs({arrived_run({nan}), arrived_run({nan}), arrived_run({nan})}, 3, 2).empty());
  REQUIRE(next_texts(next_runs({arrived_run({nan}), arrived_run({9}), arrived_run({nan})}, 3, 2)) ==
          Texts{"1>1"});
  // One that failed after it had arrived is not sent on, and nobody in its place.
  Contestant broken = arrived_run({1});
  broken.is_out = true;
  REQUIRE(next_runs({broken, arrived_run({2}), arrived_run({3})}, 3, 2).empty());
}

/// A search of simulated runs on so many devices. The loss of a run falls with its steps, by a
/// factor of its own.
struct Simulation {
  int64_t eta = 3;
  int rungs = 3;
  size_t devices = 1;
  std::vector<std::vector<double>> losses;  ///< of each run at each rung
  std::vector<Contestant> runs;
  std::vector<std::pair<size_t, int>> sent;
  RandomStream random;

  Simulation(size_t count, int64_t eta_, int rungs_, size_t devices_, uint64_t seed)
      : eta(eta_), rungs(rungs_), devices(devices_), runs(count), random(seed, 1) {
    for (size_t run = 0; run < count; ++run) {
      losses.emplace_back();
      const double quality = random.uniform();
      for (int rung = 0; rung < rungs; ++rung)
        losses.back().push_back(quality + random.uniform() / double(1 + rung));
    }
  }

  /// Sends runs as the driver does, and ends active ones in a random order.
  void run_all() {
    std::vector<size_t> waiting, running;
    while (true) {
      for (;;) {
        const std::vector<NextRun> next = next_runs(runs, eta, rungs);
        std::vector<NextRun> now;
        for (const NextRun& run : next) {
          if (run.is_certain) now.push_back(run);
        }
        if (now.empty() && !next.empty() && waiting.empty() && running.size() < devices)
          now.push_back(next.front());
        for (const NextRun& run : now) {
          REQUIRE(std::find(sent.begin(), sent.end(), std::make_pair(run.contestant, run.rung)) ==
                  sent.end());
          REQUIRE(run.rung == int(runs[run.contestant].losses.size()));
          sent.emplace_back(run.contestant, run.rung);
          runs[run.contestant].aim = run.rung;
          runs[run.contestant].is_active = true;
          waiting.push_back(run.contestant);
        }
        while (!waiting.empty() && running.size() < devices) {
          running.push_back(waiting.front());
          waiting.erase(waiting.begin());
        }
        if (now.empty()) break;
      }
      if (running.empty()) return;
      const size_t place = devices == 1 ? 0 : size_t(random.below(running.size()));
      Contestant& ended = runs[running[place]];
      ended.losses.push_back(losses[running[place]][size_t(ended.aim)]);
      ended.is_active = false;
      running.erase(running.begin() + std::ptrdiff_t(place));
    }
  }

  Steps counts() const {
    Steps counts;
    for (int rung = 0; rung < rungs; ++rung)
      counts.push_back(std::count_if(
          sent.begin(), sent.end(), [&](const auto& step) { return step.second == rung; }));
    return counts;
  }
};

/// How many runs reach each rung of a search that nobody has begun.
Steps expected_counts(size_t count, int64_t eta, int rungs) {
  return counts_at(expected_end(std::vector<Contestant>(count), eta, rungs), rungs);
}

TEST_CASE("one run at a time is successive halving: the best of each rung, and no others",
          "[run][halving]") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const size_t count = 1 + seed;
    Simulation search(count, 2 + int64_t(seed % 3), 4, 1, seed);
    search.run_all();
    REQUIRE(search.counts() == expected_counts(count, search.eta, 4));
    for (int rung = 0; rung + 1 < 4; ++rung) {
      double worst_promoted = 0, best_left = 1e9;
      for (const Contestant& run : search.runs) {
        if (int(run.losses.size()) <= rung) continue;
        const double loss = run.losses[size_t(rung)];
        if (run.aim > rung) worst_promoted = std::max(worst_promoted, loss);
        if (run.aim == rung) best_left = std::min(best_left, loss);
      }
      REQUIRE(worst_promoted <= best_left);
    }
  }
}

TEST_CASE("several devices promote no run twice, no more than the bound, and finish",
          "[run][halving]") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const size_t count = 1 + seed % 30;
    Simulation search(count, 2 + int64_t(seed % 3), 3, 2 + seed % 5, seed);
    search.run_all();
    const Steps counts = search.counts();
    const Steps expected = expected_counts(count, search.eta, 3);
    const Steps most = most_counts(int64_t(count), search.eta, 3);
    for (size_t rung = 0; rung < 3; ++rung) {
      REQUIRE(counts[rung] >= expected[rung]);
      REQUIRE(counts[rung] <= most[rung]);
    }
    // What would have been promoted in one go has been promoted.
    std::vector<double> first;
    for (const auto& of_run : search.losses) first.push_back(of_run[0]);
    std::sort(first.begin(), first.end());
    for (size_t run = 0; run < count; ++run) {
      if (search.losses[run][0] <= first[size_t(expected[1]) - 1])
        REQUIRE(search.runs[run].aim >= 1);
    }
  }
}

TEST_CASE("the order of ends that are the same gives the same search", "[run][halving]") {
  Simulation one(20, 3, 4, 4, 7), other(20, 3, 4, 4, 7);
  one.run_all();
  other.run_all();
  REQUIRE(one.sent == other.sent);
}

TEST_CASE("what a search will take begins where its runs are", "[run][halving]") {
  const auto counts_after = [](const std::vector<Contestant>& runs) {
    return counts_at(expected_end(runs, 3, 3), 3);
  };
  // It is over, and so it stays, though two runs were promoted by two devices.
  const std::vector<Contestant> over = {
      arrived_run({1, 1, 1}), arrived_run({2, 2}), arrived_run({3})};
  REQUIRE(counts_after(over) == Steps{3, 2, 1});
  REQUIRE(counts_at(over, 3) == Steps{3, 2, 1});
  // The best known one goes on: those that are not known are no better.
  const std::vector<Contestant> end =
      expected_end({Contestant(), arrived_run({2}), arrived_run({1}), active_run({})}, 3, 3);
  REQUIRE(counts_at(end, 3) == Steps{4, 1, 1});
  REQUIRE(end[2].losses.size() == 3);
  // Who was interrupted on the way to a rung gets there, and one without a finite loss does not.
  REQUIRE(counts_after({active_run({1}), arrived_run({2})}) == Steps{2, 1, 1});
  REQUIRE(counts_after({arrived_run({std::nan("")}), arrived_run({std::nan("")})}) ==
          Steps{2, 0, 0});
}

TEST_CASE("the steps of a search are counted once", "[run][halving]") {
  REQUIRE(expected_counts(9, 3, 3) == Steps{9, 3, 1});
  REQUIRE(most_counts(9, 3, 3) == Steps{9, 7, 5});
  REQUIRE(most_counts(2, 3, 3) == Steps{2, 1, 1});
  REQUIRE(total_steps({9, 3, 1}, {200, 600, 1600}) == 9 * 200 + 3 * 400 + 1000);
  REQUIRE(counts_text({9, 3, 1}, {200, 600, 1600}) ==
          "9 runs to step 200, 3 to step 600, 1 to step 1,600");
  REQUIRE(halved_text(400, 1600) == "stopped at 400 of 1,600 steps by halving");
  REQUIRE(is_halved(halved_text(400, 1600)));
  REQUIRE_FALSE(is_halved("stopped on request after step 400"));
}

}  // namespace
}  // namespace forge::run
