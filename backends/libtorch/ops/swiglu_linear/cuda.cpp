#include "backends/libtorch/ops/swiglu_linear/cuda.h"

#include "backends/libtorch/ops/canon_conv/cuda_tensors.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"

namespace forge::ops {

void canon_swiglu_forward_cuda(const at::Tensor& gate_up, const CanonLayer& canon, at::Tensor& y) {
  cuda::with_type(gate_up, [&](auto type) {
    using T = decltype(type);
    cuda::canon_swiglu_forward(
        cuda::canon_input<T>(gate_up, canon), cuda::write<T>(y), cuda::current_stream());
  });
}

void canon_swiglu_backward_cuda(const at::Tensor& gate_up,
                                const CanonLayer& canon,
                                const at::Tensor& grad_y,
                                at::Tensor& y,
                                at::Tensor& grad_gate_up,
                                at::Tensor& grad_canon) {
  const int taps = cuda::taps_of(canon);
  cuda::BlockSums tap_sums(gate_up, taps * gate_up.size(2));
  cuda::with_type(gate_up, [&](auto type) {
    using T = decltype(type);
    cuda::canon_swiglu_backward(cuda::canon_input<T>(gate_up, canon),
                                cuda::read<T>(grad_y),
                                cuda::write<T>(y),
                                cuda::write<T>(grad_gate_up),
                                tap_sums.allocate(),
                                cuda::current_stream());
  });
  if (taps > 0) grad_canon = tap_sums.total().view(canon.weight.sizes());
}

}  // namespace forge::ops
