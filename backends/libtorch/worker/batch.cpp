#include "backends/libtorch/worker/batch.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/data/tasks/task_spec.h"

namespace forge::libtorch {
namespace {

/// All files have rows of one kind: the first one says which.
data::Dataset rows_of(const std::vector<worker::TokenSource>& sources,
                      const config::Experiment& experiment,
                      data::Split split,
                      data::RowOptions options) {
  if (sources.empty()) throw Error("the request names no rows");
  const config::TrainConfig& train = experiment.train;
  const worker::TokenSource& first = sources[0];
  if (first.path.empty() && !first.task.empty()) {
    return {
        data::tasks::task_of(first.task),
        split == data::Split::training ? experiment.order_seed() : data::tasks::seed_of(first.task),
        split,
        train.seq_len,
        first.rows,
        first.first_row};
  }
  if (train.document_mask && !first.document_start) {
    throw Error("train.document_mask is true, but the request does not say what begins a document",
                "give document_start with the token file");
  }
  options.seq_len = train.seq_len;
  options.seed = experiment.order_seed();
  if (train.document_mask) options.document_start = first.document_start;
  options.pad_id = first.pad_id;
  std::vector<data::RowSource> rows;
  for (const worker::TokenSource& source : sources) {
    rows.push_back({source.path, source.rows, source.name, source.weight, source.first_row});
  }
  return {rows, options};
}

}  // namespace

data::Dataset training_rows(const worker::Request& request, const config::Experiment& experiment) {
  data::RowOptions options;
  options.order = experiment.data.order;
  return rows_of(request.train_tokens, experiment, data::Split::training, options);
}

data::Dataset evaluation_rows(const std::vector<worker::TokenSource>& sources,
                              const config::Experiment& experiment) {
  data::RowOptions options;
  options.interleaving = data::Interleaving::sequential;
  if (!sources.empty() && sources[0].short_last_row) {
    options.last_row = data::LastRow::may_be_short;
  }
  return rows_of(sources, experiment, data::Split::evaluation, options);
}

namespace {

/// A copy on the device, [rows, seq_len].
at::Tensor to_device(const std::vector<int32_t>& ids, int seq_len, const at::Device& device) {
  // from_blob only reads; the cast is its interface.
  const at::Tensor view = at::from_blob(const_cast<int32_t*>(ids.data()),
                                        {static_cast<int64_t>(ids.size()) / seq_len, seq_len},
                                        at::TensorOptions(at::kInt));
  return view.to(at::TensorOptions(device), /*non_blocking=*/false, /*copy=*/true);
}

int64_t unscored_targets(const data::RowBatch& rows) {
  return std::count(rows.targets.begin(), rows.targets.end(), data::unscored_target);
}

/// ops::document_starts of each micro-batch, all of one length, one after another. Empty where a
/// micro-batch has none.
std::vector<int32_t> starts_of_micro_batches(const std::vector<int32_t>& ids,
                                             int64_t seq_len,
                                             int64_t micro_batch_size,
                                             int64_t sequences) {
  const int64_t rows = static_cast<int64_t>(ids.size()) / seq_len;
  std::vector<int32_t> all;
  for (int64_t first = 0; first < rows; first += micro_batch_size) {
    const std::vector<int32_t> starts = ops::document_starts(
        ids.data() + first * seq_len, std::min(micro_batch_size, rows - first), seq_len, sequences);
    if (starts.empty()) return {};
    const int64_t needed = static_cast<int64_t>(starts.size()) - 1;
    // A micro-batch with more documents than those before it: all need as much room.
    if (first > 0 && needed != sequences)
      return starts_of_micro_batches(ids, seq_len, micro_batch_size, needed);
    sequences = needed;
    all.insert(all.end(), starts.begin(), starts.end());
  }
  return all;
}

}  // namespace

int64_t micro_batch_count(int64_t rows, int64_t micro_batch_size) {
  if (micro_batch_size <= 0 || micro_batch_size >= rows) return 1;
  return (rows + micro_batch_size - 1) / micro_batch_size;
}

Batch micro_batch(const Batch& batch, int64_t index, int64_t micro_batch_size) {
  const int64_t first = index * micro_batch_size;
  const int64_t count = std::min(micro_batch_size, batch.inputs.size(0) - first);
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, first, count) : whole;
  };
  const ops::Documents& documents = batch.documents;
  const at::Tensor starts =
      documents.starts.defined() ? documents.starts.select(0, index) : at::Tensor();
  return {rows(batch.inputs),
          rows(batch.targets),
          {rows(documents.ids), rows(documents.first), starts},
          0,
          batch.counted};
}

Batch to_batch(const data::RowBatch& rows, int seq_len, const at::Device& device) {
  Batch batch{to_device(rows.inputs, seq_len, device),
              to_device(rows.targets, seq_len, device),
              {},
              unscored_targets(rows),
              {}};
  if (!rows.documents.empty())
    batch.documents = ops::divide_documents(to_device(rows.documents, seq_len, device));
  return batch;
}

data::RowBatch load_rows(const data::Dataset& dataset, int64_t position, int rows) {
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

Batch load_batch(const data::Dataset& dataset,
                 int64_t position,
                 int rows,
                 const at::Device& device) {
  return to_batch(load_rows(dataset, position, rows), dataset.seq_len(), device);
}

Batch BatchUploader::upload(const data::RowBatch& rows, int micro_batch_size) {
  if (!device_.is_cuda()) return to_batch(rows, seq_len_, device_);
  copy_rows(rows.inputs, batch_.inputs);
  copy_rows(rows.targets, batch_.targets);
  if (rows.documents.empty()) batch_.documents = {};
  if (!rows.documents.empty()) copy_documents(rows.documents, micro_batch_size);
  batch_.unscored = unscored_targets(rows);
  return batch_;
}

void BatchUploader::copy_rows(const std::vector<int32_t>& rows, at::Tensor& to) {
  copy(rows, {static_cast<int64_t>(rows.size()) / seq_len_, seq_len_}, to);
}

void BatchUploader::copy_documents(const std::vector<int32_t>& ids, int micro_batch_size) {
  ops::Documents& documents = batch_.documents;
  copy_rows(ids, documents.ids);
  const int64_t rows = static_cast<int64_t>(ids.size()) / seq_len_;
  const int64_t count = micro_batch_count(rows, micro_batch_size);
  const int64_t sequences = documents.starts.defined() ? documents.starts.size(-1) - 1 : 0;
  const std::vector<int32_t> starts =
      starts_of_micro_batches(ids, seq_len_, count == 1 ? rows : micro_batch_size, sequences);
  const auto numbers = static_cast<int64_t>(starts.size());
  if (starts.empty()) {
    documents.starts = at::Tensor();
  } else if (count == 1) {
    copy(starts, {numbers}, documents.starts);
  } else {
    copy(starts, {count, numbers / count}, documents.starts);
  }
}

void BatchUploader::copy(const std::vector<int32_t>& numbers,
                         at::IntArrayRef shape,
                         at::Tensor& to) {
  if (!to.defined() || to.sizes() != shape)
    to = at::empty(shape, at::TensorOptions(device_).dtype(at::kInt));
  copies_.copy(numbers.data(), static_cast<int64_t>(numbers.size()), to);
}

}  // namespace forge::libtorch
