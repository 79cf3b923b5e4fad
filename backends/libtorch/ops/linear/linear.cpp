#include "backends/libtorch/ops/linear/linear.h"

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/gradient_memory.h"
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

/// Rows as the product reads them: on a GPU they may lie apart.
at::Tensor in_product(const at::Tensor& rows) { return rows.is_cuda() ? rows : rows.contiguous(); }

struct Linear : public torch::autograd::Function<Linear> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            const at::Tensor& rounded_w,
                            const at::Tensor& residual,
                            Numbers numbers) {
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    const at::Tensor read = as_operand(in_product(x), matrix.operand().scalar_type());
    // x itself may be a part of a tensor that is kept anyway.
    const bool same_type = x.scalar_type() == read.scalar_type();
    context->save_for_backward({same_type ? x : read, matrix.operand(), w});
    context->saved_data["adds"] = or_undefined(residual).defined();
    at::Tensor y = at::empty({x.size(0), w.size(0)}, x.options());
    if (numbers == Numbers::computed)
      linear_forward(read, matrix.operand(), or_undefined(residual), y);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor grad = grad_outputs[0].contiguous();
    const at::Tensor read = as_operand(grad, saved[1].scalar_type());
    at::Tensor grad_x = at::empty(saved[0].sizes(), grad.options());
    at::Tensor grad_w = empty_gradient(saved[2]);
    linear_backward_w(read, in_product(saved[0]), grad_w);
    linear_backward_x(read, saved[1], grad_x);
    const bool adds = context->saved_data["adds"].toBool();
    return {grad_x, grad_w, {}, adds ? grad : at::Tensor(), {}};
  }
};

/// The rounded copy as a function of the stored matrix, whose numbers it does not read: of several
/// processes each keeps those of its own part alone up to date.
struct Rounded : public torch::autograd::Function<Rounded> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& stored,
                            const at::Tensor& rounded) {
    context->saved_data["type"] = static_cast<int64_t>(stored.scalar_type());
    return rounded.clone();  // a result may be no input
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
    return {grad_outputs[0].to(type), {}};
  }
};

}  // namespace

at::Tensor WeightMatrix::differentiable() const {
  return rounded.defined() ? Rounded::apply(stored, rounded) : stored;
}

WeightMatrix contiguous(const WeightMatrix& matrix) {
  return {contiguous(matrix.stored), contiguous(matrix.rounded)};
}

at::Tensor linear(const at::Tensor& x,
                  const WeightMatrix& w,
                  const at::Tensor& residual,
                  Numbers numbers) {
  const at::Tensor& operand = w.operand();
  TORCH_CHECK(operand.dim() == 2 && x.dim() >= 1 && x.size(-1) == operand.size(1),
              "linear: x must be [..., ",
              operand.dim() == 2 ? operand.size(1) : -1,
              "], is ",
              x.sizes());
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = operand.size(0);
  TORCH_CHECK(!residual.defined() || residual.sizes() == at::IntArrayRef(shape),
              "linear: the residual must be ",
              at::IntArrayRef(shape),
              ", is ",
              residual.sizes());
  if (!has_product_kernel(x, operand.scalar_type())) {
    const at::Tensor y = at::linear(x, w.differentiable());
    return residual.defined() ? residual + y : y;
  }
  const int64_t rows = x.numel() / std::max<int64_t>(1, x.size(-1));
  const auto as_rows = [&](const at::Tensor& t) {
    return t.defined() ? t.contiguous().view({rows, t.size(-1)}) : t;
  };
  return Linear::apply(x.numel() > 0 ? rows_in_one_piece(x) : as_rows(x),
                       w.stored.contiguous(),
                       or_empty(w.rounded),
                       or_empty(as_rows(residual)),
                       numbers)
      .view(shape);
}

void linear_forward(const at::Tensor& x,
                    const at::Tensor& w,
                    const at::Tensor& residual,
                    at::Tensor& y) {
  if (x.is_cuda()) return gemm_cuda({x}, {w, true}, residual, y);
  if (residual.defined()) y.copy_(residual);
  multiply(x, false, w, true, residual.defined(), y);
}

void linear_backward_x(const at::Tensor& grad_y, const at::Tensor& w, at::Tensor& grad_x) {
  if (w.is_cuda()) return gemm_cuda({grad_y}, {w}, {}, grad_x);
  multiply(grad_y, false, w, false, false, grad_x);
}

void linear_backward_w(const at::Tensor& grad_y, const at::Tensor& x, at::Tensor& grad_w) {
  if (x.is_cuda()) return gemm_cuda({grad_y, true}, {x}, {}, grad_w);
  multiply(grad_y, true, x, false, false, grad_w);
}

}  // namespace forge::ops
