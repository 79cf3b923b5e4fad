#include "backends/libtorch/worker/uploader.h"

namespace forge::worker {

namespace {

/// ops::document_starts of each part, of one length, one after another; empty where a part has
/// none.
std::vector<int32_t> starts_of_parts(const std::vector<int32_t>& ids,
                                     int64_t seq_len,
                                     int64_t at_once,
                                     int64_t sequences) {
  const int64_t rows = static_cast<int64_t>(ids.size()) / seq_len;
  std::vector<int32_t> all;
  for (int64_t first = 0; first < rows; first += at_once) {
    const std::vector<int32_t> starts = ops::document_starts(
        ids.data() + first * seq_len, std::min(at_once, rows - first), seq_len, sequences);
    if (starts.empty()) return {};
    const int64_t needed = static_cast<int64_t>(starts.size()) - 1;
    // A part with more documents than those before it: all need as much room.
    if (first > 0 && needed != sequences) return starts_of_parts(ids, seq_len, at_once, needed);
    sequences = needed;
    all.insert(all.end(), starts.begin(), starts.end());
  }
  return all;
}

}  // namespace

Batch Uploader::upload(const data::RowBatch& rows, int at_once) {
  if (!device_.is_cuda()) return to_batch(rows, seq_len_, device_);
  copy_rows(rows.inputs, batch_.inputs);
  copy_rows(rows.targets, batch_.targets);
  if (rows.documents.empty()) {
    batch_.documents = {};
  } else {
    copy_documents(rows.documents, at_once);
  }
  batch_.unscored = unscored_targets(rows);
  return batch_;
}

void Uploader::copy_rows(const std::vector<int32_t>& rows, at::Tensor& to) {
  copy(rows, {static_cast<int64_t>(rows.size()) / seq_len_, seq_len_}, to);
}

void Uploader::copy_documents(const std::vector<int32_t>& ids, int at_once) {
  ops::Documents& documents = batch_.documents;
  copy_rows(ids, documents.ids);
  const int64_t rows = static_cast<int64_t>(ids.size()) / seq_len_;
  const int64_t parts = parts_of(rows, at_once);
  const int64_t sequences = documents.starts.defined() ? documents.starts.size(-1) - 1 : 0;
  const std::vector<int32_t> starts =
      starts_of_parts(ids, seq_len_, parts == 1 ? rows : at_once, sequences);
  const auto numbers = static_cast<int64_t>(starts.size());
  if (starts.empty()) {
    documents.starts = at::Tensor();
  } else if (parts == 1) {
    copy(starts, {numbers}, documents.starts);
  } else {
    copy(starts, {parts, numbers / parts}, documents.starts);
  }
}

void Uploader::copy(const std::vector<int32_t>& numbers, at::IntArrayRef shape, at::Tensor& to) {
  const auto count = static_cast<int64_t>(numbers.size());
  if (!to.defined() || to.sizes() != shape)
    to = at::empty(shape, at::TensorOptions(device_).dtype(at::kInt));
  copies_.copy(numbers.data(), count, to);
}

}  // namespace forge::worker
