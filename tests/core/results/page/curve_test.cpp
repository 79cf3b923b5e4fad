#include "core/results/page/page.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/page_maker.h"

namespace forge::page {
namespace {

const double nan = std::numeric_limits<double>::quiet_NaN();

bool has(const Curve& curve, int64_t tokens) {
  return std::any_of(
      curve.begin(), curve.end(), [&](const store::LossPoint& p) { return p.tokens == tokens; });
}

/// What the page's script does: whole numbers from differences in base64 VLQ, NaN for "~".
std::vector<double> decoded(const std::string& text, int order, int digits) {
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<double> numbers;
  int64_t last = 0, change = 0, rest = 0;
  int shift = 0;
  for (const char c : text) {
    if (c == '~') {
      numbers.push_back(nan);
      continue;
    }
    const auto digit = static_cast<int64_t>(letters.find(c));
    rest |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    const int64_t value = rest & 1 ? -(rest >> 1) : rest >> 1;
    change = order == 2 ? change + value : value;
    last += change;
    numbers.push_back(static_cast<double>(last) / std::pow(10, digits));
    rest = shift = 0;
  }
  return numbers;
}

TEST_CASE("a curve within the limit stays as it is", "[report][page]") {
  const Curve curve = tests::falling_curve(1000, 1);
  CHECK(downsampled(curve, 1000).size() == 1000);
  CHECK(downsampled({}, 5).empty());
}

TEST_CASE("a downsampled curve keeps its ends and every extreme where it is", "[report][page]") {
  Curve curve = tests::falling_curve(10000, 2);
  curve[1234].loss = 50;    // a spike of one point
  curve[7777].loss = 0.01;  // a dip of one point
  const Curve few = downsampled(curve, 1000);
  CHECK(few.size() <= 1000);
  CHECK(few.size() > 900);
  for (const size_t i : {0, 1234, 7777, 9999}) CHECK(has(few, curve[i].tokens));
  CHECK(std::is_sorted(
      few.begin(), few.end(), [](const store::LossPoint& a, const store::LossPoint& b) {
        return a.tokens < b.tokens;
      }));
}

TEST_CASE("every stretch of a downsampled curve spans what it spanned", "[report][page]") {
  const Curve curve = tests::falling_curve(5002, 3);
  const Curve few = downsampled(curve, 102);  // 50 stretches of 100 points
  for (size_t begin = 1; begin + 1 < curve.size(); begin += 100) {
    const auto by_loss = [](const store::LossPoint& a, const store::LossPoint& b) {
      return a.loss < b.loss;
    };
    const auto [low, high] =
        std::minmax_element(curve.begin() + begin, curve.begin() + begin + 100, by_loss);
    CHECK(has(few, low->tokens));
    CHECK(has(few, high->tokens));
  }
}

TEST_CASE("a downsampled curve shows where losses were no numbers", "[report][page]") {
  Curve curve = tests::falling_curve(10000, 4);
  curve[4321].loss = nan;
  for (size_t i = 9000; i < curve.size(); ++i) curve[i].loss = nan;
  const Curve few = downsampled(curve, 300);
  CHECK(few.size() <= 300);
  CHECK(has(few, curve[4321].tokens));
  const auto after = [](const store::LossPoint& point) { return point.tokens > 9001 * 16384; };
  CHECK(std::all_of(few.begin(), few.end(), [&](const store::LossPoint& point) {
    return !after(point) || std::isnan(point.loss);
  }));
  CHECK(std::isnan(few.back().loss));
}

TEST_CASE("an encoded curve is read back to the digits that it keeps", "[report][page]") {
  Curve curve = tests::falling_curve(500, 5);
  curve[3].loss = nan;
  curve[4].elapsed_seconds = nan;
  const nlohmann::ordered_json json = encoded(curve);
  CHECK(json["count"] == 500);
  const auto tokens = decoded(json["tokens"], 2, 0);
  const auto seconds = decoded(json["seconds"], 2, json["seconds_digits"]);
  const auto losses = decoded(json["loss"], 1, json["loss_digits"]);
  REQUIRE(tokens.size() == 500);
  REQUIRE(seconds.size() == 500);
  REQUIRE(losses.size() == 500);
  CHECK(std::isnan(losses[3]));
  CHECK(std::isnan(seconds[4]));
  for (size_t i = 5; i < curve.size(); ++i) {
    REQUIRE(tokens[i] == static_cast<double>(curve[i].tokens));
    REQUIRE(std::abs(seconds[i] - curve[i].elapsed_seconds) <= 0.5e-3);
    REQUIRE(std::abs(losses[i] - curve[i].loss) <= 0.5001e-4);
  }
}

TEST_CASE("small losses keep four digits, huge ones stay within what a script counts",
          "[report][page]") {
  const auto losses_of = [](const Curve& curve) {
    const nlohmann::ordered_json json = encoded(curve);
    return decoded(json["loss"], 1, json["loss_digits"]);
  };
  CHECK(losses_of({{1, 1, 0.0012345}, {2, 2, 3}})[0] == Approx(0.001234).margin(1e-6));
  const auto huge = losses_of({{1, 1, 1e30}, {2, 2, 5e29}});
  CHECK(huge[0] == Approx(1e30).epsilon(1e-9));
  CHECK(huge[1] == Approx(5e29).epsilon(1e-9));
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(std::isnan(losses_of({{1, 1, infinity}, {2, 2, 3}})[0]));
  CHECK(losses_of({{1, 1, 0}, {2, 2, -1.5}})[1] == -1.5);
}

TEST_CASE("counts that no script could hold are no numbers", "[report][page]") {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const nlohmann::ordered_json json = encoded(
      {{1, most, 2, 1}, {2, 5, 2, 2e30}, {3, -most - 1, 2, 3}, {4, int64_t{15} << 40, 2, 4}});
  const auto tokens = decoded(json["tokens"], 2, 0);
  REQUIRE(tokens.size() == 4);
  CHECK(std::isnan(tokens[0]));
  CHECK(tokens[1] == 5);
  CHECK(std::isnan(tokens[2]));
  CHECK(tokens[3] == static_cast<double>(int64_t{15} << 40));
  CHECK(std::isnan(decoded(json["seconds"], 2, json["seconds_digits"])[1]));
}

TEST_CASE("an even grid costs a letter a point", "[report][page]") {
  Curve curve;
  for (int64_t i = 1; i <= 1000; ++i)
    curve.push_back({i, i * 16384, 2, 0.5 * static_cast<double>(i)});
  const nlohmann::ordered_json json = encoded(curve);
  CHECK(json["tokens"].get<std::string>().size() < 1010);
  CHECK(json["seconds"].get<std::string>().size() < 1010);
}

}  // namespace
}  // namespace forge::page
