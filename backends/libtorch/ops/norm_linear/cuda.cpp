#include "backends/libtorch/ops/norm_linear/cuda.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"

namespace forge::ops {
namespace {

template <class T>
cuda::NormCanon<T> arguments(const at::Tensor& x,
                             const at::Tensor& norm_w,
                             const RmsNormOptions& norm,
                             const CanonLayer& canon) {
  return {cuda::sequences_of(x, canon),
          x.is_contiguous() ? x.size(2) : x.stride(1),
          cuda::taps_of(canon),
          canon.options.residual,
          norm.round_before_weight,
          static_cast<float>(norm.eps),
          cuda::read<T>(x),
          cuda::read<float>(norm_w),
          cuda::read<float>(canon.weight)};
}

}  // namespace

void norm_canon_forward_cuda(const at::Tensor& x,
                             const at::Tensor& norm_w,
                             const RmsNormOptions& norm,
                             const CanonLayer& canon,
                             at::Tensor& y,
                             at::Tensor& scales) {
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    cuda::norm_canon_forward(arguments<T>(x, norm_w, norm, canon),
                             cuda::write<T>(y),
                             cuda::write<float>(scales),
                             cuda::current_stream());
  });
}

void norm_canon_backward_cuda(const at::Tensor& x,
                              const at::Tensor& norm_w,
                              const RmsNormOptions& norm,
                              const CanonLayer& canon,
                              const at::Tensor& scales,
                              const at::Tensor& grad_y,
                              const at::Tensor& grad_residual,
                              at::Tensor& y,
                              at::Tensor& grad_x,
                              at::Tensor& grad_norm_w,
                              at::Tensor& grad_canon) {
  const int64_t channels = x.size(2), taps = cuda::taps_of(canon);
  // A row of sums is for both weights, so that one kernel adds them up.
  at::Tensor rows;
  cuda::with_type(x, [&](auto type) {
    using T = decltype(type);
    const cuda::NormCanon<T> in = arguments<T>(x, norm_w, norm, canon);
    rows = cuda::rows_of_sums(x, cuda::norm_canon_partial_rows(in), channels * (1 + taps));
    cuda::norm_canon_backward(in,
                              cuda::read<float>(scales),
                              cuda::read<T>(grad_y),
                              cuda::read<T>(grad_residual),
                              cuda::write<T>(y),
                              cuda::write<T>(grad_x),
                              cuda::write<float>(rows),
                              cuda::current_stream());
  });
  const at::Tensor sums = cuda::sum_of_rows(rows);
  grad_norm_w = sums.narrow(0, 0, channels);
  if (taps > 0) grad_canon = sums.narrow(0, channels, channels * taps).view(canon.weight.sizes());
}

}  // namespace forge::ops
