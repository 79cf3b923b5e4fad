#include "backends/libtorch/ops/muon/muon.h"

#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

/// Divided by their norms, so that no singular value is above 1.
at::Tensor normalised(const at::Tensor& matrices) {
  const at::ScalarType wide = matrices.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor norms = at::linalg_vector_norm(matrices, 2, {-2, -1}, true, wide);
  return (matrices / (norms + 1e-7)).to(matrices.scalar_type());
}

/// The iterations on a matrix of the CPU. The smaller of X X^T and X^T X is what is squared.
template <class T>
at::Tensor iterated(at::Tensor x, const NewtonSchulz& k) {
  const int64_t rows = x.size(0), columns = x.size(1), small = std::min(rows, columns);
  const bool is_tall = rows > columns;
  at::Tensor square = at::empty({small, small}, x.options()), fourth = at::empty_like(square);
  at::Tensor product = at::empty_like(x);
  for (int step = 0; step < k.steps; ++step) {
    const Operand<T> own{x.template data_ptr<T>(), columns};
    const Product<T> to_square{
        small, small, std::max(rows, columns), square.template data_ptr<T>(), small};
    is_tall ? gemm(to_square, transposed(own), own) : gemm(to_square, own, transposed(own));
    const Operand<T> polynomial{square.template data_ptr<T>(), small};
    gemm(Product<T>{small, small, small, fourth.template data_ptr<T>(), small},
         polynomial,
         polynomial);
    square.mul_(k.b).add_(fourth, k.c);
    const Product<T> to_product{rows, columns, small, product.template data_ptr<T>(), columns};
    is_tall ? gemm(to_product, own, polynomial) : gemm(to_product, polynomial, own);
    x.mul_(k.a).add_(product);
  }
  return x;
}

}  // namespace

at::Tensor orthogonalised_reference(const at::Tensor& matrices, const NewtonSchulz& k) {
  const bool is_tall = matrices.size(-2) > matrices.size(-1);
  at::Tensor x = normalised(matrices.dim() == 2 ? matrices.unsqueeze(0) : matrices);
  for (int step = 0; step < k.steps; ++step) {
    const at::Tensor turned = x.transpose(1, 2);
    const at::Tensor square = is_tall ? at::bmm(turned, x) : at::bmm(x, turned);
    const at::Tensor polynomial = at::baddbmm(square, square, square, k.b, k.c);
    x = is_tall ? at::baddbmm(x, x, polynomial, k.a, 1) : at::baddbmm(x, polynomial, x, k.a, 1);
  }
  return matrices.dim() == 2 ? x[0] : x;
}

at::Tensor orthogonalised(const at::Tensor& matrices, const NewtonSchulz& iteration) {
  if (!has_cpu_kernel(matrices) || matrices.dim() != 2)
    return orthogonalised_reference(matrices, iteration);
  const at::Tensor x = normalised(matrices.contiguous());
  return x.scalar_type() == at::kFloat ? iterated<float>(x, iteration)
                                       : iterated<double>(x, iteration);
}

void muon_(at::Tensor& parameter,
           const at::Tensor& gradient,
           at::Tensor& momentum,
           const MuonStep& step) {
  TORCH_CHECK(parameter.dim() == 2 && gradient.sizes() == parameter.sizes() &&
                  momentum.sizes() == parameter.sizes(),
              "muon: parameter is ",
              parameter.sizes(),
              ", gradient ",
              gradient.sizes());
  momentum.mul_(step.momentum).add_(gradient, 1 - step.momentum);
  const at::Tensor ahead =
      step.nesterov ? (1 - step.momentum) * gradient + step.momentum * momentum : momentum;
  const at::Tensor update = orthogonalised(ahead, step.newton_schulz);
  parameter.mul_(1 - step.lr * step.weight_decay).add_(update, -step.lr * step.update_factor);
}

}  // namespace forge::ops
