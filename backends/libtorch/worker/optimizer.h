#pragma once

#include <vector>

#include "backends/libtorch/model/llama_canon.h"
#include "core/config/experiment.h"

namespace forge::worker {

/// AdamW over all weights of a model. Moments have the weights' dtype and device.
class Optimizer {
 public:
  Optimizer(const config::OptimizerConfig& config, const LlamaCanon& model);

  /// Updates every weight from its gradient. `step` is 1 for the first update.
  void step(int64_t step, double learning_rate);
  /// Drops the gradients, so that the next backward pass writes instead of adding.
  void zero_gradients();
  /// Global L2 norm of the gradients, a scalar on the device; scales them down where `clip` > 0
  /// and the norm is larger.
  at::Tensor gradient_norm(double clip);

  /// Moments under the weights' names with ".first_moment" and ".second_moment", as views.
  NamedTensors named_state() const;

 private:
  config::OptimizerConfig config_;
  const LlamaCanon& model_;
  std::vector<at::Tensor> weights_, first_moments_, second_moments_;
};

}  // namespace forge::worker
