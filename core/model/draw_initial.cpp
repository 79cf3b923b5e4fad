#include <algorithm>
#include <cmath>

#include "core/base/random.h"
#include "core/model/parameters.h"

namespace forge::model {
namespace {

/// values[i] = transform(u) with u in (0, 1) made of word i of the stream. The numbers are computed
/// in double and rounded once.
template <class Transform>
void fill(uint64_t stream, uint64_t seed, int64_t count, float* values, Transform transform) {
  const auto stream_low = static_cast<uint32_t>(stream);
  const auto stream_high = static_cast<uint32_t>(stream >> 32);
  for (int64_t first = 0; first < count; first += 4) {
    const auto block = static_cast<uint64_t>(first / 4);
    const auto words = philox(
        {static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), stream_low, stream_high},
        seed);
    const auto here = static_cast<size_t>(std::min<int64_t>(4, count - first));
    for (size_t i = 0; i < here; ++i) {
      values[first + static_cast<int64_t>(i)] =
          static_cast<float>(transform(open_uniform(words[i])));
    }
  }
}

/// P(X <= -cut) of a normal of deviation `std`, rounded to 2^-40: C libraries may differ in the
/// last bit of erfc, and this bound enters every value drawn.
double tail_below(double cut, double std) {
  return std::round(normal_cdf(-cut / std) * 0x1p40) * 0x1p-40;
}

}  // namespace

void draw_initial(const Parameter& parameter, uint64_t seed, float* values) {
  const InitRule& rule = parameter.init;
  const int64_t count = parameter.count();
  const uint64_t stream = stream_number(parameter.name);
  switch (rule.kind) {
    case InitRule::Kind::constant:
      std::fill_n(values, count, static_cast<float>(rule.value));
      break;
    case InitRule::Kind::normal:
      fill(stream, seed, count, values, [&](double u) { return rule.std * normal_quantile(u); });
      break;
    case InitRule::Kind::truncated_normal: {
      const double tail = tail_below(rule.cut, rule.std);
      fill(stream, seed, count, values, [&](double u) {
        return std::clamp(
            rule.std * normal_quantile(tail + u * (1 - 2 * tail)), -rule.cut, rule.cut);
      });
      break;
    }
    case InitRule::Kind::uniform:
      fill(stream, seed, count, values, [&](double u) { return rule.bound * (2 * u - 1); });
      break;
  }
}

}  // namespace forge::model
