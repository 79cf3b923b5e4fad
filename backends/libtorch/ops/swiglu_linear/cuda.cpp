#include "backends/libtorch/ops/swiglu_linear/cuda.h"

#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"

namespace forge::ops {
namespace {

template <class T>
cuda::CanonSwiGlu<T> arguments(const at::Tensor& gate_up, const CanonLayer& canon) {
  return {cuda::sequences_of(gate_up, canon),
          cuda::taps_of(canon),
          canon.options.residual,
          cuda::read<T>(gate_up),
          cuda::read<float>(canon.weight)};
}

}  // namespace

void canon_swiglu_forward_cuda(const at::Tensor& gate_up, const CanonLayer& canon, at::Tensor& y) {
  cuda::with_type(gate_up, [&](auto type) {
    using T = decltype(type);
    cuda::canon_swiglu_forward(
        arguments<T>(gate_up, canon), cuda::write<T>(y), cuda::current_stream());
  });
}

void canon_swiglu_backward_cuda(const at::Tensor& gate_up,
                                const CanonLayer& canon,
                                const at::Tensor& grad_y,
                                at::Tensor& y,
                                at::Tensor& grad_gate_up,
                                at::Tensor& grad_canon) {
  const int taps = cuda::taps_of(canon);
  at::Tensor rows;
  cuda::with_type(gate_up, [&](auto type) {
    using T = decltype(type);
    const cuda::CanonSwiGlu<T> in = arguments<T>(gate_up, canon);
    if (taps > 0) {
      rows =
          cuda::rows_of_sums(gate_up, cuda::canon_swiglu_partial_rows(in), taps * gate_up.size(2));
    }
    cuda::canon_swiglu_backward(in,
                                cuda::read<T>(grad_y),
                                cuda::write<T>(y),
                                cuda::write<T>(grad_gate_up),
                                cuda::write<float>(rows),
                                cuda::current_stream());
  });
  if (taps > 0) grad_canon = cuda::sum_of_rows(rows).view(canon.weight.sizes());
}

}  // namespace forge::ops
