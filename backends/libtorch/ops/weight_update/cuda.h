#pragma once

#include "backends/libtorch/ops/common/cuda.h"

namespace forge::ops::cuda {

/// One tensor of an update. Weights are float32, or bfloat16 where they are rounded stochastically;
/// moments are float32; gradients are all of one type.
struct UpdatedTensor {
  void* weights;
  const void* gradients;
  float *first_moments, *second_moments;  ///< null where the rule keeps none
  bfloat16* rounded;                      ///< receives the new weights rounded to nearest; or null
  int64_t count;
  int64_t first_element;  ///< what its first element is for stochastic rounding
  float factor;           ///< of the rate: Muon's for the shape
  int16_t group;          ///< of StepConstants
  int16_t is_aligned;     ///< all of these begin where vectors of four elements may
};

/// As many tensors as a kernel's arguments hold.
struct UpdatedTensors {
  static constexpr int most = 56;
  UpdatedTensor tensors[most];
  int32_t first_block[most];  ///< of each tensor, in blocks of elements_of_block
  int32_t count, blocks;
};

constexpr int64_t elements_of_block = 8192;
constexpr int most_groups = 8;

/// What a step does to every weight alike. Kernels keep a copy of it in registers.
struct StepScalars {
  float clip;  ///< what gradients are multiplied by
  float beta1, beta2, eps;
  float root_correction2;  ///< sqrt(1 - beta2^t)
  float momentum;
  int32_t nesterov;
  uint32_t step;
};

/// What a step does, computed on the GPU from the step's number.
struct StepConstants {
  StepScalars scalars;
  float decay_factor[most_groups];  ///< 1 - lr * weight_decay
  float rate[most_groups];          ///< lr; of AdamW lr / (1 - beta1^t)
};

/// A group's part of that.
struct GroupSettings {
  double lr_factor, weight_decay;
  bool is_corrected;  ///< the rate, for a first moment that begins at 0: AdamW
};

/// What the constants of a step are computed from, and what its beginning writes.
struct StepBeginning {
  double clip;  ///< of the global norm; 0: none
  double beta1, beta2, eps, momentum;
  bool nesterov;
  GroupSettings groups[most_groups];
  int32_t group_count;
  const double* learning_rates;  ///< of each 0-based step; behind the last one it stays
  int64_t learning_rate_count;
  const float* partial;  ///< sums of squares, as square_sums writes them
  int64_t partial_count;
  const float* loss;  ///< [1]
  int64_t* steps;     ///< [1], the 0-based number of the step; one higher afterwards
  double* totals;     ///< [2]: the loss and the gradients' norm are added
  StepConstants* constants;
};

/// partial[block] = the sum of the squares of a block of gradients.
template <class Gradient>
void square_sums(const UpdatedTensors& tensors, float* partial, cudaStream_t stream);

/// Computes the step's constants.
void begin_step(const StepBeginning& in, cudaStream_t stream);

enum class Storage { float32, bfloat16_stochastic };

/// What becomes of a gradient. `direction` is the second half of Muon: gradients are the matrices
/// that were made orthogonal.
enum class Rule { adamw, lion, sgd, sgd_without_momentum, direction };

template <class Gradient>
void update_weights(const UpdatedTensors& tensors,
                    Rule rule,
                    Storage storage,
                    const StepConstants* constants,
                    uint64_t seed,
                    cudaStream_t stream);

/// The first half of Muon: the momentum goes on, and `rounded` receives what is to be made
/// orthogonal. Weights are not touched.
template <class Gradient>
void update_momentum(const UpdatedTensors& tensors,
                     const StepConstants* constants,
                     cudaStream_t stream);

}  // namespace forge::ops::cuda
