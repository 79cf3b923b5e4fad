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

/// Limits the device's tensors to `bytes` together; on a CPU 0 means no limit. A tensor
/// beyond the limit throws c10::OutOfMemoryError.
void limit_memory(const at::Device& device, int64_t bytes);
/// The same with the bytes of the environment variable FORGE_MEMORY_LIMIT, if it is set. Throws
/// forge::Error if it is no number.
void limit_memory_by_environment(const at::Device& device);

/// Asks the C library to keep freed memory instead of returning it: the first touch of a fresh
/// page is slow in virtual machines, and a training step frees and takes the same sizes again.
void keep_freed_memory();

/// Largest number of bytes since the last reset: on a CPU that tensors held at once, on a GPU that
/// Torch's allocator held.
int64_t peak_memory_bytes(const at::Device& device);
void reset_peak_memory(const at::Device& device);

/// Largest resident set of the process so far.
int64_t peak_resident_bytes();

/// Memory ran out: micro-batches have `rows` rows from now on.
struct MicroBatchReduction {
  int rows = 0;
  std::string reason;  ///< the library's words
};
using OnMicroBatch = std::function<void(const MicroBatchReduction&)>;

/// Does the work. If memory runs out, returns the library's message; other exceptions pass. The
/// memory that the work held is free when it returns.
std::optional<std::string> run_or_out_of_memory(const std::function<void()>& work);

/// Half of `rows`, rounded up. Returns unused memory to the device. Throws c10::OutOfMemoryError if
/// a single row did not fit.
int halved_micro_batch(int64_t rows, const std::string& reason, const at::Device& device);

/// What would help where a model does not fit.
std::string help_against_shortage();

}  // namespace forge::libtorch
