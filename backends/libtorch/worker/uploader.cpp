#include "backends/libtorch/worker/uploader.h"

namespace forge::worker {

Batch Uploader::upload(const data::RowBatch& rows) {
  if (!device_.is_cuda()) return to_batch(rows, seq_len_, device_);
  copy(rows.inputs, batch_.inputs);
  copy(rows.targets, batch_.targets);
  if (rows.documents.empty()) {
    batch_.doc_ids = at::Tensor();
  } else {
    copy(rows.documents, batch_.doc_ids);
  }
  batch_.unscored = unscored_targets(rows);
  return batch_;
}

void Uploader::copy(const std::vector<int32_t>& rows, at::Tensor& to) {
  const auto count = static_cast<int64_t>(rows.size());
  if (!to.defined() || to.numel() != count)
    to = at::empty({count / seq_len_, seq_len_}, at::TensorOptions(device_).dtype(at::kInt));
  copies_.copy(rows.data(), count, to);
}

}  // namespace forge::worker
