#pragma once

#include <cstddef>
#include <vector>

#include "core/weights/safetensors.h"

namespace forge::weights {

bool is_floating(Dtype dtype);

/// Converts `count` values of a floating-point tensor from value `first` on to `to`, F32, F16 or
/// BF16, into `out`. Every F16, BF16 and F32 value is exact in F32; otherwise a value is rounded to
/// the nearest, ties to even (F64 by way of F32, as Torch does). Throws Error for a finite value
/// that would become infinite. Neither side need be aligned.
void convert(const TensorView& tensor, size_t first, size_t count, Dtype to, std::byte* out);

/// All values of a floating-point tensor, as F32.
std::vector<float> to_float32(const TensorView& tensor);

}  // namespace forge::weights
