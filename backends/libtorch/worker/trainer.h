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

  /// How many rows of a batch are computed at once, their gradients added up; 0: all of them.
  int rows_at_once() const { return rows_at_once_; }
  void set_rows_at_once(int rows);
  /// Whether the last step() got as far as the update: it cannot be done anew.
  bool is_updating() const { return updating_; }

  /// Forward, backward, clip, update with the 0-based step's learning rate. On a GPU the whole is
  /// recorded and replayed: then every batch must lie in the same memory as the first (Uploader).
  /// Where its documents' starts lie elsewhere the step is recorded again. An exception leaves the
  /// weights as they were unless is_updating().
  void step(const Batch& batch, int64_t step);

  /// The parts of a step, each by itself: the loss of the rows that are computed at once, as a part
  /// of the whole batch's; the gradients of a loss, in place of those before or added to them; the
  /// update.
  at::Tensor loss(const Batch& batch, int64_t part = 0) const;
  void backward(const at::Tensor& loss);
  void add_gradients(const at::Tensor& loss);
  void update(const at::Tensor& loss, int64_t step);
  /// The loss of all rows of a batch, without gradients.
  double loss_alone(const Batch& batch) const;

 private:
  /// The loss of a whole batch, whose gradients are there then.
  at::Tensor loss_and_gradients(const Batch& batch);

  const config::Experiment experiment_;
  LlamaCanon model_;
  Optimizer optimizer_;
  StepGraph graph_;
  int rows_at_once_;
  bool updating_ = false;
};

}  // namespace forge::worker
