#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/libtorch/worker/gradient_buckets.h"
#include "backends/libtorch/worker/gradient_exchange.h"
#include "backends/libtorch/worker/trainer.h"
#include "backends/libtorch/worker/weight_return.h"

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
///
/// On a GPU a whole step, what processes send each other included, is recorded as a CUDA graph and
/// replayed, and the host takes no part in it.
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
  ~SlotSteps();
  SlotSteps(const SlotSteps&) = delete;
  SlotSteps& operator=(const SlotSteps&) = delete;

  /// Rows of a slot.
  int rows() const { return rows_; }
  /// Slots that this process computes in a step.
  int slots() const { return slots_; }

  /// The rows of this process's slots of the next step, from a loader of slots.
  std::vector<data::RowBatch> next_rows(data::BatchLoader& loader) const;
  /// One step on the rows of this process's slots. If memory runs out in any process before the
  /// weights change, all take micro-batches of half the size, and on_micro_batch is called: on a
  /// CPU in any step, on a GPU in the first one. Throws c10::OutOfMemoryError if one row does not
  /// fit. Returns what `asked` says in the first process, in all of them: on a GPU of the step
  /// before, so that the host need not wait.
  Wishes step(const std::vector<data::RowBatch>& rows,
              int64_t step,
              const std::function<Wishes()>& asked,
              const OnMicroBatch& on_micro_batch);
  /// The loss of the whole batch, without gradients.
  double loss_alone(const std::vector<data::RowBatch>& rows);

  /// Collective. Between steps a process has only its own part of the weights as it is now: the
  /// others' come at the beginning of the next step. This gets it all that a forward pass reads;
  /// before any that is not a step's.
  void complete_weights();
  /// The same, with stored matrices of which a forward pass reads rounded copies.
  void complete_stored();

  /// Collective, for measurements: what the processes send each other in a step, one after the
  /// other, and nothing else.
  void exchange_alone();

  /// Targets of the last step's whole batch that are not scored.
  int64_t unscored() const { return unscored_; }

 private:
  /// What a process has of a step before it updates its weights.
  struct Gradient {
    std::vector<at::Tensor> own;  ///< of each bucket this process's part of the sum over slots
    std::vector<double> losses;   ///< of its own slots
    std::string shortage;         ///< how memory ran out here; "": it did not, and `own` is right
  };
  /// What all processes say with their gradients, the same in each of them.
  struct Tail {
    double loss = 0;  ///< of the batch
    double norm = 0;  ///< of the gradient
    std::string shortage;
    Wishes wishes;
  };
  /// Where what all processes have said is in the order in which it is added: positions in their
  /// messages, one message after another.
  struct Order {
    std::vector<int64_t> blocks;  ///< sums of squares, by bucket and then by rank
    std::vector<int64_t> losses;  ///< of slots
  };

  Wishes step_on_host(const std::vector<data::RowBatch>& rows,
                      int64_t step,
                      const std::function<Wishes()>& asked,
                      const OnMicroBatch& on_micro_batch);
  Gradient gradient(const std::vector<data::RowBatch>& rows);
  Tail tail_of(const Gradient& gradient, const Wishes& wishes);

  Wishes step_on_device(const std::vector<data::RowBatch>& rows,
                        int64_t step,
                        const Wishes& asked,
                        const OnMicroBatch& on_micro_batch);
  /// The step itself, on the batches that were uploaded.
  void run_on_device();
  /// Finds out before the first step how many rows fit at once into every process's memory.
  void rehearse(const data::RowBatch& rows, const OnMicroBatch& on_micro_batch);

  Order order_of_messages() const;
  /// Counts the targets that are scored in all slots, by which each slot's loss is divided.
  void count_targets(const std::vector<data::RowBatch>& rows);
  Batch batch_of(const data::RowBatch& rows, size_t slot = 0);
  int64_t passes() const { return micro_batch_count(rows_, trainer_.micro_batch_size()); }
  void halve_micro_batch(const std::string& shortage, const OnMicroBatch& on_micro_batch);
  /// Updates this process's part of the weights.
  void update(const std::vector<at::Tensor>& gradients);

  Trainer& trainer_;
  ProcessGroup& group_;
  GradientExchange exchange_;
  GradientBuckets buckets_;
  WeightReturn return_;
  bool is_complete_ = true;  ///< the weights, in all processes
  const at::Device device_;
  const int rows_, slots_;
  const bool counts_;
  const int64_t batch_targets_;
  const int64_t blocks_;  ///< of the gradient, that this process owns
  const int64_t flags_;   ///< behind what a message has of blocks and slots
  const Order order_;
  int64_t unscored_ = -1;
  at::Tensor counted_;  ///< as many targets as the whole batch has, scored and not
  std::vector<BatchUploader> uploaders_;  ///< of each slot

  // On a GPU.
  std::vector<Batch> batches_;           ///< of the slots, in the same memory in each step
  at::Tensor block_order_, loss_order_;  ///< Order
  at::Tensor asked_;                     ///< stop, save: int32 [2], of this process
  at::Tensor wishes_;                    ///< of the first process, after a step
  cuda::HostCopies asked_copies_;
  cuda::LateNumbers late_wishes_;
  bool has_rehearsed_ = false;
  StepGraph graph_;
};

}  // namespace forge::libtorch
