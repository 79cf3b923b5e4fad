#pragma once

#include <map>
#include <memory>
#include <string>

#include "backends/libtorch/model/rotary_tables.h"
#include "backends/libtorch/model/weight_store.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

class GenerationStep;

/// What a block remembers of the rows of a batch while they grow: keys and values, the last inputs
/// of a convolution, a recurrent state.
class BlockState {
 public:
  virtual ~BlockState() = default;
  /// Row i becomes what row index[i] is. index: int64 [new rows] on the state's device.
  virtual void select(const at::Tensor& index) = 0;
  /// Allocates memory for `tokens` tokens a row. For states that grow with the row.
  virtual void reserve(int64_t /*tokens*/) {}
};

/// A residual block: x + f(x) for the residual stream x [B, T, hidden].
class Block {
 public:
  virtual ~Block() = default;

  /// Of whole rows from their beginning, in training and evaluation. Where documents are given, a
  /// token sees only its own one. Differentiable in x and the weights.
  virtual at::Tensor forward(const at::Tensor& x, const ops::Documents& documents) const = 0;
  /// The same for its gradients alone, in the backward pass: what the backward pass reads has the
  /// same bits, the result's numbers may be left unset.
  virtual at::Tensor forward_again(const at::Tensor& x, const ops::Documents& documents) const {
    return forward(x, documents);
  }

  /// A state for `rows` rows without tokens. `options`: device and type of activations.
  virtual std::unique_ptr<BlockState> new_state(int64_t rows,
                                                const at::TensorOptions& options) const = 0;
  /// Of the next tokens of rows whose earlier tokens are in `state`; the state is brought up to
  /// them. What a row's tokens behind its count give does not matter.
  virtual at::Tensor step(const at::Tensor& x,
                          const GenerationStep& step,
                          BlockState& state) const = 0;
};

/// What a block is built from.
struct BlockArguments {
  const model::ModelConfig& config;
  std::string prefix;  ///< of its weights' names: "model.layers.3."
  WeightStore& weights;
  std::shared_ptr<RotaryTables> rotary;  ///< one for all blocks of a model
};

using BlockMaker = std::unique_ptr<Block> (*)(const BlockArguments& arguments);

/// The kinds of blocks by name: the one place that lists them (blocks/blocks.cpp).
const std::map<std::string, BlockMaker>& block_kinds();

}  // namespace forge::libtorch
