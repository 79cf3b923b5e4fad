#pragma once

#include <istream>

#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/event_writer.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// Training speed of the request's experiment on random token ids: a warm-up, `ready`, then a
/// `window` for each line of `input` that asks for one, and at the end of input a `result` with the
/// parts of a step, the memory of the windows and the device's ceiling. Throws forge::Error for a
/// line that is no such request.
void bench(const protocol::Request& request,
           const at::Device& device,
           const EventWriter& events,
           std::istream& input);

}  // namespace forge::worker
