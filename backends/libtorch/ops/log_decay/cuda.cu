#include "backends/libtorch/ops/log_decay/cuda.cuh"

namespace forge::ops::cuda {

template <class T>
void log_decay_forward(const LogDecayPass<T>& in, float* log_decay, cudaStream_t stream) {
  run_log_decay_forward(in, log_decay, Start{stream});
}

template <class T>
void log_decay_backward(const LogDecayPass<T>& in,
                        const float* grad_log_decay,
                        T* grad_x,
                        const AllocateRows& sums,
                        cudaStream_t stream) {
  run_log_decay_backward(in, grad_log_decay, grad_x, sums, Start{stream});
}

template <class T>
void head_gates_forward(const HeadGatesPass<T>& in,
                        float* log_decay,
                        float* beta,
                        cudaStream_t stream) {
  run_head_gates_forward(in, log_decay, beta, Start{stream});
}

template <class T>
void head_gates_backward(const HeadGatesPass<T>& in,
                         const float* grad_log_decay,
                         const float* grad_beta,
                         T* grad_step,
                         T* grad_write,
                         const AllocateRows& sums,
                         cudaStream_t stream) {
  run_head_gates_backward(
      in, grad_log_decay, grad_beta, grad_step, grad_write, sums, Start{stream});
}

template void log_decay_forward(const LogDecayPass<float>&, float*, cudaStream_t);
template void log_decay_forward(const LogDecayPass<bfloat16>&, float*, cudaStream_t);
template void log_decay_backward(
    const LogDecayPass<float>&, const float*, float*, const AllocateRows&, cudaStream_t);
template void log_decay_backward(
    const LogDecayPass<bfloat16>&, const float*, bfloat16*, const AllocateRows&, cudaStream_t);
template void head_gates_forward(const HeadGatesPass<float>&, float*, float*, cudaStream_t);
template void head_gates_forward(const HeadGatesPass<bfloat16>&, float*, float*, cudaStream_t);
template void head_gates_backward(const HeadGatesPass<float>&,
                                  const float*,
                                  const float*,
                                  float*,
                                  float*,
                                  const AllocateRows&,
                                  cudaStream_t);
template void head_gates_backward(const HeadGatesPass<bfloat16>&,
                                  const float*,
                                  const float*,
                                  bfloat16*,
                                  bfloat16*,
                                  const AllocateRows&,
                                  cudaStream_t);

}  // namespace forge::ops::cuda
