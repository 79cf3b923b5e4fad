#pragma once

#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/cuda.h"

namespace forge::worker {

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

}  // namespace forge::worker
