#pragma once

#include <memory>

#include "backends/libtorch/worker/process_group.h"

namespace forge::libtorch {

/// Whether this worker was built with Gloo, by which processes on CPUs speak.
bool has_gloo();

/// A group of processes on this machine's CPUs, over its loopback interface, that find each other
/// by a file. Throws Error without Gloo, LostProcess where the others do not come in time.
std::unique_ptr<ProcessGroup> make_gloo_group(const worker::Processes& processes);

}  // namespace forge::libtorch
