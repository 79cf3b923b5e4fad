#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/event_writer.h"

namespace forge::worker {

/// The job `evaluate`: the loss of a model at one of its checkpoints over the evaluation rows of
/// the request. The result holds loss, tokens and seconds.
protocol::Result evaluate_model(const protocol::Request& request,
                                const at::Device& device,
                                const EventWriter& events);

}  // namespace forge::worker
