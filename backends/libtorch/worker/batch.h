#pragma once

#include <vector>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"
#include "backends/libtorch/worker/cuda.h"
#include "core/config/experiment.h"
#include "core/data/rows/dataset.h"
#include "core/worker/messages.h"

namespace forge::libtorch {

/// The rows that a request names, in the order of the experiment, and divided into documents if it
/// asks for that. Throws Error if they cannot be.
data::Dataset training_rows(const worker::Request& request, const config::Experiment& experiment);

/// The same for the rows of an evaluation: always in the order of the files, one after another.
data::Dataset evaluation_rows(const std::vector<worker::TokenSource>& sources,
                              const config::Experiment& experiment);

static_assert(ops::ignored_target == data::unscored_target);

/// Token ids of some rows on the device.
struct Batch {
  at::Tensor inputs;   ///< int32 [B, T]
  at::Tensor targets;  ///< int32 [B, T], -100 = not scored
  /// Undefined without document mask. With several micro-batches `starts` has a row for each.
  ops::Documents documents;
  int64_t unscored = 0;  ///< targets that are not scored
  /// Targets by whose scored ones losses are divided, int32; undefined: those of the batch.
  at::Tensor counted = {};
};

/// Number of micro-batches in `rows` rows; size 0: one of all rows.
int64_t micro_batch_count(int64_t rows, int64_t micro_batch_size);

/// Micro-batch `index` of a batch. Its `unscored` is not known.
Batch micro_batch(const Batch& batch, int64_t index, int64_t micro_batch_size);

/// A copy on the device of rows that are about to change.
Batch to_batch(const data::RowBatch& rows, int seq_len, const at::Device& device);

/// Rows from a position on.
data::RowBatch load_rows(const data::Dataset& dataset, int64_t position, int rows);
/// The same on the device.
Batch load_batch(const data::Dataset& dataset,
                 int64_t position,
                 int rows,
                 const at::Device& device);

/// Copies the rows of step after step to a device. On a GPU they go to the same memory each time,
/// because a CUDA graph needs fixed addresses, and the host does not wait for the copy.
class BatchUploader {
 public:
  BatchUploader(const at::Device& device, int seq_len) : device_(device), seq_len_(seq_len) {}

  /// The result is valid until the next call. Only documents.starts may move, where a batch has
  /// more documents than there was room for. Micro-batch size 0: all rows.
  Batch upload(const data::RowBatch& rows, int micro_batch_size = 0);

  int64_t count_rows(const data::RowBatch& rows) const {
    return static_cast<int64_t>(rows.inputs.size()) / seq_len_;
  }

 private:
  void copy_rows(const std::vector<int32_t>& rows, at::Tensor& to);
  void copy_documents(const std::vector<int32_t>& ids, int micro_batch_size);
  void copy(const std::vector<int32_t>& numbers, at::IntArrayRef shape, at::Tensor& to);

  at::Device device_;
  int seq_len_;
  Batch batch_;
  cuda::HostCopies copies_;
};

}  // namespace forge::libtorch
