#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/canon_conv/cuda_tensors.h"

namespace forge::ops {

void canon_conv_forward_cuda(const at::Tensor& x, const CanonLayer& layer, at::Tensor& y) {
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::canon_conv_forward(
        cuda::canon_input<T>(x, layer), cuda::write<T>(y), cuda::current_stream());
  });
}

void canon_conv_backward_cuda(const at::Tensor& x,
                              const CanonLayer& layer,
                              const at::Tensor& grad_y,
                              at::Tensor& grad_x,
                              at::Tensor& grad_w) {
  cuda::BlockSums tap_sums(x, layer.weight.numel());
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::canon_conv_backward(cuda::canon_input<T>(x, layer),
                              cuda::read<T>(grad_y),
                              cuda::write<T>(grad_x),
                              tap_sums.allocate(),
                              cuda::current_stream());
  });
  grad_w = tap_sums.total().view(layer.weight.sizes());
}

}  // namespace forge::ops
