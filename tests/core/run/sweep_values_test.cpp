#include "core/run/sweep_values.h"

#include <set>

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::error_of;
using Texts = std::vector<std::string>;

double number_of(const std::string& setting) {
  return std::stod(setting.substr(setting.find('=') + 1));
}

RandomKey random_rate() { return {"optimizer.lr", {ValueKind::log_uniform, 1e-4, 1e-2, {}}}; }
RandomKey random_decay() { return {"optimizer.weight_decay", {ValueKind::uniform, 0, 0.2, {}}}; }
RandomKey random_canon() {
  return {"model.canon.set", {ValueKind::choice, 0, 0, {"A", "AC", "ABCD"}}};
}

TEST_CASE("a range has round numbers, and its ends as they are", "[run][sweep]") {
  REQUIRE(range_values("optimizer.lr", ValueKind::log, 1.2345e-4, 1e-2, 3) ==
          Texts{"0.00012345", "0.00111", "0.01"});
  REQUIRE(range_values("optimizer.lr", ValueKind::linear, 0.001, 0.002, 4) ==
          Texts{"0.001", "0.00133", "0.00167", "0.002"});
  // As many digits as keep the values apart.
  REQUIRE(range_values("optimizer.lr", ValueKind::linear, 1, 1.002, 3) ==
          Texts{"1", "1.001", "1.002"});
  REQUIRE(range_values("train.batch_size", ValueKind::linear, 8, 32, 4) ==
          Texts{"8", "16", "24", "32"});
  REQUIRE(range_values("optimizer.lr", ValueKind::log, 1e-6, 1e-4, 2) == Texts{"1e-06", "0.0001"});
}

TEST_CASE("every range increases from end to end", "[run][sweep]") {
  for (const ValueKind kind : {ValueKind::linear, ValueKind::log}) {
    for (const int64_t count : {2, 3, 7, 100}) {
      const Texts values = range_values("optimizer.lr", kind, 3e-5, 0.7, count);
      REQUIRE(int64_t(values.size()) == count);
      for (size_t i = 1; i < values.size(); ++i)
        REQUIRE(std::stod(values[i - 1]) < std::stod(values[i]));
      REQUIRE(std::stod(values.front()) == 3e-5);
      REQUIRE(std::stod(values.back()) == 0.7);
    }
  }
}

TEST_CASE("the same seed draws the same points, and a larger count goes on", "[run][sweep]") {
  const std::vector<RandomKey> keys = {random_rate(), random_decay(), random_canon()};
  const auto points = draw_samples(keys, 8, 1);
  REQUIRE(points.size() == 8);
  // Recorded: these bits are the same on every machine.
  REQUIRE(points[0] ==
          Overrides{"optimizer.lr=0.000109", "optimizer.weight_decay=0.0365", "model.canon.set=A"});
  REQUIRE(points[7] == Overrides{"optimizer.lr=0.000511",
                                 "optimizer.weight_decay=0.0018",
                                 "model.canon.set=ABCD"});
  REQUIRE(draw_samples(keys, 8, 1) == points);
  REQUIRE(draw_samples(keys, 8, 2) != points);
  const auto more = draw_samples(keys, 20, 1);
  REQUIRE(std::vector<Overrides>(more.begin(), more.begin() + 8) == points);
  // Without a key the others are drawn as before.
  const auto alone = draw_samples({random_rate()}, 8, 1);
  for (size_t i = 0; i < alone.size(); ++i) REQUIRE(alone[i][0] == points[i][0]);
}

TEST_CASE("draws lie between the ends, and fill what lies there", "[run][sweep]") {
  const RandomKey batch{"train.batch_size", {ValueKind::uniform, 1, 8, {}}};
  const auto points = draw_samples({random_rate(), batch}, 1000, 7);
  int small = 0;
  std::set<std::string> sizes;
  for (const Overrides& point : points) {
    REQUIRE(number_of(point[0]) >= 1e-4);
    REQUIRE(number_of(point[0]) <= 1e-2);
    small += number_of(point[0]) < 1e-3 ? 1 : 0;
    sizes.insert(point[1]);
  }
  REQUIRE(small > 430);  // of a half; a draw off that far is less likely than 1 in 10^4
  REQUIRE(small < 570);
  REQUIRE(sizes.size() == 8);
  REQUIRE(sizes.count("train.batch_size=1") == 1);
  REQUIRE(sizes.count("train.batch_size=8") == 1);
}

TEST_CASE("no point is drawn twice, and too few are an error", "[run][sweep]") {
  const auto all = draw_samples({random_canon()}, 3, 1);
  REQUIRE(std::set<Overrides>(all.begin(), all.end()).size() == 3);
  REQUIRE(error_of([] { draw_samples({random_canon()}, 4, 1); }).find("only 3 different") !=
          std::string::npos);
}

TEST_CASE("thousands of points are drawn at once, and no more than ten thousand", "[run][sweep]") {
  CHECK(draw_samples({random_rate(), random_decay()}, 10000, 1).size() == 10000);
  // Of three digits there are some 1,800 rates: not all of 10,000 are looked for a thousand times.
  CHECK(tests::contains(error_of([] { draw_samples({random_rate()}, 10000, 1); }),
                        "asks for 10000 samples, and only 1801 different ones were found"));
  CHECK(tests::contains(error_of([] { draw_samples({random_rate()}, 10001, 1); }),
                        "10,001 are too many samples"));
}

TEST_CASE("a distribution without values is refused", "[run][sweep]") {
  const auto says = [](const RandomKey& key, const char* what) {
    REQUIRE(error_of([&] { check_distribution(key); }).find(what) != std::string::npos);
  };
  says({"optimizer.lr", {ValueKind::uniform, 1, 1, {}}}, "has no values from 1 to 1");
  says({"optimizer.lr", {ValueKind::log_uniform, 0, 1, {}}}, "numbers above 0");
  says({"model.canon.set", {ValueKind::uniform, 0, 1, {}}}, "the key takes text");
  says({"train.batch_size", {ValueKind::uniform, 0.5, 8, {}}}, "takes integers");
  says({"model.canon.set", {ValueKind::choice, 0, 0, {}}}, "nothing to choose from");
  says({"model.canon.set", {ValueKind::choice, 0, 0, {"A", "A"}}}, "the value A twice");
}

}  // namespace
}  // namespace forge::run
