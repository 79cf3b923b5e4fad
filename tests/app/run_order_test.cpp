#include "app/run_order.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <set>

#include "core/base/random.h"
#include "core/results/statistics/sample.h"
#include "core/results/tables/turns.h"
#include "tests/core/results/tables/lab.h"
#include "tests/support/catch.h"

namespace forge::app {
namespace {

using Turns = std::vector<std::vector<size_t>>;

Turns order_of(size_t turns, size_t configs, const std::string& salt) {
  std::vector<std::vector<std::string>> keys(turns);
  for (size_t turn = 0; turn < turns; ++turn)
    for (size_t config = 0; config < configs; ++config)
      keys[turn].push_back(std::to_string(config) + "/" + std::to_string(turn));
  return order_of_turns(keys, salt);
}

/// In how many turns the first config comes before the second one.
int64_t first_before_second(const Turns& turns) {
  return std::count_if(turns.begin(), turns.end(), [](const std::vector<size_t>& turn) {
    return std::find(turn.begin(), turn.end(), 0) < std::find(turn.begin(), turn.end(), 1);
  });
}

TEST_CASE("each turn has every config once", "[run][order]") {
  for (const size_t configs : {1, 2, 3, 8, 16, 17, 300}) {
    for (const size_t turns : {1, 2, 5, 10}) {
      const Turns order = order_of(turns, configs, "a");
      REQUIRE(order.size() == turns);
      for (std::vector<size_t> turn : order) {
        std::sort(turn.begin(), turn.end());
        std::vector<size_t> all(configs);
        std::iota(all.begin(), all.end(), size_t{0});
        REQUIRE(turn == all);
      }
    }
  }
  CHECK(order_of_turns({}, "a").empty());
}

TEST_CASE("the same runs have the same order, and others another one", "[run][order]") {
  CHECK(order_of(10, 3, "a") == order_of(10, 3, "a"));
  std::set<Turns> orders;
  for (int study = 0; study < 20; ++study) orders.insert(order_of(10, 3, std::to_string(study)));
  CHECK(orders.size() == 20);
}

TEST_CASE("no order of a command by itself seems a difference", "[run][order]") {
  for (const size_t turns : {2, 3, 4, 5, 6, 8, 10, 20}) {
    for (const size_t configs : {2, 3, 5, 9, 18}) {
      const Turns order = order_of(turns, configs, "b");
      const int64_t first = first_before_second(order);
      CAPTURE(turns, configs, first);
      CHECK_FALSE(tables::would_seem_real(first, int64_t(turns) - first, turns));
    }
  }
}

TEST_CASE("no config comes before another one much oftener than behind it", "[run][order]") {
  for (const size_t configs : {2, 9, 18, 60}) {
    for (const size_t turns : {2, 3, 5, 10, 20}) {
      const Turns order = order_of(turns, configs, "c");
      size_t pairs = 0, beyond = 0;
      for (size_t own = 0; own < configs; ++own) {
        for (size_t other = 0; other < own; ++other, ++pairs) {
          int64_t lead = 0;
          for (const std::vector<size_t>& turn : order)
            lead += std::find(turn.begin(), turn.end(), own) <
                            std::find(turn.begin(), turn.end(), other)
                        ? 1
                        : -1;
          beyond += double(std::abs(lead)) > std::max(1.0, std::sqrt(double(turns)));
        }
      }
      CAPTURE(configs, turns, pairs, beyond);
      CHECK(beyond <= (configs < 10 ? pairs / 50 : pairs / 4));  // each of some before another one
    }
  }
}

TEST_CASE("either of two configs comes first where a command has one turn", "[run][order]") {
  int64_t first = 0;
  for (int day = 0; day < 400; ++day)
    first += first_before_second(order_of(1, 2, std::to_string(day)));
  CHECK(std::abs(first - 200) < 60);  // six standard deviations; the keys are always the same
}

TEST_CASE("a rhythm of two turns comes in step with few orders", "[run][order]") {
  // What is faster first in one turn and second in the next: there and back it is one row always.
  int in_step = 0;
  const size_t turns = 10;
  for (int study = 0; study < 400; ++study) {
    const Turns order = order_of(turns, 2, std::to_string(study));
    int64_t sum = 0;
    for (size_t turn = 0; turn < turns; ++turn)
      sum += (order[turn][0] == 0) == (turn % 2 == 0) ? 1 : -1;
    const int64_t most = (int64_t(turns) + std::abs(sum)) / 2;
    in_step += tables::would_seem_real(most, int64_t(turns) - most, turns);
  }
  CHECK(in_step < 400 * 20 / 100);
}

/// What a machine adds to the second run of a turn's two, a rhythm with the turns.
double rhythm_at(const std::string& rhythm, size_t turn, size_t turns, double phase, double speed) {
  if (rhythm == "every second turn") return turn % 2 == 0 ? 1 : -1;
  if (rhythm == "two halves") return turn < turns / 2 ? 1 : -1;
  if (rhythm == "a wave") return std::sin(2 * M_PI * (speed * double(turn) + phase));
  return 1;  // a steady drift
}

TEST_CASE("whatever the machine's rhythm, two equal configs seldom seem to differ in speed",
          "[run][order][simulation]") {
  constexpr double noise = 0.3;  // between seeds; the machine adds up to 1
  const int tables = tables::simulated_tables(400);
  const std::string rhythm = GENERATE("steady", "every second turn", "two halves", "a wave");
  const bool is_one_command = GENERATE(true, false);  // or one for each seed
  const auto turns = GENERATE(size_t{5}, size_t{10}, size_t{20});
  RandomStream random(tables::simulation_seed(), 1);
  const auto normal = [&] {
    return std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(2 * M_PI * random.uniform());
  };
  int differ = 0, not_tested = 0;
  for (int table = 0; table < tables; ++table) {
    const std::string study = std::to_string(table);
    const double phase = random.uniform(), speed = 0.4 + 0.2 * random.uniform();
    const Turns order = is_one_command ? order_of(turns, 2, study) : Turns();
    std::vector<double> differences;
    int64_t first = 0;
    for (size_t turn = 0; turn < turns; ++turn) {
      const size_t begins = is_one_command
                                ? order[turn][0]
                                : order_of(1, 2, study + "-" + std::to_string(turn))[0][0];
      first += begins == 0;
      const double sign = begins == 0 ? 1 : -1;
      differences.push_back(sign * rhythm_at(rhythm, turn, turns, phase, speed) + noise * normal());
    }
    if (tables::would_seem_real(first, int64_t(turns) - first, turns)) {
      ++not_tested;
      continue;
    }
    double mean = 0, squares = 0;
    for (const double each : differences) mean += each / double(turns);
    for (const double each : differences) squares += (each - mean) * (each - mean);
    const double error = std::sqrt(squares / double(turns - 1) / double(turns));
    differ += statistics::student_t_two_sided_p(mean / error, double(turns - 1)) <= 0.05;
  }
  std::printf("%s, %zu seeds by %s: %.1f %% differ, %.1f %% not tested\n",
              rhythm.c_str(),
              turns,
              is_one_command ? "one command" : "a command each",
              100.0 * differ / tables,
              100.0 * not_tested / tables);
  CHECK(differ <= tables * (turns == 5 ? 15 : 10) / 100);
  CHECK(not_tested <= (is_one_command ? 0 : tables * 16 / 100));
}

}  // namespace
}  // namespace forge::app
