#pragma once

#include <nlohmann/json.hpp>

#include "backends/libtorch/torch_precompiled.h"
#include "core/config/experiment.h"

namespace forge::worker {

/// What computation in a precision is done in.
at::ScalarType scalar_type(config::Precision precision);

/// The highest speed that products of two large square matrices in a precision reach on the
/// device: the best of several sizes, in about a second. {"flops": a second, "how": in words,
/// "sizes": {"2048": flops, …}}
nlohmann::json matrix_product_ceiling(config::Precision precision, const at::Device& device);

/// The highest speed of a copy of memory that is larger than any cache, read and written bytes
/// together. {"bytes_per_second": …, "how": in words}
nlohmann::json memory_ceiling(const at::Device& device);

}  // namespace forge::worker
