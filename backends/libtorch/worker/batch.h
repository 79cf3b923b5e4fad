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
  ops::Documents documents;  ///< undefined where documents are not kept apart; where the rows are
                             ///< to be taken in parts, `starts` has a row for each part
  int64_t unscored = 0;      ///< targets that are not scored
};

/// How many parts rows are taken in, so many at once; 0 at once: all.
inline int64_t parts_of(int64_t rows, int64_t at_once) {
  return at_once <= 0 || at_once >= rows ? 1 : (rows + at_once - 1) / at_once;
}

/// A part of a batch that is taken so many rows at once. How many of its targets are not scored is
/// not known.
inline Batch part_of(const Batch& batch, int64_t part, int64_t at_once) {
  const int64_t first = part * at_once;
  const int64_t count = std::min(at_once, batch.inputs.size(0) - first);
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, first, count) : whole;
  };
  Batch rows_at_once{rows(batch.inputs), rows(batch.targets), {}, 0};
  rows_at_once.documents.ids = rows(batch.documents.ids);
  rows_at_once.documents.first = rows(batch.documents.first);
  if (batch.documents.starts.defined())
    rows_at_once.documents.starts = batch.documents.starts.select(0, part);
  return rows_at_once;
}

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
