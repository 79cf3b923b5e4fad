#pragma once

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/optimizer.h"
#include "backends/libtorch/worker/step_graph.h"

namespace forge::worker {

ops::CrossEntropyOptions loss_options(const config::ZLossConfig& z_loss);

/// A model with its optimizer: one training step at a time.
class Trainer {
 public:
  Trainer(const config::Experiment& experiment, const at::Device& device);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  LlamaCanon& model() { return model_; }
  Optimizer& optimizer() { return optimizer_; }

  /// Forward, backward, clip, update with the 0-based step's learning rate. On a GPU the whole is
  /// recorded and replayed: then every batch must lie in the same memory as the first (Uploader).
  /// Where its documents' starts lie elsewhere the step is recorded again.
  void step(const Batch& batch, int64_t step);

  /// The parts of a step, each by itself: the loss of a batch, the gradients of a loss, the update.
  at::Tensor loss(const Batch& batch) const;
  void backward(const at::Tensor& loss);
  void update(const at::Tensor& loss, int64_t step);

 private:
  const config::Experiment experiment_;
  LlamaCanon model_;
  Optimizer optimizer_;
  StepGraph graph_;
};

}  // namespace forge::worker
