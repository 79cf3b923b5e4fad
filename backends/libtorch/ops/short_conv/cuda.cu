#include "backends/libtorch/ops/short_conv/cuda.cuh"

namespace forge::ops::cuda {

template <class T>
void short_conv_forward(const ShortConvPass<T>& in, cudaStream_t stream) {
  run_short_conv_forward(in, Start{stream});
}

template <class T>
void short_conv_backward(const ShortConvPass<T>& in,
                         const ShortConvGradient<T>& grad,
                         const AllocateRows& sums,
                         cudaStream_t stream) {
  run_short_conv_backward(in, grad, sums, Start{stream});
}

template bool short_conv_fits(const ShortConvPass<float>&, int);
template bool short_conv_fits(const ShortConvPass<bfloat16>&, int);
template void short_conv_forward(const ShortConvPass<float>&, cudaStream_t);
template void short_conv_forward(const ShortConvPass<bfloat16>&, cudaStream_t);
template void short_conv_backward(const ShortConvPass<float>&,
                                  const ShortConvGradient<float>&,
                                  const AllocateRows&,
                                  cudaStream_t);
template void short_conv_backward(const ShortConvPass<bfloat16>&,
                                  const ShortConvGradient<bfloat16>&,
                                  const AllocateRows&,
                                  cudaStream_t);

}  // namespace forge::ops::cuda
