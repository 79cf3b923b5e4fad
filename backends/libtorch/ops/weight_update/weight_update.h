#pragma once

#include <cstdint>
#include <vector>

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/muon/muon.h"

/// The optimizers' steps on a GPU.
namespace forge::ops {

enum class UpdateRule { adamw, lion, sgd, muon };

/// A weight that an update changes, with what belongs to it.
struct UpdatedWeight {
  at::Tensor weight;  ///< float32; bfloat16 where it is rounded stochastically
  at::Tensor gradient;
  at::Tensor first_moment, second_moment;  ///< float32; undefined where the rule keeps none
  at::Tensor rounded;                      ///< a bfloat16 copy of the new weight, or undefined
  int group = 0;                           ///< in UpdateOptions::groups
  double update_factor = 1;                ///< muon: of the rate, for the update alone
  /// What the first element is for stochastic rounding; -1: the one after the weight before.
  int64_t first_element = -1;
};
using WeightUpdate = std::vector<UpdatedWeight>;

/// What weights have in common: the rule, their rate and their decay.
struct UpdateGroup {
  UpdateRule rule = UpdateRule::adamw;
  double lr_factor = 1;  ///< of the step's learning rate
  double weight_decay = 0;
};

struct UpdateOptions {
  double grad_clip = 0;                           ///< of the global norm; 0: none
  std::vector<UpdateGroup> groups = {};           ///< at most eight
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;  ///< adamw; lion has betas, too
  double momentum = 0;                            ///< sgd, muon
  bool nesterov = false;                          ///< sgd, muon
  NewtonSchulz newton_schulz = {};
  bool one_matrix_at_once = false;  ///< muon: bits do not depend on which matrices are updated
  uint64_t seed = 0;                ///< of the stochastic rounding
};

/// What is on the GPU from step to step, so that a step can be replayed without the host.
struct UpdateState {
  at::Tensor learning_rates;  ///< double [steps]
  at::Tensor step;            ///< int64 [1], 0-based
  at::Tensor totals;          ///< double [2]: losses and gradient norms added up
  at::Tensor constants;       ///< bytes, of the step that runs
};
FORGE_CUDA_ONLY UpdateState make_update_state(const std::vector<double>& learning_rates,
                                              const at::Device& device);

/// Global norm, clipping, the groups' rules (see adamw.h, lion.h, sgd.h, muon.h) and rounding of
/// all weights, without the host waiting or deciding anything. Each weight's gradient is read twice
/// and nothing else more than once; but Muon's iterations run in bfloat16 on copies, of matrices of
/// one shape together, 2^25 numbers at most or one matrix. The step's number goes up; loss and norm
/// are added to the totals. Sums run in a fixed order.
FORGE_CUDA_ONLY void update_weights_cuda(const WeightUpdate& update,
                                         const UpdateOptions& options,
                                         const at::Tensor& loss,
                                         UpdateState& state);

/// The phases of that, for weights that are divided among processes.
///
/// Of a contiguous row of gradients, a multiple of 8192, the sum of the squares of each block of
/// 8192: float [blocks].
FORGE_CUDA_ONLY at::Tensor square_sums_cuda(const at::Tensor& gradients);
/// What the step does to every weight: `squares` are those sums of all weights, in an order that is
/// always the same; the loss is a float. The step's number goes up; loss and norm are added to the
/// totals.
FORGE_CUDA_ONLY void begin_update_cuda(const at::Tensor& squares,
                                       const UpdateOptions& options,
                                       const at::Tensor& loss,
                                       UpdateState& state);
/// The update itself, of some of the weights, as the step that was begun has it.
FORGE_CUDA_ONLY void apply_update_cuda(const WeightUpdate& update,
                                       const UpdateOptions& options,
                                       const UpdateState& state);

}  // namespace forge::ops
