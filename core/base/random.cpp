#include "core/base/random.h"

#include <cmath>
#include <limits>

namespace forge {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<uint32_t>(product0)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

uint64_t stream_number(std::string_view name) {
  uint64_t number = 0xcbf29ce484222325;  // FNV-1a, 64 bits
  for (const char letter : name) {
    number = (number ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return number;
}

uint32_t RandomStream::next_u32() {
  const uint64_t block = position_ / 4;
  if (block != block_) {
    block_ = block;
    words_ = philox({static_cast<uint32_t>(block),
                     static_cast<uint32_t>(block >> 32),
                     static_cast<uint32_t>(stream_),
                     static_cast<uint32_t>(stream_ >> 32)},
                    seed_);
  }
  return words_[position_++ % 4];
}

uint64_t RandomStream::next_u64() {
  const uint64_t low = next_u32();
  return low | uint64_t{next_u32()} << 32;
}

double RandomStream::uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

uint64_t RandomStream::below(uint64_t bound) {
  // Lemire's multiply-and-reject for small bounds, plain rejection for large ones.
  if (bound <= 0xffffffffu) {
    const uint32_t small = static_cast<uint32_t>(bound);
    const uint32_t threshold = static_cast<uint32_t>(-small) % small;
    while (true) {
      const uint64_t product = uint64_t{next_u32()} * small;
      if (static_cast<uint32_t>(product) >= threshold) return product >> 32;
    }
  }
  const uint64_t limit = ~uint64_t{0} - ~uint64_t{0} % bound;
  while (true) {
    const uint64_t number = next_u64();
    if (number < limit) return number % bound;
  }
}

double open_uniform(uint32_t bits) { return (static_cast<double>(bits) + 0.5) * 0x1p-32; }

double portable_log(double x) {
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh((m-1)/(m+1)) as a power series.
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752440) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  const double square = s * s;
  double series = 0;
  for (int k = 27; k >= 1; k -= 2) series = series * square + 1.0 / k;
  constexpr double ln2_high = 6.93147180369123816490e-01;  // low bits zero: the product is exact
  constexpr double ln2_low = 1.90821492927058770002e-10;
  return exponent * ln2_high + (2 * s * series + exponent * ln2_low);
}

double portable_exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.79) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  // x = k log 2 + r with |r| <= log(2)/2; e^r by its power series, e^x = 2^k e^r.
  constexpr double ln2_high = 6.93147180369123816490e-01;  // low bits zero: the product is exact
  constexpr double ln2_low = 1.90821492927058770002e-10;
  const double k = std::floor(x / (ln2_high + ln2_low) + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  double series = 1;
  for (int n = 14; n >= 1; --n) series = 1 + series * r / n;
  return std::ldexp(series, static_cast<int>(k));
}

namespace {

double ratio(const double (&numerator)[8], const double (&denominator)[8], double r) {
  double above = numerator[7];
  double below = denominator[7];
  for (int i = 6; i >= 0; --i) {
    above = above * r + numerator[i];
    below = below * r + denominator[i];
  }
  return above / below;
}

}  // namespace

double normal_quantile(double p) {
  static const double a[8] = {3.3871328727963666080e0,
                              1.3314166789178437745e2,
                              1.9715909503065514427e3,
                              1.3731693765509461125e4,
                              4.5921953931549871457e4,
                              6.7265770927008700853e4,
                              3.3430575583588128105e4,
                              2.5090809287301226727e3};
  static const double b[8] = {1.0,
                              4.2313330701600911252e1,
                              6.8718700749205790830e2,
                              5.3941960214247511077e3,
                              2.1213794301586595867e4,
                              3.9307895800092710610e4,
                              2.8729085735721942674e4,
                              5.2264952788528545610e3};
  static const double c[8] = {1.42343711074968357734e0,
                              4.63033784615654529590e0,
                              5.76949722146069140550e0,
                              3.64784832476320460504e0,
                              1.27045825245236838258e0,
                              2.41780725177450611770e-1,
                              2.27238449892691845833e-2,
                              7.74545014278341407640e-4};
  static const double d[8] = {1.0,
                              2.05319162663775882187e0,
                              1.67638483018380384940e0,
                              6.89767334985100004550e-1,
                              1.48103976427480074590e-1,
                              1.51986665636164571966e-2,
                              5.47593808499534494600e-4,
                              1.05075007164441684324e-9};
  static const double e[8] = {6.65790464350110377720e0,
                              5.46378491116411436990e0,
                              1.78482653991729133580e0,
                              2.96560571828504891230e-1,
                              2.65321895265761230930e-2,
                              1.24266094738807843860e-3,
                              2.71155556874348757815e-5,
                              2.01033439929228813265e-7};
  static const double f[8] = {1.0,
                              5.99832206555887937690e-1,
                              1.36929880922735805310e-1,
                              1.48753612908506148525e-2,
                              7.86869131145613259100e-4,
                              1.84631831751005468180e-5,
                              1.42151175831644588870e-7,
                              2.04426310338993978564e-15};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) return q * ratio(a, b, 0.180625 - q * q);
  const double r = std::sqrt(-portable_log(q < 0 ? p : 1 - p));
  const double x = r <= 5 ? ratio(c, d, r - 1.6) : ratio(e, f, r - 5);
  return q < 0 ? -x : x;
}

double normal_cdf(double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }

uint64_t permuted_index(uint64_t index, uint64_t size, uint64_t seed, uint64_t stream) {
  int half_bits = 1;
  while (half_bits < 32 && (uint64_t{1} << (2 * half_bits)) < size) ++half_bits;
  const uint32_t mask = half_bits == 32 ? 0xffffffffu : (uint32_t{1} << half_bits) - 1;
  do {
    uint32_t left = static_cast<uint32_t>(index >> half_bits) & mask;
    uint32_t right = static_cast<uint32_t>(index) & mask;
    for (uint32_t round = 0; round < 4; ++round) {
      const uint32_t mixed =
          philox({right, round, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
                 seed)[0];
      const uint32_t swapped = left ^ (mixed & mask);
      left = right;
      right = swapped;
    }
    index = uint64_t{left} << half_bits | right;
  } while (index >= size);
  return index;
}

}  // namespace forge
