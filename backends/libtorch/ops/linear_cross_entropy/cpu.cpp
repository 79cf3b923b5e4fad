#include <cmath>

#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/rows.h"
#include "backends/libtorch/ops/common/vector_math.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"
#include "core/model/arithmetic.h"

namespace forge::ops {
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

/// Logits become their gradient times `count`; losses are written. An unscored row gives zeros.
template <class T>
FORGE_INLINE void loss_and_gradient(const CrossEntropyOptions& options,
                                    int64_t begin,
                                    int64_t end,
                                    int64_t width,
                                    T inverse_count,
                                    T* logits,
                                    const int32_t* targets,
                                    T* losses) {
  for (int64_t row = begin; row < end; ++row) {
    T* __restrict x = logits + row * width;
    if (targets[row] == ignored_target) {
      losses[row] = 0;
      std::fill(x, x + width, T(0));
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
    const T scale = result.p_scale * inverse_count / sum;
    for (int64_t i = 0; i < width; ++i) x[i] *= scale;
    x[targets[row]] -= result.target_scale * inverse_count;
  }
}

/// Rows that the sum of the losses is divided by.
int64_t scored_rows(const at::Tensor& targets, const CrossEntropyOptions& options) {
  if (options.z_loss == ZLoss::lingua_code) return targets.size(0);
  return targets.ne(ignored_target).sum().item<int64_t>();
}

template <class T>
at::Tensor run(const at::Tensor& x,
               const at::Tensor& w,
               const at::Tensor& targets,
               const CrossEntropyOptions& options,
               at::Tensor& grad_x,
               at::Tensor& grad_w) {
  const int64_t rows = x.size(0), channels = x.size(1), vocabulary = w.size(0);
  const int64_t count = scored_rows(targets, options);
  const at::Tensor losses = at::empty({rows}, x.options());
  const at::Tensor logits =
      at::empty({std::min(rows, model::loss_rows_at_once(vocabulary)), vocabulary}, x.options());
  if (grad_w.defined() && rows == 0) grad_w.zero_();
  for (int64_t begin = 0; begin < rows; begin += logits.size(0)) {
    const int64_t chunk = std::min(logits.size(0), rows - begin);
    const T* in = x.data_ptr<T>() + begin * channels;
    T* values = logits.data_ptr<T>();
    const Operand<T> hidden{in, channels}, head{w.data_ptr<T>(), channels};
    gemm(
        chunk, vocabulary, channels, hidden, {head.data, channels, true}, T(0), values, vocabulary);
    for_each_row_chunk(chunk, [&](int64_t, int64_t first, int64_t last) {
      with_simd([&]() FORGE_SIMD_BODY {
        loss_and_gradient(options,
                          first,
                          last,
                          vocabulary,
                          T(1) / static_cast<T>(count),
                          values,
                          targets.data_ptr<int32_t>() + begin,
                          losses.data_ptr<T>() + begin);
      });
    });
    if (grad_x.defined()) {
      T* out = grad_x.data_ptr<T>() + begin * channels;
      gemm(chunk, channels, vocabulary, {values, vocabulary}, head, T(0), out, channels);
    }
    if (grad_w.defined()) {
      const T beta = begin == 0 ? 0 : 1;
      gemm(vocabulary,
           channels,
           chunk,
           {values, vocabulary, true},
           hidden,
           beta,
           grad_w.data_ptr<T>(),
           channels);
    }
  }
  return (losses.sum(at::kDouble) / double(count)).to(x.scalar_type());
}

}  // namespace

at::Tensor linear_cross_entropy_cpu(const at::Tensor& x,
                                    const at::Tensor& w,
                                    const at::Tensor& targets,
                                    const CrossEntropyOptions& options,
                                    at::Tensor& grad_x,
                                    at::Tensor& grad_w) {
  return x.scalar_type() == at::kFloat ? run<float>(x, w, targets, options, grad_x, grad_w)
                                       : run<double>(x, w, targets, options, grad_x, grad_w);
}

}  // namespace forge::ops
