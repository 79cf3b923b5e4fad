#include "backends/libtorch/worker/uploader.h"

namespace forge::worker {

Batch Uploader::upload(const data::RowBatch& rows) {
  if (!device_.is_cuda()) return to_batch(rows, seq_len_, device_);
  copy_rows(rows.inputs, batch_.inputs);
  copy_rows(rows.targets, batch_.targets);
  if (rows.documents.empty()) {
    batch_.documents = {};
  } else {
    copy_documents(rows.documents);
  }
  batch_.unscored = unscored_targets(rows);
  return batch_;
}

void Uploader::copy_rows(const std::vector<int32_t>& rows, at::Tensor& to) {
  copy(rows, {static_cast<int64_t>(rows.size()) / seq_len_, seq_len_}, to);
}

void Uploader::copy_documents(const std::vector<int32_t>& ids) {
  ops::Documents& documents = batch_.documents;
  copy_rows(ids, documents.ids);
  const int64_t sequences = documents.starts.defined() ? documents.starts.numel() - 1 : 0;
  const std::vector<int32_t> starts = ops::document_starts(
      ids.data(), static_cast<int64_t>(ids.size()) / seq_len_, seq_len_, sequences);
  if (starts.empty()) {
    documents.starts = at::Tensor();
  } else {
    copy(starts, {static_cast<int64_t>(starts.size())}, documents.starts);
  }
}

void Uploader::copy(const std::vector<int32_t>& numbers, at::IntArrayRef shape, at::Tensor& to) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (!to.defined() || to.numel() != count)
    to = at::empty(shape, at::TensorOptions(device_).dtype(at::kInt));
  copies_.copy(numbers.data(), count, to);
}

}  // namespace forge::worker
