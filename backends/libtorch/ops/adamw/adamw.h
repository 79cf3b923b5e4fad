#pragma once

#include <cstdint>
#include <vector>

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

struct AdamWStep {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  int64_t step = 1;  ///< 1 for the first update
};

/// One AdamW update (Loshchilov & Hutter 2019, in torch.optim.AdamW's form) in place:
///     p *= 1 - lr*wd;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
///     p -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + eps)
/// All four tensors have the same shape, dtype and device and are contiguous.
void adamw_(at::Tensor& parameter,
            const at::Tensor& gradient,
            at::Tensor& first_moment,
            at::Tensor& second_moment,
            const AdamWStep& step);

void adamw_reference_(at::Tensor& parameter,
                      const at::Tensor& gradient,
                      at::Tensor& first_moment,
                      at::Tensor& second_moment,
                      const AdamWStep& step);

/// Weights that one update changes on a GPU, with what belongs to each of them.
struct WeightUpdate {
  std::vector<at::Tensor> weights;  ///< float32; bfloat16 where they are rounded stochastically
  std::vector<at::Tensor> gradients;
  std::vector<at::Tensor> first_moments, second_moments;  ///< float32
  std::vector<at::Tensor> rounded;  ///< bfloat16 copies of the new weights; undefined where none
};

struct UpdateOptions {
  double grad_clip = 0;  ///< of the global norm; 0: none
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  uint64_t seed = 0;  ///< of the stochastic rounding
};

/// What is on the GPU from step to step, so that a step can be replayed without the host.
struct UpdateState {
  at::Tensor learning_rates;  ///< double [steps]
  at::Tensor step;            ///< int64 [1], 0-based
  at::Tensor totals;          ///< double [2]: losses and gradient norms added up
  at::Tensor constants;       ///< bytes, of the step that runs
};
FORGE_CUDA_ONLY UpdateState make_update_state(const std::vector<double>& learning_rates,
                                              const at::Device& device);

/// Global norm, clipping, AdamW (see adamw.h) and rounding of all weights in a handful of kernels,
/// without the host waiting or deciding anything. Each weight's gradient is read twice and nothing
/// else more than once. The step's number goes up; loss and norm are added to the totals. Sums run
/// in a fixed order.
FORGE_CUDA_ONLY void adamw_step_cuda(const WeightUpdate& update,
                                     const UpdateOptions& options,
                                     const at::Tensor& loss,
                                     UpdateState& state);

}  // namespace forge::ops
