#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/causal_attention/documents.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/ops/rotary/rotary.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/config/experiment.h"

namespace forge::worker {

class InferenceState;

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// In which types a model keeps its weights.
struct WeightTypes {
  at::ScalarType matrices = at::kFloat;  ///< embedding, projections, head
  at::ScalarType small = at::kFloat;     ///< norms and taps of the convolutions
  std::optional<at::ScalarType>
      products;  ///< what matrices are rounded to for products, if another
};

/// Weights of one block. q, k, v and gate, up are stored together, so that one matrix product
/// serves each group and Canon-B and Canon-D are one convolution each.
struct Block {
  at::Tensor input_norm;      ///< [hidden]
  ops::WeightMatrix qkv;      ///< [(H+2G)*D, hidden]
  at::Tensor q_norm, k_norm;  ///< [H*D], [G*D] (full) or [D], [D] (per head), or undefined
  ops::WeightMatrix output;   ///< [hidden, H*D]
  at::Tensor post_norm;       ///< [hidden]
  ops::WeightMatrix gate_up;  ///< [2I, hidden]
  ops::WeightMatrix down;     ///< [hidden, I]
  at::Tensor canon_a, canon_b, canon_c, canon_d;  ///< [channels, 1, kernel], or undefined
};

/// Llama (pre-norm blocks, RMSNorm, rotary positions or none, SwiGLU) with Canon layers at any of
/// four positions: docs/MATHEMATICS.md gives the formulas.
class LlamaCanon {
 public:
  /// Weights are allocated, not set: see load_initial in weights.h.
  LlamaCanon(const config::ModelConfig& config, const WeightTypes& types, const at::Device& device);
  /// All of one type.
  LlamaCanon(const config::ModelConfig& config, const at::TensorOptions& options);

  const config::ModelConfig& config() const { return config_; }
  /// Device and dtype of the activations.
  at::TensorOptions options() const;
  /// Rounds the stored matrices for the products again, after they have changed.
  void round_matrices();
  /// The matrices that have a rounded copy.
  std::vector<ops::WeightMatrix> rounded_matrices() const;

  /// Logits [B, T, V] of ids int32 [B, T]. With documents of [B, T], attention and convolution stay
  /// within one. `residual_stream`, where given, receives the stream after each block.
  at::Tensor logits(const at::Tensor& ids,
                    const ops::Documents& documents = {},
                    std::vector<at::Tensor>* residual_stream = nullptr) const;

  /// Mean loss of the targets int32 [B, T] that follow ids, a scalar, without keeping the logits.
  at::Tensor loss(const at::Tensor& ids,
                  const ops::Documents& documents,
                  const at::Tensor& targets,
                  const ops::CrossEntropyOptions& options) const;

  /// The sum of the losses of all scored targets without z-loss, a float64 scalar on the device,
  /// without gradient and without keeping the logits.
  at::Tensor loss_sum(const at::Tensor& ids,
                      const ops::Documents& documents,
                      const at::Tensor& targets) const;

  /// Logits [B, V] of the token that follows each row. ids int32 [B, T], of which the first
  /// lengths[b] (1 … T) are row b's; what stands behind them does not matter. With a state the ids
  /// go on where its rows are, and it is brought up to them.
  at::Tensor next_logits(const at::Tensor& ids,
                         const std::vector<int64_t>& lengths,
                         InferenceState* state = nullptr) const;

  /// For every weight, in the order of model::parameters(): its Hugging Face name and the part that
  /// belongs to it of of_stored(stored tensor), where of_stored keeps the shape.
  NamedTensors named(const std::function<at::Tensor(const at::Tensor& stored)>& of_stored) const;

  /// Every weight as a view into the stored tensors.
  NamedTensors named_weights() const;

  /// The stored tensors themselves: what the optimizer updates and what has gradients.
  std::vector<at::Tensor> trainable() const;

  /// Gradients under the names of named_weights(); a weight without gradient gives zeros.
  NamedTensors named_gradients() const;

 private:
  /// What a token looks back on besides itself.
  struct Past {
    ops::Documents documents;         ///< its row, divided where these are given
    InferenceState* state = nullptr;  ///< what came before the row, where this is given
    ops::RotaryTable rotary;          ///< of the row's positions
    size_t layer = 0;
  };

  /// The residual stream after the last block, [B, T, hidden].
  at::Tensor stream(const at::Tensor& ids,
                    Past past,
                    std::vector<at::Tensor>* residual_stream = nullptr) const;
  /// What the head reads of whole rows from their beginning, [B * T, hidden].
  at::Tensor head_inputs(const at::Tensor& ids, const ops::Documents& documents) const;
  at::Tensor head(const at::Tensor& x) const;
  const ops::WeightMatrix& head_weight() const {
    return config_.tie_embeddings ? embedding_ : lm_head_;
  }
  /// The type that matrix products read.
  at::ScalarType products() const { return embedding_.operand().scalar_type(); }
  /// The stream x behind the block's attention, and behind its MLP.
  at::Tensor attention(const Block& block, const at::Tensor& x, const Past& past) const;
  at::Tensor mlp(const Block& block, const at::Tensor& x, const Past& past) const;
  /// Norm, Canon layer at `position` where there is one, product with `weight`; and x.
  ops::NormLinear project(const at::Tensor& x,
                          const at::Tensor& norm_weight,
                          char position,
                          const at::Tensor& canon_weight,
                          const ops::WeightMatrix& weight,
                          const Past& past) const;
  ops::RmsNormOptions norm_options() const;
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const;
  ops::CanonLayer canon_layer(const at::Tensor& weight, const Past& past) const;
  at::Tensor canon(char position,
                   const at::Tensor& weight,
                   const at::Tensor& x,
                   const Past& past) const;
  at::Tensor rotate(const at::Tensor& x, const Past& past) const;
  const ops::RotaryTable& rotary_table(int64_t length) const;

  config::ModelConfig config_;
  ops::WeightMatrix embedding_;  ///< [V, hidden]
  std::vector<Block> blocks_;
  at::Tensor final_norm_;      ///< [hidden]
  ops::WeightMatrix lm_head_;  ///< [V, hidden], undefined where the embedding is tied
  /// Each for longer sequences than the one before. None is dropped: a recorded step goes on
  /// reading the one that it was recorded with.
  mutable std::vector<ops::RotaryTable> rotary_;
};

}  // namespace forge::worker
