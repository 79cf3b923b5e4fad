#pragma once

#include <cstdint>
#include <vector>

namespace forge::tests {

/// The kernels that update weights, on the emulated GPU (cuda_emulation.h). bfloat16 numbers are
/// their bits.
struct EmulatedWeight {
  std::vector<float> weight, first_moment, second_moment;
  std::vector<uint16_t> narrow_weight;    ///< in place of `weight`: rounded stochastically
  std::vector<float> gradient;            ///< empty: narrow_gradient
  std::vector<uint16_t> narrow_gradient;  ///< of `direction`, what was made orthogonal
  std::vector<uint16_t> rounded;          ///< a copy, where it has the weight's size
  float factor = 1;
  int group = 0;

  int64_t size() const {
    return static_cast<int64_t>(weight.empty() ? narrow_weight.size() : weight.size());
  }
};

enum class EmulatedRule { adamw, lion, sgd, sgd_without_momentum, direction, momentum };

struct EmulatedGroup {
  double lr_factor, weight_decay;
  bool is_corrected;
};

struct EmulatedUpdate {
  EmulatedRule rule;
  double clip = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, momentum = 0;
  bool nesterov = false;
  std::vector<EmulatedGroup> groups;
  std::vector<double> learning_rates;
  uint64_t seed = 0;
  bool backwards = false;  ///< threads change in the other order: results must not
  bool aligned = true;     ///< vectors of four elements are read at once

  // What goes on from step to step.
  int64_t step = 0;
  double loss = 0, norm = 0;
};

/// Square sums, the beginning of a step and the rule on all weights, which have one type of storage
/// and one of gradients. `loss` is what the step adds.
void run_emulated_update(EmulatedUpdate& update, std::vector<EmulatedWeight>& weights, float loss);

}  // namespace forge::tests
