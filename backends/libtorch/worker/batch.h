#pragma once

#include <algorithm>

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/data/dataset.h"

namespace forge::worker {

static_assert(ops::ignored_target == data::unscored_target);

/// Token ids of some rows on the device.
struct Batch {
  at::Tensor inputs;     ///< int32 [B, T]
  at::Tensor targets;    ///< int32 [B, T], -100 = not scored
  at::Tensor doc_ids;    ///< int32 [B, T], undefined where documents are not kept apart
  int64_t unscored = 0;  ///< targets that are not scored
};

inline Batch load_batch(const data::Dataset& dataset,
                        int64_t position,
                        int rows,
                        const at::Device& device) {
  Batch batch{at::empty({rows, dataset.seq_len()}, at::kInt),
              at::empty({rows, dataset.seq_len()}, at::kInt),
              {},
              0};
  dataset.fill(position, rows, batch.inputs.data_ptr<int32_t>(), batch.targets.data_ptr<int32_t>());
  if (dataset.divides_documents()) {
    batch.doc_ids = at::empty_like(batch.inputs);
    dataset.number_documents(
        batch.inputs.data_ptr<int32_t>(), rows, batch.doc_ids.data_ptr<int32_t>());
    batch.doc_ids = batch.doc_ids.to(device);
  }
  const int32_t* targets = batch.targets.data_ptr<int32_t>();
  batch.unscored = std::count(
      targets, targets + batch.targets.numel(), static_cast<int32_t>(ops::ignored_target));
  batch.inputs = batch.inputs.to(device);
  batch.targets = batch.targets.to(device);
  return batch;
}

}  // namespace forge::worker
