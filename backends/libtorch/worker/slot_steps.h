#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/libtorch/worker/gradient_exchange.h"
#include "backends/libtorch/worker/trainer.h"

namespace forge::libtorch {

/// What somebody outside of a run has asked its first process for.
struct Wishes {
  bool stop = false;
  bool save = false;
};

/// Training steps of a batch that is cut into train.gradient_slots equal parts. The gradient of
/// each slot is computed by itself, and slots are added in a balanced binary tree, so the sum has
/// the same bits on any number of processes. Of N processes the one of rank r computes slots r, N +
/// r, 2N + r, …, adds up its own part of the gradient, updates its own part of the weights, and
/// gets the others' (ZeRO stage 1, Rajbhandari et al. 2020, without sums in a library).
class SlotSteps {
 public:
  /// All outlive it. The trainer's weights are flat. `counts`: rows may have targets that are not
  /// scored, so that processes must tell each other how many. `hosts`: on which they are.
  SlotSteps(const config::Experiment& experiment,
            Trainer& trainer,
            ProcessGroup& group,
            const at::Device& device,
            bool counts = true,
            int hosts = 1);

  /// Rows of a slot.
  int rows() const { return rows_; }
  /// Slots that this process computes in a step.
  int slots() const { return slots_; }

  /// One step on the rows of this process's slots. If memory runs out in any process before the
  /// weights change, all repeat the step with micro-batches of half the size, and on_micro_batch is
  /// called. Throws c10::OutOfMemoryError if one row does not fit. Returns what `asked` says in the
  /// first process, in all of them.
  Wishes step(const std::vector<data::RowBatch>& rows,
              int64_t step,
              const std::function<Wishes()>& asked,
              const OnMicroBatch& on_micro_batch);
  /// The loss of the whole batch, without gradients.
  double loss_alone(const std::vector<data::RowBatch>& rows);

  /// Targets of the last step's whole batch that are not scored.
  int64_t unscored() const { return unscored_; }

 private:
  /// What a process has of a step before it updates its weights.
  struct Gradient {
    at::Tensor own;              ///< this process's part of the sum over slots
    std::vector<double> losses;  ///< of its own slots
    std::string shortage;        ///< how memory ran out here; "": it did not, and `own` is right
  };
  /// What all processes say with their gradients, the same in each of them.
  struct Tail {
    double loss = 0;  ///< of the batch
    double norm = 0;  ///< of the gradient
    std::string shortage;
    Wishes wishes;
  };

  Gradient gradient(const std::vector<data::RowBatch>& rows);
  /// Adds up the gradient of a slot and those of the other processes' slots.
  at::Tensor exchanged(Gradient& found, const data::RowBatch& slot);
  Tail tail_of(const Gradient& gradient, const Wishes& wishes);
  /// Counts the targets that are scored in all slots, by which each slot's loss is divided.
  void count_targets(const std::vector<data::RowBatch>& rows);
  Batch batch_of(const data::RowBatch& rows);
  void halve_micro_batch(const std::string& shortage, const OnMicroBatch& on_micro_batch);
  void update(const Gradient& gradient, const Tail& tail, int64_t step);

  Trainer& trainer_;
  ProcessGroup& group_;
  GradientExchange exchange_;
  const at::Device device_;
  const int rows_, slots_;
  const bool counts_;
  const int64_t batch_targets_;
  int64_t unscored_ = 0;
  at::Tensor counted_;  ///< as many targets as the whole batch has, scored and not
  BatchUploader uploader_;
};

}  // namespace forge::libtorch
