#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::libtorch {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// In which types a model keeps its weights.
struct WeightTypes {
  at::ScalarType matrices = at::kFloat;  ///< embedding, projections, head
  at::ScalarType vectors = at::kFloat;   ///< norms and the kernels of convolutions
  /// Type that matrices are rounded to for products, if it is another one.
  std::optional<at::ScalarType> products;
};

/// A weight's Hugging Face name, and how many rows it has.
struct WeightRows {
  std::string name;
  int64_t rows;
};

/// All weights of a model, in the order in which its blocks asked for them. A block names each of
/// its weights once, in its constructor; everything else that is known of weights follows from
/// that.
class WeightStore {
 public:
  WeightStore(const WeightTypes& types, const at::Device& device)
      : types_(types), device_(device) {}

  /// A matrix of several weights one below another: [sum of rows, columns]. Not initialised.
  ops::WeightMatrix add_matrix(const std::vector<WeightRows>& weights, int64_t columns);
  /// The same, on a GPU with rows of zeros behind them up to a multiple of 8: products of bfloat16
  /// are fast there where each row of the result begins at a word of 16 bytes. Who multiplies by it
  /// ignores those columns of the product, so that the gradient of the zeros is zero.
  ops::WeightMatrix add_padded_matrix(const std::vector<WeightRows>& weights, int64_t columns);
  /// A weight that is no operand of a matrix product. Not initialised.
  at::Tensor add_vector(const std::string& name, at::IntArrayRef shape);
  /// Several of them one below another, [sum of rows, row_shape].
  at::Tensor add_vectors(const std::vector<WeightRows>& weights, at::IntArrayRef row_shape);

  /// Each weight's name and its rows of of_stored(stored tensor). of_stored keeps the shape, or
  /// leaves the weight out by an undefined tensor.
  NamedTensors named(const std::function<at::Tensor(const at::Tensor& stored)>& of_stored) const;
  /// The stored tensors: what the optimizer updates and what has gradients.
  std::vector<at::Tensor> stored() const;
  /// The matrices that have a rounded copy.
  std::vector<ops::WeightMatrix> rounded_matrices() const;

 private:
  ops::WeightMatrix add(const std::vector<WeightRows>& weights, int64_t rows, int64_t columns);

  struct Entry {
    ops::WeightMatrix matrix;
    std::vector<WeightRows> weights;
  };

  WeightTypes types_;
  at::Device device_;
  std::vector<Entry> entries_;
};

}  // namespace forge::libtorch
