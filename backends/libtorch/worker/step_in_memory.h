#pragma once

#include "backends/libtorch/worker/halving.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/uploader.h"

namespace forge::worker {

/// One step of the trainer on these rows. Where memory runs out before the weights change, the step
/// is done anew with half as many rows at once and their gradients added up, so that it is a step
/// on as many tokens; the trainer stays with that, and on_halving is told. Throws
/// c10::OutOfMemoryError where not even one row fits. Returns the batch, which holds until the next
/// call.
Batch step_in_memory(Trainer& trainer,
                     Uploader& uploader,
                     const data::RowBatch& rows,
                     int64_t step,
                     const at::Device& device,
                     const HalvingSink& on_halving);

}  // namespace forge::worker
