#pragma once

#include <ATen/core/Tensor.h>

namespace forge::ops {

/// A matrix of weights: what is trained, and what products read.
struct WeightMatrix {
  at::Tensor stored;   ///< [N, K], what has gradients
  at::Tensor rounded;  ///< the same in the products' type; undefined where that is the stored one

  WeightMatrix() = default;
  WeightMatrix(at::Tensor matrix) : stored(std::move(matrix)) {}  // NOLINT: a matrix is one
  WeightMatrix(at::Tensor matrix, at::Tensor in_products_type)
      : stored(std::move(matrix)), rounded(std::move(in_products_type)) {}

  bool defined() const { return stored.defined(); }
  const at::Tensor& operand() const { return rounded.defined() ? rounded : stored; }
  /// The operand for operations that Torch differentiates.
  at::Tensor differentiable() const;
};

/// The matrix with contiguous tensors.
WeightMatrix contiguous(const WeightMatrix& matrix);

/// Whether an operation computes its result. Where only the gradients of a result are wanted, its
/// numbers may be left unset: what the operation keeps for its backward pass is the same.
enum class Numbers { computed, unset };

/// y = x w^T [+ residual] for x [..., K] of the operand's type, w [N, K] and residual [..., N].
/// Returns [..., N]. Differentiable in all three. On a CPU the products go through gemm.h, on a GPU
/// through cuBLASLt; at::linear is the reference.
at::Tensor linear(const at::Tensor& x,
                  const WeightMatrix& w,
                  const at::Tensor& residual = {},
                  Numbers numbers = Numbers::computed);

/// Products of contiguous matrices on either device, each written in its tensor's type:
/// y = x w^T [+ residual], grad_x = grad_y w, grad_w = grad_y^T x with x [M, K], w [N, K], y,
/// grad_y and residual [M, N]. On a CPU of float, of double, or of bfloat16 operands into float.
void linear_forward(const at::Tensor& x,
                    const at::Tensor& w,
                    const at::Tensor& residual,
                    at::Tensor& y);
void linear_backward_x(const at::Tensor& grad_y, const at::Tensor& w, at::Tensor& grad_x);
void linear_backward_w(const at::Tensor& grad_y, const at::Tensor& x, at::Tensor& grad_w);

}  // namespace forge::ops
