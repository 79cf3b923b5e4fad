#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "core/data/dataset.h"

namespace forge::worker {

/// Token ids of some rows on the device.
struct Batch {
  at::Tensor inputs;   ///< int32 [B, T]
  at::Tensor targets;  ///< int32 [B, T], -100 = not scored
};

inline Batch load_batch(const data::Dataset& dataset,
                        int64_t position,
                        int rows,
                        const at::Device& device) {
  Batch batch{at::empty({rows, dataset.seq_len()}, at::kInt),
              at::empty({rows, dataset.seq_len()}, at::kInt)};
  dataset.fill(position, rows, batch.inputs.data_ptr<int32_t>(), batch.targets.data_ptr<int32_t>());
  return {batch.inputs.to(device), batch.targets.to(device)};
}

}  // namespace forge::worker
