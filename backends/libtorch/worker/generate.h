#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/event_writer.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// Samples how the prompts of `request.generation` go on, with the weights that a run of the
/// request would begin with. Sends a `tokens` event for each step of a batch. Values:
/// prefill_tokens and prefill_seconds (prompts, once each), decode_tokens and decode_seconds (all
/// tokens but the first of each sample). Throws Error for a request that cannot be done.
protocol::Result generate(const protocol::Request& request,
                          const at::Device& device,
                          const EventWriter& events);

}  // namespace forge::worker
