#include "core/model/weights/dtype.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::weights {
namespace {

struct Row {
  std::string name;
  size_t bytes;
};

/// In the order of the enumeration.
const std::array<Row, 7>& table() {
  static const std::array<Row, 7> rows = {
      {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8}, {"I32", 4}, {"U8", 1}}};
  return rows;
}

const Row& row_of(Dtype dtype) { return table().at(static_cast<size_t>(dtype)); }

}  // namespace

size_t bytes_of(Dtype dtype) { return row_of(dtype).bytes; }

const std::string& name_of(Dtype dtype) { return row_of(dtype).name; }

std::optional<Dtype> dtype_of(std::string_view name) {
  for (size_t i = 0; i < table().size(); ++i) {
    if (table()[i].name == name) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::optional<size_t> bytes_of(Dtype dtype, const std::vector<int64_t>& shape) {
  constexpr size_t largest = size_t{1} << 62;
  size_t product = bytes_of(dtype);
  for (const int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto factor = static_cast<size_t>(size);
    if (factor > 0 && product > largest / factor) return std::nullopt;
    product *= factor;
  }
  return product;
}

namespace {

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

float from_half(uint16_t half) {
  const bool negative = (half & 0x8000u) != 0;
  const uint32_t exponent = half >> 10 & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  const uint32_t sign = negative ? 0x80000000u : 0;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
    const float size = static_cast<float>(fraction) * 0x1p-24f;
    return negative ? -size : size;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return bits_as<float>(sign | wide << 23 | fraction << 13);
}

uint16_t to_half(float value) {
  const auto bits = bits_as<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  const uint32_t size = bits & 0x7fffffffu;
  if (size > 0x7f800000u) return sign | 0x7e00u;   // not a number
  if (size >= 0x47800000u) return sign | 0x7c00u;  // from 2^16 on
  if (size < 0x38800000u) {                        // below 2^-14: a multiple of 2^-24
    // The sum with 1/2, whose last bit is 2^-24, rounds as wanted.
    const float shifted = bits_as<float>(size) + 0.5f;
    return sign | static_cast<uint16_t>(bits_as<uint32_t>(shifted) - bits_as<uint32_t>(0.5f));
  }
  const uint32_t to_even = 0xfffu + (size >> 13 & 1u);
  return sign | static_cast<uint16_t>((size - (uint32_t{127 - 15} << 23) + to_even) >> 13);
}

float from_bfloat16(uint16_t bits) { return bits_as<float>(uint32_t{bits} << 16); }

uint16_t to_bfloat16(float value) {
  const auto bits = bits_as<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

double value_at(const TensorView& tensor, size_t index) {
  const std::byte* at = tensor.data + index * bytes_of(tensor.dtype);
  switch (tensor.dtype) {
    case Dtype::f64: return load<double>(at);
    case Dtype::f32: return load<float>(at);
    case Dtype::f16: return from_half(load<uint16_t>(at));
    case Dtype::bf16: return from_bfloat16(load<uint16_t>(at));
    default: throw Error("has the dtype " + name_of(tensor.dtype) + ", which is no floating one");
  }
}

/// The value as F32; infinite where it is too large, without the undefined conversion.
float to_single(double value) {
  constexpr double largest = std::numeric_limits<float>::max();
  // Half a last bit beyond the largest float: from here on the nearest is infinity.
  constexpr double limit = largest + 0x1p103;
  if (std::abs(value) >= limit) return value > 0 ? HUGE_VALF : -HUGE_VALF;
  if (std::abs(value) > largest) return value > 0 ? float(largest) : -float(largest);
  return static_cast<float>(value);
}

void store(double value, Dtype to, std::byte* out) {
  const float single = to_single(value);
  double stored = single;
  if (to == Dtype::f32) {
    std::memcpy(out, &single, sizeof single);
  } else if (to == Dtype::f16 || to == Dtype::bf16) {
    const uint16_t bits = to == Dtype::f16 ? to_half(single) : to_bfloat16(single);
    std::memcpy(out, &bits, sizeof bits);
    stored = to == Dtype::f16 ? from_half(bits) : from_bfloat16(bits);
  } else {
    throw Error("cannot be converted to " + name_of(to));
  }
  if (std::isinf(stored) && std::isfinite(value)) {
    throw Error("has the value " + shortest(value) + ", beyond the range of " + name_of(to));
  }
}

}  // namespace

bool is_floating(Dtype dtype) {
  return dtype == Dtype::f64 || dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16;
}

void convert(const TensorView& tensor, size_t first, size_t count, Dtype to, std::byte* out) {
  const size_t size = bytes_of(to);
  for (size_t i = 0; i < count; ++i) store(value_at(tensor, first + i), to, out + i * size);
}

std::vector<float> to_float32(const TensorView& tensor) {
  std::vector<float> values(tensor.bytes / bytes_of(tensor.dtype));
  convert(tensor, 0, values.size(), Dtype::f32, reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace forge::weights
