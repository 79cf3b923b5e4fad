#pragma once

#include <algorithm>
#include <vector>

#include "backends/libtorch/ops/causal_attention/documents.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/data/batch_loader.h"
#include "core/data/dataset.h"

namespace forge::worker {

static_assert(ops::ignored_target == data::unscored_target);

/// Token ids of some rows on the device.
struct Batch {
  at::Tensor inputs;         ///< int32 [B, T]
  at::Tensor targets;        ///< int32 [B, T], -100 = not scored
  ops::Documents documents;  ///< undefined where documents are not kept apart
  int64_t unscored = 0;      ///< targets that are not scored
};

/// A copy on the device of rows that are about to change.
inline at::Tensor to_device(const std::vector<int32_t>& ids,
                            int seq_len,
                            const at::Device& device) {
  // from_blob only reads; the cast is its interface.
  const at::Tensor view = at::from_blob(const_cast<int32_t*>(ids.data()),
                                        {static_cast<int64_t>(ids.size()) / seq_len, seq_len},
                                        at::TensorOptions(at::kInt));
  return view.to(at::TensorOptions(device), /*non_blocking=*/false, /*copy=*/true);
}

inline int64_t unscored_targets(const data::RowBatch& rows) {
  return std::count(
      rows.targets.begin(), rows.targets.end(), static_cast<int32_t>(ops::ignored_target));
}

inline Batch to_batch(const data::RowBatch& rows, int seq_len, const at::Device& device) {
  Batch batch{to_device(rows.inputs, seq_len, device),
              to_device(rows.targets, seq_len, device),
              {},
              unscored_targets(rows)};
  if (!rows.documents.empty())
    batch.documents = ops::divide_documents(to_device(rows.documents, seq_len, device));
  return batch;
}

/// Rows at a position, at once.
inline data::RowBatch load_rows(const data::Dataset& dataset, int64_t position, int rows) {
  data::RowBatch loaded;
  loaded.inputs.resize(static_cast<size_t>(int64_t{rows} * dataset.seq_len()));
  loaded.targets.resize(loaded.inputs.size());
  dataset.fill(position, rows, loaded.inputs.data(), loaded.targets.data());
  if (dataset.divides_documents()) {
    loaded.documents.resize(loaded.inputs.size());
    dataset.number_documents(loaded.inputs.data(), rows, loaded.documents.data());
  }
  return loaded;
}

/// The same on the device.
inline Batch load_batch(const data::Dataset& dataset,
                        int64_t position,
                        int rows,
                        const at::Device& device) {
  return to_batch(load_rows(dataset, position, rows), dataset.seq_len(), device);
}

}  // namespace forge::worker
