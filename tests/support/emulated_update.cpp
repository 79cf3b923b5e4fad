// Compiled optimised, unlike other tests, and without Torch.
#include "tests/support/emulated_update.h"

#include "tests/support/cuda_emulation.h"

#include "backends/libtorch/ops/weight_update/cuda.cuh"

namespace forge::tests {
namespace {

namespace kernels = ops::cuda;
using kernels::bfloat16;

struct EmulatedStart {
  template <class... Parameters, class... Arguments>
  void operator()(void (*kernel)(Parameters...),
                  unsigned x,
                  unsigned y,
                  int threads,
                  const Arguments&... arguments) const {
    cuda_emulation::launch(kernel, {x, y, 1}, threads, 0, arguments...);
  }
};

bfloat16* bits_in(std::vector<uint16_t>& bits) {
  static_assert(sizeof(bfloat16) == sizeof(uint16_t));
  return bits.empty() ? nullptr : reinterpret_cast<bfloat16*>(bits.data());
}

float* numbers_in(std::vector<float>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

kernels::UpdatedTensors table_of(std::vector<EmulatedWeight>& weights, bool aligned) {
  kernels::UpdatedTensors table{};
  int64_t first_element = 0;
  for (EmulatedWeight& w : weights) {
    void* const stored = w.weight.empty() ? static_cast<void*>(bits_in(w.narrow_weight))
                                          : static_cast<void*>(w.weight.data());
    const void* const gradient = w.gradient.empty() ? static_cast<void*>(bits_in(w.narrow_gradient))
                                                    : static_cast<void*>(w.gradient.data());
    table.tensors[table.count] = {stored,
                                  gradient,
                                  numbers_in(w.first_moment),
                                  numbers_in(w.second_moment),
                                  bits_in(w.rounded),
                                  w.size(),
                                  first_element,
                                  w.factor,
                                  static_cast<int16_t>(w.group),
                                  static_cast<int16_t>(aligned)};
    first_element += w.size();
    table.first_block[table.count++] = table.blocks;
    table.blocks += static_cast<int32_t>((w.size() + kernels::elements_of_block - 1) /
                                         kernels::elements_of_block);
  }
  return table;
}

kernels::StepConstants begun(EmulatedUpdate& update,
                             const std::vector<float>& partial,
                             float loss) {
  kernels::StepConstants constants{};
  double totals[2] = {update.loss, update.norm};
  kernels::StepBeginning in{};
  in.clip = update.clip;
  in.beta1 = update.beta1;
  in.beta2 = update.beta2;
  in.eps = update.eps;
  in.momentum = update.momentum;
  in.nesterov = update.nesterov;
  for (const EmulatedGroup& group : update.groups)
    in.groups[in.group_count++] = {group.lr_factor, group.weight_decay, group.is_corrected};
  in.learning_rates = update.learning_rates.data();
  in.learning_rate_count = static_cast<int64_t>(update.learning_rates.size());
  in.partial = partial.data();
  in.partial_count = static_cast<int64_t>(partial.size());
  in.loss = &loss;
  in.steps = &update.step;
  in.totals = totals;
  in.constants = &constants;
  kernels::run_begin_step(in, EmulatedStart());
  update.loss = totals[0];
  update.norm = totals[1];
  return constants;
}

template <class Gradient>
void run(EmulatedUpdate& update, std::vector<EmulatedWeight>& weights, float loss) {
  const kernels::UpdatedTensors table = table_of(weights, update.aligned);
  std::vector<float> partial(static_cast<size_t>(table.blocks), NAN);
  kernels::run_square_sums<Gradient>(table, partial.data(), EmulatedStart());
  const kernels::StepConstants constants = begun(update, partial, loss);
  if (update.rule == EmulatedRule::momentum)
    return kernels::run_momentum<Gradient>(table, &constants, EmulatedStart());
  const auto storage = weights.front().weight.empty() ? kernels::Storage::bfloat16_stochastic
                                                      : kernels::Storage::float32;
  kernels::run_update<Gradient>(table,
                                static_cast<kernels::Rule>(update.rule),
                                storage,
                                &constants,
                                update.seed,
                                EmulatedStart());
}

}  // namespace

void run_emulated_update(EmulatedUpdate& update, std::vector<EmulatedWeight>& weights, float loss) {
  cuda_emulation::run_backwards = update.backwards;
  weights.front().gradient.empty() ? run<bfloat16>(update, weights, loss)
                                   : run<float>(update, weights, loss);
}

}  // namespace forge::tests
