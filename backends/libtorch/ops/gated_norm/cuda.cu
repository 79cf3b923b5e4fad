#include "backends/libtorch/ops/gated_norm/cuda.cuh"

namespace forge::ops::cuda {

bool gated_norm_fits(int64_t channels, int64_t width) {
  return channels % gate_vector == 0 && width % gate_vector == 0 && channels % width == 0 &&
         channels <= int64_t{most_gate_threads} * gate_vector &&
         gate_teams(channels, width).of_token <= most_gate_threads;
}

template <class T>
void gated_norm_forward(const GatedNormPass<T>& in, cudaStream_t stream) {
  run_gated_norm_forward(in, Start{stream});
}

template <class T>
void gated_norm_backward(const GatedNormPass<T>& in,
                         const GatedNormGradient<T>& grad,
                         const AllocateRows& sums,
                         cudaStream_t stream) {
  run_gated_norm_backward(in, grad, sums, Start{stream});
}

template void gated_norm_forward(const GatedNormPass<float>&, cudaStream_t);
template void gated_norm_forward(const GatedNormPass<bfloat16>&, cudaStream_t);
template void gated_norm_backward(const GatedNormPass<float>&,
                                  const GatedNormGradient<float>&,
                                  const AllocateRows&,
                                  cudaStream_t);
template void gated_norm_backward(const GatedNormPass<bfloat16>&,
                                  const GatedNormGradient<bfloat16>&,
                                  const AllocateRows&,
                                  cudaStream_t);

}  // namespace forge::ops::cuda
