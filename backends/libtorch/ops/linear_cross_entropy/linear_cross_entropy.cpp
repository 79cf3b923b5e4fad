#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "backends/libtorch/ops/common/autograd.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/gradient_memory.h"
#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/model/cost.h"

namespace forge::ops {

at::Tensor linear_cross_entropy_reference(const at::Tensor& x,
                                          const WeightMatrix& w,
                                          const at::Tensor& targets,
                                          const CrossEntropyOptions& options) {
  return cross_entropy_reference(at::linear(x, w.differentiable()), targets, options);
}

namespace {

using ZLoss = CrossEntropyOptions::ZLoss;

/// The loss of a row as it is added up, and what its gradient's two parts are multiplied by.
template <class T>
struct RowLoss {
  T loss, p_scale, target_scale;
};

template <class T>
FORGE_INLINE RowLoss<T> row_loss(const CrossEntropyOptions& options, T log_sum_exp, T n) {
  const T c = static_cast<T>(options.coefficient);
  switch (options.z_loss) {
    case ZLoss::palm: return {n + c * log_sum_exp * log_sum_exp, 1 + 2 * c * log_sum_exp, 1};
    case ZLoss::lingua_code: return {n + c * n * n, 1 + 2 * c * n, 1 + 2 * c * n};
    case ZLoss::none: break;
  }
  return {n, 1, 1};
}

/// Losses and, where it has a place, the gradient of the logits are written. It may lie where the
/// logits do, and what stands in those afterwards does not matter. An unscored row gives zeros.
template <class T, class E>
FORGE_INLINE void loss_and_gradient(const CrossEntropyOptions& options,
                                    int64_t begin,
                                    int64_t end,
                                    int64_t width,
                                    T inverse_count,
                                    T* logits,
                                    const int32_t* targets,
                                    T* losses,
                                    E* gradient) {
  for (int64_t row = begin; row < end; ++row) {
    T* x = logits + row * width;
    E* grad = gradient ? gradient + row * width : nullptr;
    if (targets[row] == ignored_target) {
      losses[row] = 0;
      if (grad) std::fill(grad, grad + width, E(0));
      continue;
    }
    T largest = x[0];
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < width; ++i) largest = x[i] > largest ? x[i] : largest;
    const T of_target = x[targets[row]];
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) {
      x[i] = fast_exp(x[i] - largest);
      sum += x[i];
    }
    const T log_sum_exp = largest + std::log(sum);
    const RowLoss<T> result = row_loss(options, log_sum_exp, log_sum_exp - of_target);
    losses[row] = result.loss;
    if (!grad) continue;
    const T scale = result.p_scale * inverse_count / sum;
    const T at_target = x[targets[row]] * scale - result.target_scale * inverse_count;
#pragma omp simd
    for (int64_t i = 0; i < width; ++i) grad[i] = rounded<E>(x[i] * scale);
    grad[targets[row]] = rounded<E>(at_target);
  }
}

/// What the sum of the losses is divided by.
int64_t divisor(const at::Tensor& targets, const CrossEntropyOptions& options) {
  const at::Tensor& counted = options.counted(targets);
  if (options.z_loss == ZLoss::lingua_code) return counted.numel();
  // Where nothing is scored the loss is 0 and no weight has a gradient.
  return std::max<int64_t>(1, counted.ne(ignored_target).sum().item<int64_t>());
}

/// Losses of all rows, and the gradients of their sum divided by `count`, where those are defined.
/// The logits of some rows are in memory at once; their gradient is in the same place where both
/// have one type.
at::Tensor losses_and_gradients(const at::Tensor& x,
                                const at::Tensor& w,
                                const at::Tensor& targets,
                                const CrossEntropyOptions& options,
                                int64_t count,
                                at::Tensor& grad_x,
                                at::Tensor& grad_w) {
  const int64_t rows = x.size(0), channels = x.size(1), vocabulary = w.size(0);
  const at::ScalarType operands = x.scalar_type();
  const at::ScalarType sums = operands == at::kDouble ? at::kDouble : at::kFloat;
  const at::Tensor losses = at::empty({rows}, sums);
  const int64_t chunk_size = std::min(rows, model::loss_chunk_rows(vocabulary));
  const at::Tensor logits_memory = at::empty({chunk_size, vocabulary}, sums);
  at::Tensor gradient_memory;
  if (grad_x.defined() || grad_w.defined())
    gradient_memory = operands == sums ? logits_memory : at::empty_like(logits_memory, operands);
  if (grad_w.defined() && rows == 0) grad_w.zero_();
  with_operand_type(operands, [&](auto number, auto element) {
    using T = decltype(number);
    using E = decltype(element);
    T* logits = logits_memory.data_ptr<T>();
    E* gradient = gradient_memory.defined() ? gradient_memory.data_ptr<E>() : nullptr;
    const Operand<E> head{w.data_ptr<E>(), channels}, of_logits{gradient, vocabulary};
    const T inverse_count = T(1) / static_cast<T>(count);
    for (int64_t begin = 0; begin < rows; begin += chunk_size) {
      const int64_t chunk = std::min(chunk_size, rows - begin);
      const Operand<E> hidden{x.data_ptr<E>() + begin * channels, channels};
      gemm(Product<T>{chunk, vocabulary, channels, logits, vocabulary}, hidden, transposed(head));
      for_each_row_chunk(chunk, [&](int64_t, int64_t first, int64_t last) {
        with_simd([&]() FORGE_SIMD_BODY {
          loss_and_gradient(options,
                            first,
                            last,
                            vocabulary,
                            inverse_count,
                            logits,
                            targets.data_ptr<int32_t>() + begin,
                            losses.data_ptr<T>() + begin,
                            gradient);
        });
      });
      if (grad_x.defined()) {
        T* out = grad_x.data_ptr<T>() + begin * channels;
        gemm(Product<T>{chunk, channels, vocabulary, out, channels}, of_logits, head);
      }
      if (grad_w.defined()) {
        T* out = grad_w.data_ptr<T>();
        gemm(Product<T>{vocabulary, channels, chunk, out, channels, begin > 0},
             transposed(of_logits),
             hidden);
      }
    }
  });
  return losses;
}

/// The loss of contiguous tensors, float, double or, with float32 loss and gradients, bfloat16;
/// where grad_x and grad_w are defined they receive its gradients.
at::Tensor linear_cross_entropy_cpu(const at::Tensor& x,
                                    const at::Tensor& w,
                                    const at::Tensor& targets,
                                    const CrossEntropyOptions& options,
                                    at::Tensor& grad_x,
                                    at::Tensor& grad_w) {
  const int64_t count = divisor(targets, options);
  const at::Tensor losses = losses_and_gradients(x, w, targets, options, count, grad_x, grad_w);
  return (losses.sum(at::kDouble) / double(count)).to(losses.scalar_type());
}

at::Tensor linear_cross_entropy_losses_cpu(const at::Tensor& x,
                                           const at::Tensor& w,
                                           const at::Tensor& targets) {
  at::Tensor none_x, none_w;
  return losses_and_gradients(x, w, targets, {}, 1, none_x, none_w);
}

at::Tensor run_on_device(const at::Tensor& x,
                         const at::Tensor& w,
                         const at::Tensor& targets,
                         const CrossEntropyOptions& options,
                         at::Tensor& grad_x,
                         at::Tensor& grad_w) {
  const auto run = x.is_cuda() ? linear_cross_entropy_cuda : linear_cross_entropy_cpu;
  return run(as_operand(x, w.scalar_type()), w, targets, options, grad_x, grad_w);
}

/// The gradients are made in the forward pass, while a chunk's logits are at hand; the backward
/// pass only scales them, and mostly by one.
struct LinearCrossEntropy : public torch::autograd::Function<LinearCrossEntropy> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const at::Tensor& w,
                            const at::Tensor& rounded_w,
                            const at::Tensor& targets,
                            const CrossEntropyOptions& options) {
    at::Tensor grad_x = x.requires_grad() ? at::empty_like(x) : at::Tensor();
    at::Tensor grad_w = w.requires_grad() ? empty_gradient(w) : at::Tensor();
    const WeightMatrix matrix(w, or_undefined(rounded_w));
    const at::Tensor loss = run_on_device(x, matrix.operand(), targets, options, grad_x, grad_w);
    context->saved_data["grad_x"] = grad_x;
    context->saved_data["grad_w"] = grad_w;
    return loss;
  }

  static variable_list backward(AutogradContext* context, variable_list grad_outputs) {
    const at::Tensor& factor = grad_outputs[0];
    const bool one = factor.is_cpu() && factor.item<double>() == 1;
    const auto scaled = [&](const char* name) {
      at::Tensor grad = context->saved_data[name].toTensor();
      if (!grad.defined() || one) return grad;
      if (!grad.is_cuda()) return grad * factor;
      scale_unless_one_cuda(grad, factor);
      return grad;
    };
    variable_list grads = {scaled("grad_x"), scaled("grad_w"), {}, {}, {}};
    context->saved_data.clear();
    return grads;
  }
};

void check(const at::Tensor& x, const at::Tensor& w, const at::Tensor& targets) {
  TORCH_CHECK(x.dim() == 2 && w.dim() == 2 && x.size(1) == w.size(1),
              "linear_cross_entropy: x must be [rows, channels] and w [vocabulary, channels], are ",
              x.sizes(),
              " and ",
              w.sizes());
  check_targets(targets, x.size(0), w.size(0));
}

}  // namespace

at::Tensor linear_cross_entropy(const at::Tensor& x,
                                const WeightMatrix& matrix,
                                const at::Tensor& targets,
                                const CrossEntropyOptions& options) {
  const at::Tensor& w = matrix.operand();
  check(x, w, targets);
  if (!has_product_kernel(x, w.scalar_type()))
    return linear_cross_entropy_reference(x, matrix, targets, options);
  if (!at::GradMode::is_enabled()) {
    at::Tensor none_x, none_w;
    return run_on_device(
        x.contiguous(), w.contiguous(), targets.contiguous(), options, none_x, none_w);
  }
  return LinearCrossEntropy::apply(
      x.contiguous(),
      matrix.stored.contiguous(),
      or_empty(matrix.rounded),
      targets.contiguous(),
      CrossEntropyOptions{
          options.z_loss, options.coefficient, options.counted(targets).contiguous()});
}

at::Tensor linear_cross_entropy_losses(const at::Tensor& x,
                                       const WeightMatrix& matrix,
                                       const at::Tensor& targets) {
  const at::NoGradGuard no_grad;
  const at::Tensor& w = matrix.operand();
  check(x, w, targets);
  if (!has_product_kernel(x, w.scalar_type()))
    return negative_log_likelihoods(at::linear(x, matrix.differentiable()), targets);
  const auto run = x.is_cuda() ? linear_cross_entropy_losses_cuda : linear_cross_entropy_losses_cpu;
  return run(as_operand(x.contiguous(), w.scalar_type()), w.contiguous(), targets.contiguous());
}

}  // namespace forge::ops
