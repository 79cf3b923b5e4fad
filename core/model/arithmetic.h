#pragma once

#include <cstdint>

#include "core/config/experiment.h"

namespace forge::model {

/// Number of weights by part. Tied embeddings count once, as embedding.
struct ParameterCounts {
  int64_t embedding = 0;
  int64_t attention = 0;  ///< the four projections
  int64_t mlp = 0;
  int64_t canon = 0;
  int64_t norm = 0;  ///< block norms, final norm, norms of queries and keys
  int64_t lm_head = 0;

  int64_t total() const { return embedding + attention + mlp + canon + norm + lm_head; }
};

ParameterCounts count_parameters(const config::ModelConfig& model);

/// Floating-point operations for one token of training, 2 per multiply-add, averaged over a row of
/// `seq_len` tokens. Counted are matrix products (lm_head included, tied or not), Canon's taps and
/// causal attention at half of the full square; not counted are norms, softmax, rotations,
/// activations and the optimizer, which are no multiply-adds of weights and below a few per cent.
struct TokenFlops {
  double forward = 0;
  double backward = 0;  ///< twice the forward: gradients of the inputs and of the weights

  double total() const { return forward + backward; }
};

TokenFlops flops_per_token(const config::ModelConfig& model, int seq_len);

/// Bytes that training holds from its first step to its last, besides activations.
struct StateBytes {
  int64_t weights = 0;
  int64_t gradients = 0;  ///< as large as the weights
  int64_t adamw = 0;      ///< first and second moment, each as large as the weights

  int64_t total() const { return weights + gradients + adamw; }
};

StateBytes state_bytes(const config::ModelConfig& model, config::Precision precision);

}  // namespace forge::model
