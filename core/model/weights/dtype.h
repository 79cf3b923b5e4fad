#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/weights/safetensors.h"

namespace forge::weights {

/// "F32" and the like, as safetensors spells it.
const std::string& name_of(Dtype dtype);
/// The dtype of a safetensors name, or nothing where forge has no such dtype.
std::optional<Dtype> dtype_of(std::string_view name);
/// Bytes of a tensor of that shape, or nothing for a negative size or more than 2^62 bytes.
std::optional<size_t> bytes_of(Dtype dtype, const std::vector<int64_t>& shape);

bool is_floating(Dtype dtype);

/// Converts `count` values of a floating-point tensor from value `first` on to `to`, F32, F16 or
/// BF16, into `out`. Every F16, BF16 and F32 value is exact in F32; otherwise a value is rounded to
/// the nearest, ties to even (F64 by way of F32, as Torch does). Throws Error for a finite value
/// that would become infinite. Neither side need be aligned.
void convert(const TensorView& tensor, size_t first, size_t count, Dtype to, std::byte* out);

/// All values of a floating-point tensor, as F32.
std::vector<float> to_float32(const TensorView& tensor);

}  // namespace forge::weights
