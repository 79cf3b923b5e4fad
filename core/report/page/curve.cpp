#include "core/report/page/curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace forge::report::page {
namespace {

/// Differences of differences of such counts, and twice those, are exact in a script's numbers.
constexpr int64_t largest_count = int64_t{1} << 49;

/// Adds the points of a stretch that must stay, in their order.
void add_extremes(const Curve& curve, size_t begin, size_t end, Curve& chosen) {
  constexpr size_t none = std::numeric_limits<size_t>::max();
  std::array<size_t, 3> kept = {none, none, none};
  auto& [lowest, highest, no_number] = kept;
  for (size_t i = begin; i < end; ++i) {
    const double loss = curve[i].loss;
    if (!std::isfinite(loss)) {
      if (no_number == none) no_number = i;
      continue;
    }
    if (lowest == none || loss < curve[lowest].loss) lowest = i;
    if (highest == none || loss > curve[highest].loss) highest = i;
  }
  std::sort(kept.begin(), kept.end());
  const auto last = std::unique(kept.begin(), kept.end());
  for (auto i = kept.begin(); i != last && *i != none; ++i) chosen.push_back(curve[*i]);
}

double power_of_ten(int exponent) { return std::pow(10.0, exponent); }

/// How many decimals the losses keep.
int digits_of_losses(const Curve& curve) {
  double smallest = std::numeric_limits<double>::infinity();
  double largest = 0;
  for (const CurvePoint& point : curve) {
    const double size = std::abs(point.loss);
    if (!std::isfinite(size)) continue;
    largest = std::max(largest, size);
    if (size > 0) smallest = std::min(smallest, size);
  }
  int digits = 4;
  if (std::isfinite(smallest))
    digits = std::clamp(3 - static_cast<int>(std::floor(std::log10(smallest))), 4, 9);
  while (largest * power_of_ten(digits) > static_cast<double>(largest_count)) --digits;
  return digits;
}

/// Decimals that make five digits of the longest time.
int digits_of_seconds(const Curve& curve) {
  double longest = 0;
  for (const CurvePoint& point : curve) {
    if (std::isfinite(point.seconds)) longest = std::max(longest, point.seconds);
  }
  if (longest <= 0) return 0;
  return std::clamp(5 - static_cast<int>(std::ceil(std::log10(longest))), 0, 6);
}

/// Writes whole numbers as differences in base64 VLQ.
class DifferenceWriter {
 public:
  /// `order` 1: differences, 2: differences of differences, which are 0 on an even grid.
  explicit DifferenceWriter(int order) : order_(order) {}

  /// One that is too large for a script is none.
  void number(int64_t value) {
    if (value > largest_count || value < -largest_count) {
      text_ += '~';
      return;
    }
    const int64_t change = value - last_;
    write(order_ == 2 ? change - last_change_ : change);
    last_ = value;
    last_change_ = change;
  }

  void number(double value, double scale) {
    const double count = value * scale;
    if (!std::isfinite(count) || std::abs(count) > static_cast<double>(largest_count)) {
      text_ += '~';
    } else {
      number(static_cast<int64_t>(std::llround(count)));
    }
  }

  const std::string& text() const { return text_; }

 private:
  void write(int64_t value) {
    static const char* const letters =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t rest =
        value < 0 ? (static_cast<uint64_t>(-value) << 1) | 1 : static_cast<uint64_t>(value) << 1;
    do {
      const uint64_t low = rest & 31;
      rest >>= 5;
      text_ += letters[low | (rest > 0 ? 32 : 0)];
    } while (rest > 0);
  }

  int order_;
  int64_t last_ = 0;
  int64_t last_change_ = 0;
  std::string text_;
};

}  // namespace

Curve thinned(const Curve& curve, size_t limit) {
  if (curve.size() <= limit) return curve;
  const bool has_gaps = std::any_of(curve.begin(), curve.end(), [](const CurvePoint& point) {
    return !std::isfinite(point.loss);
  });
  const size_t inner = curve.size() - 2;
  const size_t stretches = (limit - 2) / (has_gaps ? 3 : 2);
  Curve chosen = {curve.front()};
  chosen.reserve(limit);
  for (size_t i = 0; i < stretches; ++i) {
    add_extremes(curve, 1 + i * inner / stretches, 1 + (i + 1) * inner / stretches, chosen);
  }
  chosen.push_back(curve.back());
  return chosen;
}

nlohmann::ordered_json encoded(const Curve& curve) {
  const int loss_digits = digits_of_losses(curve);
  const int seconds_digits = digits_of_seconds(curve);
  DifferenceWriter tokens(2), seconds(2), losses(1);
  for (const CurvePoint& point : curve) {
    tokens.number(point.tokens);
    seconds.number(point.seconds, power_of_ten(seconds_digits));
    losses.number(point.loss, power_of_ten(loss_digits));
  }
  nlohmann::ordered_json json;
  json["count"] = curve.size();
  json["tokens"] = tokens.text();
  json["seconds"] = seconds.text();
  json["seconds_digits"] = seconds_digits;
  json["loss"] = losses.text();
  json["loss_digits"] = loss_digits;
  return json;
}

}  // namespace forge::report::page
