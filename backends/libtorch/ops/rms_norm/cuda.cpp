#include "backends/libtorch/ops/rms_norm/cuda.h"

#include "backends/libtorch/ops/canon_conv/cuda_tensors.h"
#include "backends/libtorch/ops/rms_norm/rms_norm.h"

namespace forge::ops {
namespace {

template <class T>
cuda::NormCanon<T> arguments(const at::Tensor& x, const NormCanon& layers) {
  const cuda::CanonInput<T> in = cuda::canon_input<T>(x, layers.canon);
  return {in.sequences,
          x.is_contiguous() ? x.size(2) : x.stride(1),
          in.taps,
          in.residual,
          layers.norm.round_before_weight,
          static_cast<float>(layers.norm.eps),
          in.x,
          cuda::read<float>(layers.weight),
          in.weights};
}

}  // namespace

void norm_canon_forward_cuda(const at::Tensor& x,
                             const NormCanon& layers,
                             at::Tensor& y,
                             at::Tensor& scales) {
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::norm_canon_forward(arguments<T>(x, layers),
                             cuda::write<T>(y),
                             cuda::write<float>(scales),
                             cuda::current_stream());
  });
}

void norm_canon_backward_cuda(const at::Tensor& x,
                              const NormCanon& layers,
                              const at::Tensor& scales,
                              const at::Tensor& grad_y,
                              const at::Tensor& grad_residual,
                              at::Tensor& y,
                              NormCanonGradients& grad) {
  const int64_t channels = x.size(2), taps = cuda::taps_of(layers.canon);
  // A row of sums is for both weights, so that one kernel adds them up.
  cuda::BlockSums block_sums(x, channels * (1 + taps));
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::norm_canon_backward(arguments<T>(x, layers),
                              {cuda::read<float>(scales),
                               cuda::read<T>(grad_y),
                               cuda::read<T>(grad_residual),
                               cuda::write<T>(y),
                               cuda::write<T>(grad.x)},
                              block_sums.allocate(),
                              cuda::current_stream());
  });
  const at::Tensor sums = block_sums.total();
  grad.weight = sums.narrow(0, 0, channels);
  if (taps > 0)
    grad.canon = sums.narrow(0, channels, channels * taps).view(layers.canon.weight.sizes());
}

}  // namespace forge::ops
