#include "core/weights/convert.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::weights {
namespace {

using tests::contains;
using tests::error_of;

template <class T>
TensorView view(Dtype dtype, const std::vector<T>& values) {
  return {dtype,
          {static_cast<int64_t>(values.size())},
          reinterpret_cast<const std::byte*>(values.data()),
          values.size() * sizeof(T)};
}

template <class T>
std::vector<uint16_t> narrowed(const std::vector<T>& values, Dtype from, Dtype to) {
  std::vector<uint16_t> bits(values.size());
  convert(view(from, values), 0, values.size(), to, reinterpret_cast<std::byte*>(bits.data()));
  return bits;
}

std::vector<uint16_t> halves(const std::vector<float>& values) {
  return narrowed(values, Dtype::f32, Dtype::f16);
}

std::vector<uint16_t> bfloats(const std::vector<float>& values) {
  return narrowed(values, Dtype::f32, Dtype::bf16);
}

/// Every pattern of 16 bits.
std::vector<uint16_t> all_patterns() {
  std::vector<uint16_t> patterns;
  for (int bits = 0; bits < 65536; ++bits) patterns.push_back(static_cast<uint16_t>(bits));
  return patterns;
}

TEST_CASE("float16 has the values of IEEE 754 half precision") {
  const std::vector<uint16_t> bits = {
      0x0000, 0x8000, 0x3c00, 0xc000, 0x7bff, 0x0400, 0x0001, 0x83ff, 0x7c00, 0x3555};
  const std::vector<float> values = to_float32(view(Dtype::f16, bits));
  const std::vector<float> expected = {
      0, -0.0f, 1, -2, 65504, 0x1p-14f, 0x1p-24f, -1023 * 0x1p-24f, HUGE_VALF, 1365 * 0x1p-12f};
  REQUIRE(std::memcmp(values.data(), expected.data(), 4 * values.size()) == 0);
}

TEST_CASE("bfloat16 is the upper half of a float32") {
  const std::vector<uint16_t> bits = {0x3f80, 0xc000, 0x7f80, 0x0001};
  REQUIRE(to_float32(view(Dtype::bf16, bits)) == std::vector<float>{1, -2, HUGE_VALF, 0x1p-133f});
}

TEST_CASE("every number of 16 bits comes back from float32 with its bits") {
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    const std::vector<uint16_t> patterns = all_patterns();
    const std::vector<float> wide = to_float32(view(dtype, patterns));
    const std::vector<uint16_t> back = narrowed(wide, Dtype::f32, dtype);
    const std::vector<float> again = to_float32(view(dtype, back));
    size_t wrong = 0;
    for (size_t i = 0; i < patterns.size(); ++i) {
      const bool same = std::isnan(wide[i]) ? std::isnan(again[i]) : back[i] == patterns[i];
      if (!same) ++wrong;
    }
    REQUIRE(wrong == 0);
  }
}

TEST_CASE("narrowing rounds to the nearest and ties to even") {
  // Around 1, float16 has steps of 2^-10 and bfloat16 of 2^-7.
  REQUIRE(halves({1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 1 + 0x1p-11f + 0x1p-20f, 1 - 0x1p-13f}) ==
          std::vector<uint16_t>{0x3c00, 0x3c02, 0x3c01, 0x3c00});
  REQUIRE(bfloats({1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1p-8f + 0x1p-20f, -1 - 0x1p-8f}) ==
          std::vector<uint16_t>{0x3f80, 0x3f82, 0x3f81, 0xbf80});
  // Below 2^-14 float16 has steps of 2^-24, and half of the first one goes to zero.
  REQUIRE(halves({0x1p-25f, 0x1p-25f + 0x1p-40f, 3 * 0x1p-25f, -0x1p-26f}) ==
          std::vector<uint16_t>{0x0000, 0x0001, 0x0002, 0x8000});
  REQUIRE(halves({65519}) == std::vector<uint16_t>{0x7bff});
}

TEST_CASE("float64 is rounded to the nearest float32") {
  const std::vector<double> values = {0.1, 1 + 0x1p-24, 1 + 3 * 0x1p-24, -1e-300, 3.4028235e38};
  REQUIRE(to_float32(view(Dtype::f64, values)) ==
          std::vector<float>{0.1f, 1, 1 + 0x1p-22f, -0.0f, 3.4028235e38f});
}

TEST_CASE("a value that would become infinite is refused and an infinite one is not") {
  REQUIRE(contains(error_of([] { halves({1, 65520}); }), "has the value 65520.0"));
  REQUIRE(contains(error_of([] { halves({-7e4f}); }), "beyond the range of F16"));
  REQUIRE(contains(error_of([] { bfloats({3.4e38f}); }), "beyond the range of BF16"));
  const std::vector<double> large = {-1e39};
  REQUIRE(contains(error_of([&] { to_float32(view(Dtype::f64, large)); }),
                   "has the value -1e+39, beyond the range of F32"));
  REQUIRE(halves({HUGE_VALF, -HUGE_VALF}) == std::vector<uint16_t>{0x7c00, 0xfc00});
  const std::vector<double> infinite = {-HUGE_VAL};
  REQUIRE(to_float32(view(Dtype::f64, infinite)) == std::vector<float>{-HUGE_VALF});
}

TEST_CASE("what is no number stays none") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  REQUIRE(std::isnan(to_float32(view(Dtype::f16, halves({nan})))[0]));
  REQUIRE(std::isnan(to_float32(view(Dtype::bf16, bfloats({nan})))[0]));
}

TEST_CASE("values at any address are read") {
  const std::vector<float> values = {1.5f, -2.5f};
  std::vector<std::byte> bytes(9);
  std::memcpy(bytes.data() + 1, values.data(), 8);
  REQUIRE(to_float32({Dtype::f32, {2}, bytes.data() + 1, 8}) == values);
}

TEST_CASE("whole numbers are not converted") {
  const std::vector<int32_t> values = {1};
  REQUIRE(contains(error_of([&] { to_float32(view(Dtype::i32, values)); }),
                   "has the dtype I32, which is no floating one"));
}

}  // namespace
}  // namespace forge::weights
