#pragma once

#include <cstdint>
#include <string>

/// What needs CUDA's own headers: cuda.cpp where LibTorch has CUDA, no_cuda.cpp elsewhere, so that
/// no other file asks which one it is.
namespace forge::worker::cuda {

std::string device_name(int index);
int64_t device_memory_bytes(int index);
int64_t peak_memory_bytes(int index);
void reset_peak_memory(int index);

}  // namespace forge::worker::cuda
