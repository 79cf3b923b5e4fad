#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "core/protocol/messages.h"

namespace forge::worker {

/// Writes `request.output`, a safetensors file with the rows of the evaluation tokens as
/// `input_ids` (I32 [rows, T]) and the model's `logits` for them (F32, or F64 in train.precision
/// float64, [rows, T, V]). The weights are those that a run of the request would begin with. All
/// rows are in memory at once: this is for holding a model against another implementation.
protocol::Result write_logits(const protocol::Request& request, const at::Device& device);

}  // namespace forge::worker
