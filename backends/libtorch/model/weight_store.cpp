#include "backends/libtorch/model/weight_store.h"

namespace forge::libtorch {
namespace {

int64_t row_count(const std::vector<WeightRows>& weights) {
  int64_t rows = 0;
  for (const WeightRows& weight : weights) rows += weight.rows;
  return rows;
}

}  // namespace

ops::WeightMatrix WeightStore::add_matrix(const std::vector<WeightRows>& weights, int64_t columns) {
  return add(weights, row_count(weights), columns);
}

ops::WeightMatrix WeightStore::add_padded_matrix(const std::vector<WeightRows>& weights,
                                                 int64_t columns) {
  const int64_t rows = row_count(weights);
  return add(weights, device_.is_cuda() ? (rows + 7) / 8 * 8 : rows, columns);
}

ops::WeightMatrix WeightStore::add(const std::vector<WeightRows>& weights,
                                   int64_t rows,
                                   int64_t columns) {
  const int64_t named = row_count(weights);
  const at::TensorOptions options(device_);
  at::Tensor stored = at::empty({rows, columns}, options.dtype(types_.matrices));
  stored.narrow(0, named, rows - named).zero_();
  ops::WeightMatrix matrix = stored.requires_grad_(true);
  if (types_.products) matrix.rounded = at::empty({rows, columns}, options.dtype(*types_.products));
  entries_.push_back({matrix, weights});
  return matrix;
}

at::Tensor WeightStore::add_vector(const std::string& name, at::IntArrayRef shape) {
  return add_vectors({{name, shape[0]}}, shape.slice(1));
}

at::Tensor WeightStore::add_vectors(const std::vector<WeightRows>& weights,
                                    at::IntArrayRef row_shape) {
  std::vector<int64_t> shape = row_shape.vec();
  shape.insert(shape.begin(), row_count(weights));
  at::Tensor stored =
      at::empty(shape, at::TensorOptions(device_).dtype(types_.vectors)).requires_grad_(true);
  entries_.push_back({stored, weights});
  return stored;
}

NamedTensors WeightStore::named(
    const std::function<at::Tensor(const at::Tensor&)>& of_stored) const {
  NamedTensors list;
  for (const Entry& entry : entries_) {
    const at::Tensor tensor = of_stored(entry.matrix.stored);
    if (!tensor.defined()) continue;
    int64_t first = 0;
    for (const WeightRows& weight : entry.weights) {
      list.emplace_back(weight.name, tensor.narrow(0, first, weight.rows));
      first += weight.rows;
    }
  }
  return list;
}

std::vector<at::Tensor> WeightStore::stored() const {
  std::vector<at::Tensor> list;
  for (const Entry& entry : entries_) list.push_back(entry.matrix.stored);
  return list;
}

std::vector<ops::WeightMatrix> WeightStore::rounded_matrices() const {
  std::vector<ops::WeightMatrix> list;
  for (const Entry& entry : entries_) {
    if (entry.matrix.rounded.defined()) list.push_back(entry.matrix);
  }
  return list;
}

}  // namespace forge::libtorch
