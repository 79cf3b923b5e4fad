#pragma once

#include <vector>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/worker/batch.h"
#include "backends/libtorch/worker/cuda.h"
#include "backends/libtorch/worker/memory.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

/// Losses and gradient norms of steps, added up.
struct StepTotals {
  double loss = 0;
  double gradient_norm = 0;
};

/// AdamW over all weights of a model, with clipping by the global norm. Moments are on the weights'
/// device and of their dtype, float32 at least. If weights are bfloat16, the optimizer may update
/// float32 master copies of them.
class Optimizer {
 public:
  Optimizer(const config::Experiment& experiment, const Model& model);

  /// Whether the device does update() without the host, so that it can be recorded.
  bool is_recordable() const { return state_.step.defined(); }
  /// Learning rate of the 0-based step.
  double learning_rate(int64_t step) const;
  /// Drops the gradients, so that the next backward pass writes instead of adding.
  void zero_gradients();
  /// Says which 0-based step comes next.
  void begin(int64_t step);
  /// Clips the gradients, updates every weight and adds loss and norm to the totals. On a GPU the
  /// host neither waits nor decides anything, so that the whole may be recorded.
  void update(const at::Tensor& loss);
  /// The step that begin() named is done.
  void end() { ++step_; }
  /// The totals since they were last set; waits for the device.
  StepTotals totals() const;
  void set_totals(const StepTotals& totals);

  /// Copies the weights into their float32 copies.
  void copy_weights();
  /// Moments under the weights' names with ".first_moment" and ".second_moment", as views; and
  /// ".master_weight" where there are float32 copies.
  NamedTensors named_state() const;

 private:
  void update_one_by_one(const at::Tensor& loss);

  const config::Experiment experiment_;
  const Model& model_;
  std::vector<at::Tensor> weights_;  ///< as the model stores them
  std::vector<at::Tensor> masters_;  ///< float32 copies; undefined where there is none
  std::vector<at::Tensor> rounded_;  ///< the model's rounded copies; undefined where there is none
  std::vector<at::Tensor> first_moments_, second_moments_;
  ops::UpdateState state_;  ///< on a GPU
  StepTotals totals_;       ///< on a CPU
  int64_t step_ = 0;        ///< the one that comes next
};

ops::CrossEntropyOptions loss_options(const config::ZLossConfig& z_loss);

/// A model with its optimizer: one training step at a time.
class Trainer {
 public:
  Trainer(const config::Experiment& experiment, const at::Device& device);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Model& model() { return model_; }
  Optimizer& optimizer() { return optimizer_; }

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

 private:
  /// The loss of a whole batch, whose gradients are there then.
  at::Tensor loss_and_gradients(const Batch& batch);

  const config::Experiment experiment_;
  Model model_;
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
