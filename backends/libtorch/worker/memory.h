#pragma once

#include <cstdint>

namespace forge::worker {

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

}  // namespace forge::worker
