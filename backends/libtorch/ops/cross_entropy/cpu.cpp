#include <cmath>

#include "backends/libtorch/ops/common/element_type.h"
#include "backends/libtorch/ops/common/rows.h"
#include "backends/libtorch/ops/common/vector_math.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

template <class T>
FORGE_INLINE void forward_rows(int64_t begin,
                               int64_t end,
                               int64_t width,
                               const T* logits,
                               const int32_t* targets,
                               T* log_sum_exp,
                               T* row_loss) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = logits + row * width;
    T largest = x[0];
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < width; ++i) largest = x[i] > largest ? x[i] : largest;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += fast_exp(x[i] - largest);
    log_sum_exp[row] = largest + std::log(sum);
    const bool kept = targets[row] != ignored_target;
    row_loss[row] = kept ? log_sum_exp[row] - x[targets[row]] : T(0);
  }
}

template <class T>
FORGE_INLINE void backward_rows(int64_t begin,
                                int64_t end,
                                int64_t width,
                                const T* logits,
                                const int32_t* targets,
                                const T* log_sum_exp,
                                const T* p_scale,
                                const T* target_scale,
                                T* grad) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = logits + row * width;
    T* __restrict g = grad + row * width;
    const T lse = log_sum_exp[row], scale = p_scale[row];
    for (int64_t i = 0; i < width; ++i) g[i] = scale * fast_exp(x[i] - lse);
    if (targets[row] != ignored_target) g[targets[row]] -= target_scale[row];
  }
}

}  // namespace

void cross_entropy_forward_cpu(const at::Tensor& logits,
                               const at::Tensor& targets,
                               at::Tensor& log_sum_exp,
                               at::Tensor& row_loss) {
  with_element_type(logits.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for_each_row_chunk(logits.size(0), [&](int64_t, int64_t begin, int64_t end) {
      with_simd([&]() FORGE_SIMD_BODY {
        forward_rows(begin,
                     end,
                     logits.size(1),
                     logits.data_ptr<T>(),
                     targets.data_ptr<int32_t>(),
                     log_sum_exp.data_ptr<T>(),
                     row_loss.data_ptr<T>());
      });
    });
  });
}

void cross_entropy_backward_cpu(const at::Tensor& logits,
                                const at::Tensor& targets,
                                const at::Tensor& log_sum_exp,
                                const at::Tensor& p_scale,
                                const at::Tensor& target_scale,
                                at::Tensor& grad_logits) {
  with_element_type(logits.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for_each_row_chunk(logits.size(0), [&](int64_t, int64_t begin, int64_t end) {
      with_simd([&]() FORGE_SIMD_BODY {
        backward_rows(begin,
                      end,
                      logits.size(1),
                      logits.data_ptr<T>(),
                      targets.data_ptr<int32_t>(),
                      log_sum_exp.data_ptr<T>(),
                      p_scale.data_ptr<T>(),
                      target_scale.data_ptr<T>(),
                      grad_logits.data_ptr<T>());
      });
    });
  });
}

}  // namespace forge::ops
