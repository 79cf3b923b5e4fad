#include "backends/libtorch/ops/weight_update/cuda.cuh"

namespace forge::ops::cuda {

template <class Gradient>
void square_sums(const UpdatedTensors& tensors, float* partial, cudaStream_t stream) {
  run_square_sums<Gradient>(tensors, partial, Start{stream});
}

void begin_step(const StepBeginning& in, cudaStream_t stream) { run_begin_step(in, Start{stream}); }

template <class Gradient>
void update_weights(const UpdatedTensors& tensors,
                    Rule rule,
                    Storage storage,
                    const StepConstants* constants,
                    uint64_t seed,
                    cudaStream_t stream) {
  run_update<Gradient>(tensors, rule, storage, constants, seed, Start{stream});
}

template <class Gradient>
void update_momentum(const UpdatedTensors& tensors,
                     const StepConstants* constants,
                     cudaStream_t stream) {
  run_momentum<Gradient>(tensors, constants, Start{stream});
}

template void square_sums<float>(const UpdatedTensors&, float*, cudaStream_t);
template void square_sums<bfloat16>(const UpdatedTensors&, float*, cudaStream_t);
template void update_weights<float>(
    const UpdatedTensors&, Rule, Storage, const StepConstants*, uint64_t, cudaStream_t);
template void update_weights<bfloat16>(
    const UpdatedTensors&, Rule, Storage, const StepConstants*, uint64_t, cudaStream_t);
template void update_momentum<float>(const UpdatedTensors&, const StepConstants*, cudaStream_t);
template void update_momentum<bfloat16>(const UpdatedTensors&, const StepConstants*, cudaStream_t);

}  // namespace forge::ops::cuda
