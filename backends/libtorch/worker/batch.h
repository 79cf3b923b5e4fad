#pragma once

#include <algorithm>
#include <vector>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/cuda.h"
#include "core/config/experiment.h"
#include "core/data/rows/dataset.h"
#include "core/worker/messages.h"

namespace forge::libtorch {

/// The rows that a request names, in the order of the experiment, and divided into documents where
/// it asks for that. Throw Error where they cannot be.
data::Dataset training_rows(const worker::Request& request, const config::Experiment& experiment);

/// The same for rows to evaluate on, those of the request that `sources` are: always in the order
/// of the files, one after another.
data::Dataset held_out_rows(const std::vector<worker::TokenSource>& sources,
                            const config::Experiment& experiment);

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

/// Brings the rows of step after step to a device. On a GPU they come to the same memory each time,
/// as a recorded step wants them, and nobody waits for the copy.
class Uploader {
 public:
  Uploader(const at::Device& device, int seq_len) : device_(device), seq_len_(seq_len) {}

  /// What comes back holds until the next call. Only documents.starts comes to other memory where
  /// a batch has more documents than there was room for. `at_once` is how many of the rows are to
  /// be taken at once; 0: all.
  Batch upload(const data::RowBatch& rows, int at_once = 0);

  int64_t count_rows(const data::RowBatch& rows) const {
    return static_cast<int64_t>(rows.inputs.size()) / seq_len_;
  }

 private:
  void copy_rows(const std::vector<int32_t>& rows, at::Tensor& to);
  void copy_documents(const std::vector<int32_t>& ids, int at_once);
  void copy(const std::vector<int32_t>& numbers, at::IntArrayRef shape, at::Tensor& to);

  at::Device device_;
  int seq_len_;
  Batch batch_;
  cuda::HostCopies copies_;
};

}  // namespace forge::libtorch
