#include <cmath>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/simd.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

// Queries of a block: its scores (128 x 512 floats = 256 KiB) stay in a core's L2 cache.
constexpr int64_t block_queries = 128;

/// Scores of one block of queries: rows begin … end-1 against keys 0 … end-1. `scores` is [rows,
/// end]; entries above the diagonal become -inf.
at::Tensor block_scores(const at::Tensor& q, const at::Tensor& k, int64_t begin, int64_t end, double scale) {
  at::Tensor scores = at::mm(q.narrow(0, begin, end - begin), k.narrow(0, 0, end).t());
  scores.mul_(scale);
  at::Tensor diagonal = scores.narrow(1, begin, end - begin);
  diagonal.masked_fill_(at::ones_like(diagonal, at::kBool).triu_(1), -INFINITY);
  return scores;
}

/// p * (dp - delta[row]) * scale, in place of dp.
template <class T>
FORGE_INLINE void score_gradient_rows(const T* p, T* dp, const T* delta, int64_t rows, int64_t columns, T scale) {
  for (int64_t row = 0; row < rows; ++row) {
    const T shift = delta[row];
    for (int64_t c = row * columns; c < (row + 1) * columns; ++c) dp[c] = p[c] * (dp[c] - shift) * scale;
  }
}
FORGE_SIMD_CLONES void score_gradient(
    const float* p, float* dp, const float* delta, int64_t rows, int64_t columns, float scale) {
  score_gradient_rows(p, dp, delta, rows, columns, scale);
}
void score_gradient(
    const double* p, double* dp, const double* delta, int64_t rows, int64_t columns, double scale) {
  score_gradient_rows(p, dp, delta, rows, columns, scale);
}

/// Calls task(row of the batch, key-value head) for all pairs, on all threads; the matrix products
/// inside run on the calling thread alone.
template <class Task>
void for_each_head(const at::Tensor& k, const Task& task) {
  const int64_t heads = k.size(2);
  at::parallel_for(0, k.size(0) * heads, 1, [&](int64_t first, int64_t last) {
    const at::NoGradGuard no_grad;
    for (int64_t i = first; i < last; ++i) task(i / heads, i % heads);
  });
}

at::Tensor head_of(const at::Tensor& x, int64_t row, int64_t head) { return x.select(0, row).select(1, head); }

}  // namespace

void causal_attention_forward_cpu(
    const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, at::Tensor& out, at::Tensor& log_sum_exp) {
  const int64_t length = q.size(1);
  const int64_t group = q.size(2) / k.size(2);
  const double scale = 1 / std::sqrt(double(q.size(3)));
  for_each_head(k, [&](int64_t row, int64_t key_head) {
    const at::Tensor keys = head_of(k, row, key_head);
    const at::Tensor values = head_of(v, row, key_head);
    for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      const at::Tensor queries = head_of(q, row, head);
      at::Tensor head_out = head_of(out, row, head);
      at::Tensor head_lse = log_sum_exp.select(0, row).select(0, head);
      for (int64_t begin = 0; begin < length; begin += block_queries) {
        const int64_t end = std::min(begin + block_queries, length);
        at::Tensor scores = block_scores(queries, keys, begin, end, scale);
        const at::Tensor largest = std::get<0>(scores.max(1, true));
        scores.sub_(largest).exp_();
        const at::Tensor sums = scores.sum(1, true);
        head_lse.narrow(0, begin, end - begin).copy_((largest + sums.log()).squeeze(1));
        at::Tensor block_out = at::mm(scores, values.narrow(0, 0, end));
        head_out.narrow(0, begin, end - begin).copy_(block_out.div_(sums));
      }
    }
  });
}

void causal_attention_backward_cpu(const at::Tensor& q,
                                   const at::Tensor& k,
                                   const at::Tensor& v,
                                   const at::Tensor& out,
                                   const at::Tensor& log_sum_exp,
                                   const at::Tensor& grad_out,
                                   at::Tensor& grad_q,
                                   at::Tensor& grad_k,
                                   at::Tensor& grad_v) {
  const int64_t length = q.size(1);
  const int64_t group = q.size(2) / k.size(2);
  const double scale = 1 / std::sqrt(double(q.size(3)));
  for_each_head(k, [&](int64_t row, int64_t key_head) {
    const at::Tensor keys = head_of(k, row, key_head);
    const at::Tensor values = head_of(v, row, key_head);
    at::Tensor keys_grad = at::zeros({length, k.size(3)}, k.options());
    at::Tensor values_grad = at::zeros_like(keys_grad);
    for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      const at::Tensor queries = head_of(q, row, head);
      const at::Tensor head_grad = head_of(grad_out, row, head);
      const at::Tensor delta = (head_grad * head_of(out, row, head)).sum(1);
      for (int64_t begin = 0; begin < length; begin += block_queries) {
        const int64_t end = std::min(begin + block_queries, length);
        const int64_t rows = end - begin;
        at::Tensor p = block_scores(queries, keys, begin, end, scale);
        p.sub_(log_sum_exp.select(0, row).select(0, head).narrow(0, begin, rows).unsqueeze(1)).exp_();
        const at::Tensor block_grad = head_grad.narrow(0, begin, rows);
        values_grad.narrow(0, 0, end).addmm_(p.t(), block_grad);
        at::Tensor score_grad = at::mm(block_grad, values.narrow(0, 0, end).t());
        if (q.scalar_type() == at::kFloat) {
          score_gradient(p.data_ptr<float>(), score_grad.data_ptr<float>(),
                         delta.data_ptr<float>() + begin, rows, end, static_cast<float>(scale));
        } else {
          score_gradient(p.data_ptr<double>(), score_grad.data_ptr<double>(),
                         delta.data_ptr<double>() + begin, rows, end, scale);
        }
        head_of(grad_q, row, head).narrow(0, begin, rows).copy_(at::mm(score_grad, keys.narrow(0, 0, end)));
        keys_grad.narrow(0, 0, end).addmm_(score_grad.t(), queries.narrow(0, begin, rows));
      }
    }
    head_of(grad_k, row, key_head).copy_(keys_grad);
    head_of(grad_v, row, key_head).copy_(values_grad);
  });
}

}  // namespace forge::ops
