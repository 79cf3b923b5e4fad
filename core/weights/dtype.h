#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/weights/safetensors.h"

namespace forge::weights {

/// "F32" and the like, as safetensors spells it.
const std::string& name_of(Dtype dtype);
/// The dtype of a safetensors name, or nothing where forge has no such dtype.
std::optional<Dtype> dtype_of(std::string_view name);
/// Bytes of a tensor of that shape, or nothing for a negative size or more than 2^62 bytes.
std::optional<size_t> bytes_of(Dtype dtype, const std::vector<int64_t>& shape);

}  // namespace forge::weights
