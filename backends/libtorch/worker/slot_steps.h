#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/libtorch/worker/gradient_exchange.h"
#include "backends/libtorch/worker/trainer.h"

namespace forge::libtorch {

/// Training steps of a batch that is cut into train.gradient_slots equal parts. The gradient of
/// each slot is computed by itself, and slots are added in a balanced binary tree, so the sum has
/// the same bits on any number of processes. Of N processes the one of rank r computes slots r, N +
/// r, 2N + r, …, adds up its own part of the gradient, updates its own part of the weights, and
/// gets the others' (ZeRO stage 1, Rajbhandari et al. 2020, without sums in a library).
class SlotSteps {
 public:
  /// All outlive it. The trainer's weights are flat. `hosts`: on which the processes are.
  SlotSteps(const config::Experiment& experiment,
            Trainer& trainer,
            ProcessGroup& group,
            const at::Device& device,
            int hosts = 1);

  /// Rows of a slot.
  int rows() const { return rows_; }
  /// Slots that this process computes in a step.
  int slots() const { return slots_; }

  /// One step on the rows of this process's slots. If memory runs out in any process before the
  /// weights change, all repeat the step with micro-batches of half the size, and on_micro_batch is
  /// called. Throws c10::OutOfMemoryError if one row does not fit.
  void step(const std::vector<data::RowBatch>& rows,
            int64_t step,
            const OnMicroBatch& on_micro_batch);
  /// The loss of the whole batch, without gradients.
  double loss_alone(const std::vector<data::RowBatch>& rows);

  /// Targets of the last step's whole batch that are not scored.
  int64_t unscored() const { return unscored_; }

 private:
  /// This process's part of the gradient, and the loss of the batch.
  struct Gradient {
    at::Tensor own;
    double loss = 0;
  };

  /// None where memory ran out in some process: `shortage` says how, in all of them.
  std::optional<Gradient> gradient(const std::vector<data::RowBatch>& rows, std::string& shortage);
  /// Counts the targets that are scored in all slots, by which each slot's loss is divided.
  void count_targets(const std::vector<data::RowBatch>& rows);
  Batch batch_of(const data::RowBatch& rows);
  void halve_micro_batch(const std::string& shortage, const OnMicroBatch& on_micro_batch);
  void update(const Gradient& gradient, int64_t step);
  /// The norm of the gradient of which every process has a part.
  double norm_of(const at::Tensor& own);

  Trainer& trainer_;
  ProcessGroup& group_;
  GradientExchange exchange_;
  const at::Device device_;
  const int rows_, slots_;
  const int64_t batch_targets_;
  int64_t unscored_ = 0;
  at::Tensor counted_;  ///< as many targets as the whole batch has, scored and not
  BatchUploader uploader_;
};

}  // namespace forge::libtorch
