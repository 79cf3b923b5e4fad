#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/event_writer.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// Trains as the request says, from its checkpoint where it names one, and sends every event up to
/// and including Finished. Returns whether all steps were done (false: stopped on request).
bool train(const protocol::Request& request, const at::Device& device, const EventWriter& events);

}  // namespace forge::worker
