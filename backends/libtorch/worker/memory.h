#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::libtorch {

/// Replaces Torch's CPU allocator by one that counts what tensors hold. Called once, before the
/// first tensor.
void install_counting_allocator();

/// From now on that allocator lets tensors hold no more than so many bytes together; 0: as many as
/// there are. What would go beyond that throws c10::OutOfMemoryError.
void limit_cpu_tensor_bytes(int64_t most);

/// Asks the C library to keep freed memory instead of giving it back: the first touch of a fresh
/// page is slow in virtual machines, and a training step frees and takes the same sizes again.
void keep_freed_memory();

/// Most bytes that CPU tensors held at once since the last reset.
int64_t peak_cpu_tensor_bytes();
void reset_peak_cpu_tensor_bytes();

/// Largest resident set of the process so far.
int64_t peak_resident_bytes();

}  // namespace forge::libtorch

/// What is done where a device's memory does not hold what is computed at once.
namespace forge::libtorch {

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

}  // namespace forge::libtorch
