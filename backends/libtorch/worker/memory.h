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

/// What is done where a device's memory does not hold a micro-batch.
namespace forge::libtorch {

/// Memory ran out: micro-batches have so many rows from now on.
struct MicroBatchReduction {
  int rows = 0;
  std::string reason;  ///< the library's words
};
using OnMicroBatch = std::function<void(const MicroBatchReduction&)>;

/// Does the work. Where memory runs out, returns the library's message; other exceptions pass. The
/// memory that the work held is free when it returns.
std::optional<std::string> run_or_out_of_memory(const std::function<void()>& work);

/// Half of so many rows, rounded up; unused memory goes back to the device. Throws
/// c10::OutOfMemoryError where a single row did not fit.
int halved_micro_batch(int64_t rows, const std::string& reason, const at::Device& device);

/// What would help where a model does not fit.
std::string help_against_shortage();

}  // namespace forge::libtorch
