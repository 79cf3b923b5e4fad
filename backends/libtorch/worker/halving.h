#pragma once

#include <functional>
#include <optional>
#include <string>

#include "backends/libtorch/torch_precompiled.h"

/// What is done where a device's memory does not hold what is computed at once.
namespace forge::worker {

/// Memory ran out, and so many rows are computed at once from now on.
struct Halving {
  int rows = 0;
  std::string reason;  ///< the library's words
};
using HalvingSink = std::function<void(const Halving&)>;

/// Does the work. Where memory runs out in it, returns the library's words; other exceptions leave
/// as they are. By the time it returns, what the work held has been let go.
std::optional<std::string> what_ran_out(const std::function<void()>& work);

/// Half of so many rows, rounded up; memory that nobody uses is given back to the device. Throws
/// c10::OutOfMemoryError where it was one row that did not fit.
int half_of(int64_t rows, const std::string& reason, const at::Device& device);

/// What would help where a model does not fit.
std::string help_against_shortage();

}  // namespace forge::worker
