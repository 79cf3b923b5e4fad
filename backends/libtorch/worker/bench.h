#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// Training speed of the request's experiment on random token ids: a warm-up, then five windows of
/// train.max_steps steps each. Values: windows (tokens a second each), tokens_per_second (their
/// median), peak_memory_bytes, step_seconds.
protocol::Result bench(const protocol::Request& request, const at::Device& device);

}  // namespace forge::worker
