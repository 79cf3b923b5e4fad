#pragma once

#include <array>
#include <cstdint>

#include "core/config/experiment.h"
#include "core/model/parameters.h"

namespace forge::model {

/// Number of weights by part. Tied embeddings count once, as embedding.
class ParameterCounts {
 public:
  int64_t of(Part part) const { return counts_[static_cast<size_t>(part)]; }
  void add(Part part, int64_t count) { counts_[static_cast<size_t>(part)] += count; }
  /// The Canon layers at all positions together.
  int64_t canon() const;
  int64_t total() const;

 private:
  std::array<int64_t, part_count> counts_{};
};

ParameterCounts count_parameters(const config::ModelConfig& model);

/// Floating-point operations for one token of training, 2 per multiply-add, averaged over a row of
/// `seq_len` tokens. Counted are matrix products (lm_head included, tied or not), Canon's taps and
/// causal attention at half of the full square; not counted are norms, softmax, rotations,
/// activations and the optimizer, which are no multiply-adds of weights and below a few per cent.
struct TokenFlops {
  double projections = 0;  ///< the matrices of attention and MLP
  double attention = 0;    ///< scores and weighted sums
  double canon = 0;
  double lm_head = 0;

  double forward() const { return projections + attention + canon + lm_head; }
  /// Twice the forward: gradients of the inputs and of the weights.
  double backward() const { return 2 * forward(); }
  double total() const { return forward() + backward(); }
};

TokenFlops flops_per_token(const config::ModelConfig& model, int seq_len);

/// Bytes that training holds. Weights and moments are there from the first step to the last,
/// activations between the forward and the backward pass, gradients from there to the update. They
/// grow while activations are given back, so the total is a little above the peak: 4 % for Llama
/// 4M.
struct TrainingBytes {
  int64_t weights = 0;          ///< with the bfloat16 copies of float32 weights
  int64_t gradients = 0;        ///< as exact as the weights
  int64_t optimizer = 0;        ///< AdamW: two moments; float32 copies of bfloat16 weights
  int64_t activations = 0;      ///< see activation_bytes
  int64_t logits_gradient = 0;  ///< logits of loss_rows_at_once, made their gradient in place

  int64_t total() const { return weights + gradients + optimizer + activations + logits_gradient; }
};

/// Rows of hidden states whose logits the loss holds at a time: about a million numbers, so that
/// they stay in a CPU's cache.
int64_t loss_rows_at_once(int64_t vocab_size);

TrainingBytes training_bytes(const config::ModelConfig& model, const config::TrainConfig& train);

/// What one forward pass keeps for the backward pass: every input that an operation needs again,
/// with the fused operations of backends/libtorch. docs/MATHEMATICS.md lists the tensors.
int64_t activation_bytes(const config::ModelConfig& model, const config::TrainConfig& train);

}  // namespace forge::model
