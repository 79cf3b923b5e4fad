#pragma once

#include <nlohmann/json.hpp>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::worker {

/// The highest speed that products of two large square matrices of such numbers reach on the
/// device: the best of several sizes, in about a second. {"flops": a second, "how": in words,
/// "sizes": {"2048": flops, …}}
nlohmann::json matrix_product_ceiling(const at::TensorOptions& options);

/// The highest speed of a copy of memory that is larger than any cache, read and written bytes
/// together. {"bytes_per_second": …, "how": in words}
nlohmann::json memory_ceiling(const at::TensorOptions& options);

}  // namespace forge::worker
