#pragma once

#include <vector>

#include "backends/libtorch/model/llama_canon.h"
#include "backends/libtorch/ops/adamw/multi_tensor.h"
#include "core/config/experiment.h"

namespace forge::worker {

/// Losses and gradient norms of steps, added up.
struct StepTotals {
  double loss = 0;
  double gradient_norm = 0;
};

/// AdamW over all weights of a model, with clipping by the global norm. Moments are on the weights'
/// device and of their dtype, float32 at least. Where the model keeps bfloat16 weights the
/// optimizer may keep float32 copies of them, which are what it updates.
class Optimizer {
 public:
  Optimizer(const config::Experiment& experiment, const LlamaCanon& model);

  /// Whether update() is done by the device alone, so that it may be recorded.
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
  /// The totals since they were last taken or set; waits for the device.
  StepTotals totals() const;
  void set_totals(const StepTotals& totals);
  StepTotals take_totals();

  /// The float32 copies become what the weights are.
  void copy_weights();
  /// Moments under the weights' names with ".first_moment" and ".second_moment", as views; and
  /// ".master_weight" where there are float32 copies.
  NamedTensors named_state() const;

 private:
  void update_one_by_one(const at::Tensor& loss);

  const config::Experiment experiment_;
  const LlamaCanon& model_;
  std::vector<at::Tensor> weights_;  ///< as the model stores them
  std::vector<at::Tensor> masters_;  ///< float32 copies; undefined where there is none
  std::vector<at::Tensor> rounded_;  ///< the model's rounded copies; undefined where there is none
  std::vector<at::Tensor> first_moments_, second_moments_;
  ops::UpdateState state_;  ///< on a GPU
  StepTotals totals_;       ///< on a CPU
  int64_t step_ = 0;        ///< the one that comes next
};

}  // namespace forge::worker
