#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backends/libtorch/blocks/norm.h"
#include "backends/libtorch/model/block.h"
#include "backends/libtorch/model/weight_store.h"
#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

class InferenceState;

/// A language model: embedding, residual blocks, final norm, head. What its blocks are, the config
/// says; docs/MATHEMATICS.md gives the formulas.
class Model {
 public:
  /// Weights are allocated, not set: see load_initial in weights.h. `recompute` says what loss()
  /// computes again in its backward pass.
  Model(const model::ModelConfig& config,
        const WeightTypes& types,
        const at::Device& device,
        model::Recompute recompute = model::Recompute::none);
  /// All weights of one type.
  Model(const model::ModelConfig& config, const at::TensorOptions& options);

  const model::ModelConfig& config() const { return config_; }
  /// Device and dtype of the activations.
  at::TensorOptions options() const;
  const std::vector<std::unique_ptr<Block>>& blocks() const { return blocks_; }

  /// Logits [B, T, V] of ids int32 [B, T]. With documents of [B, T], no token sees another
  /// document. `residual_stream`, where given, receives the stream after each block.
  at::Tensor logits(const at::Tensor& ids,
                    const ops::Documents& documents = {},
                    std::vector<at::Tensor>* residual_stream = nullptr) const;

  /// Mean loss of the targets int32 [B, T] that follow ids, a scalar, without keeping the logits.
  /// Its backward pass needs the model as it is.
  at::Tensor loss(const at::Tensor& ids,
                  const ops::Documents& documents,
                  const at::Tensor& targets,
                  const ops::CrossEntropyOptions& options) const;

  /// The sum of the losses of each row's scored targets without z-loss, float64 [B] on the device,
  /// without gradient and without keeping the logits.
  at::Tensor loss_sums(const at::Tensor& ids,
                       const ops::Documents& documents,
                       const at::Tensor& targets) const;

  /// Logits [B, V] of the token that follows each row. ids int32 [B, T]; the first lengths[b]
  /// (1 … T) are row b's, those behind them do not matter. With a state the ids continue its rows,
  /// and it is brought up to them.
  at::Tensor next_logits(const at::Tensor& ids,
                         const std::vector<int64_t>& lengths,
                         InferenceState* state = nullptr) const;

  /// Every weight's Hugging Face name and its part of of_stored(stored tensor).
  NamedTensors named(const std::function<at::Tensor(const at::Tensor& stored)>& of_stored) const {
    return weights_.named(of_stored);
  }
  /// Every weight as a view into the stored tensors.
  NamedTensors named_weights() const;
  /// The stored tensors themselves: what the optimizer updates and what has gradients.
  std::vector<at::Tensor> trainable() const { return weights_.stored(); }
  /// The matrices that have a rounded copy for products.
  std::vector<ops::WeightMatrix> rounded_matrices() const { return weights_.rounded_matrices(); }
  /// The rounded copy of a stored tensor, or an undefined tensor.
  at::Tensor rounded_copy_of(const at::Tensor& stored) const;
  /// Rounds the stored matrices again, after they have changed.
  void round_matrices();
  /// Weights that come from elsewhere: `reads` is called in each pass over whole rows before it
  /// reads more weights, with how many of trainable(), from the first on, it reads until then.
  void on_reading(std::function<void(size_t count)> reads) { reads_ = std::move(reads); }

 private:
  /// Blocks one after another that are recomputed together, or one that is not.
  struct Part {
    size_t first, end;
    bool is_recomputed;
    std::vector<at::Tensor> weights;  ///< of its blocks, as stored
    size_t weights_end;               ///< stored tensors of the model up to its last
  };

  void add_layer(int layer,
                 model::Recompute recompute,
                 const std::shared_ptr<RotaryTables>& rotary);
  at::Tensor forward(const Part& part, at::Tensor x, const ops::Documents& documents) const;
  void reads(size_t count) const {
    if (reads_) reads_(count);
  }
  /// The residual stream after the last block, [B, T, hidden].
  at::Tensor stream(const at::Tensor& ids,
                    const ops::Documents& documents,
                    std::vector<at::Tensor>* residual_stream = nullptr) const;
  const ops::WeightMatrix& head() const { return lm_head_.defined() ? lm_head_ : embedding_; }

  model::ModelConfig config_;
  WeightStore weights_;
  ops::WeightMatrix embedding_;  ///< [V, hidden]
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<Part> parts_;    ///< of the blocks, in order
  Norm norm_;                  ///< of the last block's output
  ops::WeightMatrix lm_head_;  ///< [V, hidden], undefined where the embedding is the head
  size_t stored_count_ = 0;    ///< of trainable()
  std::function<void(size_t)> reads_;
};

}  // namespace forge::libtorch
