#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/linear/linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

/// c = a b [+ c], a and b as they lie in memory or transposed.
template <class T>
void multiply(const at::Tensor& a,
              bool a_transposed,
              const at::Tensor& b,
              bool b_transposed,
              bool add,
              at::Tensor& c) {
  gemm(c.size(0),
       c.size(1),
       a.size(a_transposed ? 0 : 1),
       {a.data_ptr<T>(), a.size(1), a_transposed},
       {b.data_ptr<T>(), b.size(1), b_transposed},
       T(add ? 1 : 0),
       c.data_ptr<T>(),
       c.size(1));
}

/// c = a b, or c += a b.
void multiply_any(const at::Tensor& a,
                  bool a_transposed,
                  const at::Tensor& b,
                  bool b_transposed,
                  bool add,
                  at::Tensor& c) {
  if (c.numel() == 0) return;
  c.scalar_type() == at::kFloat ? multiply<float>(a, a_transposed, b, b_transposed, add, c)
                                : multiply<double>(a, a_transposed, b, b_transposed, add, c);
}

}  // namespace

void linear_forward_cpu(const at::Tensor& x,
                        const at::Tensor& w,
                        const at::Tensor& residual,
                        at::Tensor& y) {
  if (residual.defined()) y.copy_(residual);
  multiply_any(x, false, w, true, residual.defined(), y);
}

void linear_backward_x_cpu(const at::Tensor& grad_y, const at::Tensor& w, at::Tensor& grad_x) {
  multiply_any(grad_y, false, w, false, false, grad_x);
}

void linear_backward_w_cpu(const at::Tensor& grad_y, const at::Tensor& x, at::Tensor& grad_w) {
  multiply_any(grad_y, true, x, false, false, grad_w);
}

}  // namespace forge::ops
