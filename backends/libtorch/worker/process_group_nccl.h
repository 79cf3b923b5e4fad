#pragma once

#include <memory>

#include "backends/libtorch/worker/process_group.h"

namespace forge::libtorch {

/// Whether this worker was built with NCCL, by which processes on GPUs speak.
bool has_nccl();

/// A group of processes on GPUs of one host, one each, that find each other by a file. What it does
/// on the device's tensors is work of the current stream, and a graph may record it; numbers of the
/// host wait for the device. Throws Error without NCCL, LostProcess where the others do not come.
std::unique_ptr<ProcessGroup> make_nccl_group(const worker::Processes& processes,
                                              const at::Device& device);

}  // namespace forge::libtorch
