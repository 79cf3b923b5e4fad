#pragma once

#include <functional>

#include "backends/libtorch/model/llama_canon.h"
#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/event_writer.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// How many tokens were read and drawn, and how long that took.
struct GenerationEffort {
  int64_t prefill_tokens = 0, decode_tokens = 0;
  double prefill_seconds = 0, decode_seconds = 0;
};

/// Samples how prompts go on and tells of each step of a batch, until all are done or `stopped`.
/// Throws Error for what cannot be done.
GenerationEffort generate_tokens(const LlamaCanon& model,
                                 const protocol::Generation& wanted,
                                 const std::function<void(const protocol::Tokens&)>& tell,
                                 const std::function<bool()>& stopped);

/// Samples how the prompts of `request.generation` go on, with the weights that a run of the
/// request would begin with. Sends a `tokens` event for each step of a batch. Values:
/// prefill_tokens and prefill_seconds (prompts, once each), decode_tokens and decode_seconds (all
/// tokens but the first of each sample). Throws Error for a request that cannot be done.
protocol::Result generate(const protocol::Request& request,
                          const at::Device& device,
                          const EventWriter& events);

}  // namespace forge::worker
