#pragma once

#include <memory>

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/optimizer.h"

namespace forge::worker {

ops::CrossEntropyOptions loss_options(const config::ZLossConfig& z_loss);

/// Loss and gradient norm of one step, scalars on the device: reading them waits for it.
struct StepResult {
  at::Tensor loss;
  at::Tensor gradient_norm;
};

/// A model with its optimizer: one training step at a time.
class Trainer {
 public:
  Trainer(const config::Experiment& experiment, const at::Device& device);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  LlamaCanon& model() { return model_; }
  Optimizer& optimizer() { return optimizer_; }
  /// Learning rate of the 0-based step.
  double learning_rate(int64_t step) const;
  /// Forward, backward, clip, update with the 0-based step's learning rate.
  StepResult step(const Batch& batch, int64_t step);

  /// The three parts of `step`, one after the other: the loss from cleared gradients, its
  /// gradients, and clip and update, which give the gradients' norm before the clip.
  at::Tensor loss(const Batch& batch);
  void backward(const at::Tensor& loss);
  at::Tensor update(int64_t step);

 private:
  const config::Experiment experiment_;
  LlamaCanon model_;
  Optimizer optimizer_;
};

}  // namespace forge::worker
