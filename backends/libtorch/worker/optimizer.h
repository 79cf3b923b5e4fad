#pragma once

#include <functional>
#include <vector>

#include "backends/libtorch/model/model.h"
#include "backends/libtorch/ops/weight_update/weight_update.h"
#include "backends/libtorch/worker/flat_weights.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

/// Losses and gradient norms of steps, added up.
struct StepTotals {
  double loss = 0;
  double gradient_norm = 0;
};

/// AdamW, Muon, Lion or SGD over all weights of a model, with clipping by the global norm. Moments
/// are on the weights' device and of their dtype, float32 at least. If weights are bfloat16, the
/// optimizer may update float32 master copies of them.
class Optimizer {
 public:
  /// With `flat` the weights are divided among processes: this one has moments of its own part, and
  /// updates that alone. The model and `flat` outlive it. Throws Error for what cannot be divided.
  Optimizer(const config::Experiment& experiment,
            const Model& model,
            const FlatWeights* flat = nullptr);

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

  /// The same where weights are divided, in two halves. First what the step does to all weights
  /// alike: of the loss and the norm of the whole gradient on the host, or where is_recordable() of
  /// the sums of the squares of its blocks and the loss on the device.
  void begin_own(double loss, double norm);
  void begin_own(const at::Tensor& squares, const at::Tensor& loss);
  /// Then this process's part: `gradients` are of its part of each bucket, and are overwritten.
  /// `gather` gives the parts that all processes have of a bucket's gradient, in their order: Muon
  /// needs whole matrices.
  using Gather = std::function<at::Tensor(const at::Tensor& own)>;
  void update_own(const std::vector<at::Tensor>& gradients, const Gather& gather);
  /// The step that begin() named is done.
  void end() { ++step_; }
  /// The totals since they were last set; waits for the device.
  StepTotals totals() const;
  void set_totals(const StepTotals& totals);

  /// Copies the weights into their float32 copies.
  void copy_weights();
  /// The weights that this process updates, of each its own part.
  NamedParts named_weights() const;
  /// What the optimizer keeps of these, under the weights' names: of AdamW ".first_moment" and
  /// ".second_moment", of others ".momentum", where they have one; and ".master_weight" where there
  /// are float32 copies. Of a matrix that Muon updates it is the whole, in each process that owns
  /// some of it.
  NamedParts named_state() const;

 private:
  /// One of the weights that a stored tensor is made of.
  struct Named {
    std::string name;
    std::vector<int64_t> shape;
    int64_t first;  ///< row of the stored tensor
  };
  /// A tensor as the model stores it, with what is kept of it. Undefined is what is not kept.
  struct Stored {
    at::Tensor weight;
    at::Tensor master;   ///< the float32 copy, of what is kept
    at::Tensor rounded;  ///< the model's rounded copy
    at::Tensor first_moment, second_moment;
    ops::UpdateRule rule = ops::UpdateRule::adamw;
    std::vector<Named> named;
    Range own;   ///< numbers that this process owns; all where weights are not divided
    Range kept;  ///< numbers that it updates, and has moments of: those, or Muon's whole matrices
  };
  /// Rows of a stored tensor that are updated alike.
  struct Part {
    size_t stored;
    int64_t first, rows;
    int group;  ///< in options_.groups
    double update_factor;

    at::Tensor of(const at::Tensor& tensor) const;
  };

  /// What the update of a part reads and writes.
  struct Views {
    at::Tensor weight;  ///< that is updated: the float32 copy, where there is one
    at::Tensor gradient, first, second;
    at::Tensor rounded;  ///< that receives the new weights rounded
    int64_t first_element = -1;
  };

  std::vector<int64_t> shape_of_kept(const Stored& stored) const;
  void add_moments(Stored& stored) const;
  void add_parts(size_t stored);
  int group_of(ops::UpdateRule rule, model::WeightGroup group);
  ops::WeightUpdate described() const;
  void update_one_by_one(const at::Tensor& loss);
  Views views_of(const Part& part) const;
  void update_part(const Part& part, double lr);
  Views own_views_of(const Part& part) const;
  ops::WeightUpdate described_own() const;
  Range kept_of(size_t stored) const;
  static void add_named(const Stored& stored,
                        const Range& range,
                        const std::string& suffix,
                        const at::Tensor& numbers,
                        NamedParts& parts);

  const config::Experiment experiment_;
  const Model& model_;
  const FlatWeights* const flat_;
  std::vector<Stored> stored_;
  std::vector<Part> parts_;
  ops::UpdateOptions options_;
  ops::UpdateState state_;  ///< on a GPU
  StepTotals totals_;       ///< on a CPU
  double clip_ = 1;         ///< on a CPU, of the step that was begun
  /// Of each bucket, while they are updated: the gradient of this process's part, and where Muon
  /// reads them those of all parts.
  std::vector<at::Tensor> own_gradients_, all_gradients_;
  int64_t step_ = 0;  ///< the one that comes next
};

}  // namespace forge::libtorch
