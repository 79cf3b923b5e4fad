#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/model/parameters.h"

namespace forge::model {
namespace {

/// Some of the numbers that a stream holds for a parameter.
struct Range {
  uint64_t stream, seed;
  int64_t first, count;
};

/// values[i] = transform(u) with u in (0, 1) made of word first + i of the stream. The numbers are
/// computed in double and rounded once.
template <class Transform>
void fill(const Range& range, float* values, Transform transform) {
  const auto stream_low = static_cast<uint32_t>(range.stream);
  const auto stream_high = static_cast<uint32_t>(range.stream >> 32);
  const int64_t end = range.first + range.count;
  for (int64_t number = range.first; number < end;) {
    const auto block = static_cast<uint64_t>(number / 4);
    const auto words = philox(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream_low, stream_high},
        range.seed);
    const int64_t block_end = std::min(end, number / 4 * 4 + 4);
    for (; number < block_end; ++number) {
      const uint32_t word = words[static_cast<size_t>(number % 4)];
      *values++ = static_cast<float>(transform(open_uniform(word)));
    }
  }
}

/// P(X <= -cut) of a normal of deviation `std`, rounded to 2^-40: C libraries may differ in the
/// last bit of erfc, and this bound enters every value drawn.
double tail_below(double cut, double std) {
  return std::round(normal_cdf(-cut / std) * 0x1p40) * 0x1p-40;
}

}  // namespace

void draw_initial(
    const Parameter& parameter, uint64_t seed, int64_t first, int64_t count, float* values) {
  const InitRule& rule = parameter.init;
  const Range range{stream_number(parameter.name), seed, first, count};
  switch (rule.kind) {
    case InitRule::Kind::constant:
      std::fill_n(values, count, static_cast<float>(rule.value));
      break;
    case InitRule::Kind::normal:
      fill(range, values, [&](double u) { return rule.std * normal_quantile(u); });
      break;
    case InitRule::Kind::truncated_normal: {
      const double tail = tail_below(rule.cut, rule.std);
      fill(range, values, [&](double u) {
        return std::clamp(
            rule.std * normal_quantile(tail + u * (1 - 2 * tail)), -rule.cut, rule.cut);
      });
      break;
    }
    case InitRule::Kind::uniform:
      fill(range, values, [&](double u) { return rule.bound * (2 * u - 1); });
      break;
  }
}

void draw_initial(const Parameter& parameter, uint64_t seed, float* values) {
  draw_initial(parameter, seed, 0, parameter.count(), values);
}

}  // namespace forge::model
