#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/event_writer.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// Measures the operations that a request of `bench_ops` names, each beside plain Torch in
/// alternating windows: a `result` for each as it is measured, before them one with the device's
/// ceilings. Throws forge::Error for an operation, a size or a precision that there is not.
void bench_operations(const protocol::Request& request,
                      const at::Device& device,
                      const EventWriter& events);

}  // namespace forge::worker
