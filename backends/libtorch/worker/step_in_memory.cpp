#include "backends/libtorch/worker/step_in_memory.h"

#include <algorithm>

namespace forge::worker {

Batch step_in_memory(Trainer& trainer,
                     Uploader& uploader,
                     const data::RowBatch& rows,
                     int64_t step,
                     const at::Device& device,
                     const HalvingSink& on_halving) {
  while (true) {
    Batch batch;
    const auto memory_ran_out = what_ran_out([&] {
      batch = uploader.upload(rows, trainer.rows_at_once());
      trainer.step(batch, step);
    });
    if (!memory_ran_out) return batch;
    TORCH_CHECK_WITH(OutOfMemoryError,
                     !trainer.is_updating(),
                     "memory ran out while the weights were updated: ",
                     *memory_ran_out);
    const int64_t all = uploader.count_rows(rows);
    const int64_t before = trainer.rows_at_once();
    trainer.set_rows_at_once(0);  // lets go of gradients and of a recorded step
    const int rows_at_once =
        half_of(before > 0 ? std::min(before, all) : all, *memory_ran_out, device);
    trainer.set_rows_at_once(rows_at_once);
    if (on_halving) on_halving({rows_at_once, *memory_ran_out});
  }
}

}  // namespace forge::worker
