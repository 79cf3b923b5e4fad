#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

/// c = a b [+ c], a and b as they lie in memory or transposed.
void multiply(const at::Tensor& a,
              bool a_transposed,
              const at::Tensor& b,
              bool b_transposed,
              bool add,
              at::Tensor& c) {
  if (c.numel() == 0) return;
  with_operand_type(a.scalar_type(), [&](auto sum, auto element) {
    using T = decltype(sum);
    using E = decltype(element);
    gemm(
        Product<T>{
            c.size(0), c.size(1), a.size(a_transposed ? 0 : 1), c.data_ptr<T>(), c.size(1), add},
        Operand<E>{a.data_ptr<E>(), a.size(1), a_transposed},
        Operand<E>{b.data_ptr<E>(), b.size(1), b_transposed});
  });
}

}  // namespace

void linear_forward_cpu(const at::Tensor& x,
                        const at::Tensor& w,
                        const at::Tensor& residual,
                        at::Tensor& y) {
  if (residual.defined()) y.copy_(residual);
  multiply(x, false, w, true, residual.defined(), y);
}

void linear_backward_x_cpu(const at::Tensor& grad_y, const at::Tensor& w, at::Tensor& grad_x) {
  multiply(grad_y, false, w, false, false, grad_x);
}

void linear_backward_w_cpu(const at::Tensor& grad_y, const at::Tensor& x, at::Tensor& grad_w) {
  multiply(grad_y, true, x, false, false, grad_w);
}

}  // namespace forge::ops
