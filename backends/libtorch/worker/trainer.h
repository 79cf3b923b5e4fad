#pragma once

#include <optional>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/flat_weights.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/optimizer.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

ops::CrossEntropyOptions loss_options(const config::ZLossConfig& z_loss);

/// A model with its optimizer: one training step at a time.
class Trainer {
 public:
  /// With train.gradient_slots the weights are flat, and divided among the processes of the place.
  Trainer(const config::Experiment& experiment, const at::Device& device, const Place& place = {});
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Model& model() { return model_; }
  Optimizer& optimizer() { return optimizer_; }
  /// Only with train.gradient_slots.
  const FlatWeights& flat() const { return flat_.value(); }

  /// Rows of a batch in one forward and backward pass, gradients are added up; 0: all of them.
  int micro_batch_size() const { return micro_batch_size_; }
  void set_micro_batch_size(int rows);
  /// Whether the last step() got as far as the update: it cannot be repeated.
  bool is_updating() const { return updating_; }

  /// Forward, backward, clip, update with the 0-based step's learning rate. On a GPU the step is
  /// recorded and replayed: every batch must lie in the memory of the first one (BatchUploader). If
  /// documents.starts has moved, the step is recorded again. An exception leaves the weights as
  /// they were unless is_updating().
  void step(const Batch& batch, int64_t step);

  /// The phases of a step: the loss of one micro-batch, as its share of the whole batch's loss; the
  /// gradients of the first one's loss, in place of those before (further losses add theirs by
  /// backward()); the update.
  at::Tensor loss(const Batch& batch, int64_t index = 0) const;
  void backward(const at::Tensor& loss);
  void update(const at::Tensor& loss, int64_t step);
  /// The loss of all rows of a batch, without gradients.
  double loss_alone(const Batch& batch) const;
  /// The same with gradients, in place of those before.
  at::Tensor loss_and_gradients(const Batch& batch);

 private:
  const config::Experiment experiment_;
  Model model_;
  const std::optional<FlatWeights> flat_;
  Optimizer optimizer_;
  StepGraph graph_;
  int micro_batch_size_;
  bool updating_ = false;
};

/// One training step on these rows. If memory runs out before the weights change, the step is
/// repeated with micro-batches of half the size, on the same tokens. The trainer keeps that size,
/// and on_micro_batch is called. Throws c10::OutOfMemoryError if one row does not fit. Returns the
/// batch, which is valid until the next call.
Batch step_with_oom_retry(Trainer& trainer,
                          BatchUploader& uploader,
                          const data::RowBatch& rows,
                          int64_t step,
                          const at::Device& device,
                          const OnMicroBatch& on_micro_batch);

}  // namespace forge::libtorch
