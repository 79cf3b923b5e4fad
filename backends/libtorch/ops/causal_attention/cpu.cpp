#include <cmath>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/vector_math.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

// Queries of a block: its scores (128 x 512 floats = 256 KiB) stay in a core's L2 cache.
constexpr int64_t block_queries = 128;

/// A block of `rows` queries, the first of which is token `begin`, against `columns` keys, the
/// first of which is token `left`. Query begin + r sees the keys from the first of its document to
/// begin + r; the scores of the others become 0.
struct Block {
  int64_t begin, rows, left, columns;
  const int32_t* first;  ///< of each query: the first token of its document; null: 0 for all
  int64_t from(int64_t row) const { return first ? first[row] - left : 0; }
  int64_t to(int64_t row) const { return begin + row + 1 - left; }
};

/// The block of queries that begins at `begin`, with what all of them together see.
Block block_at(int64_t begin, int64_t length, const int32_t* first) {
  const int64_t end = std::min(begin + block_queries, length);
  // Documents follow one another, so the first query sees furthest back.
  const int64_t left = first ? first[begin] : 0;
  return {begin, end - begin, left, end - left, first ? first + begin : nullptr};
}

/// Products q.k in `scores` [rows, columns] become the softmax of their scaled values; log_sum_exp
/// [rows] is written.
template <class T>
FORGE_INLINE void softmax_rows(const Block& block, T scale, T* scores, T* log_sum_exp) {
  for (int64_t row = 0; row < block.rows; ++row) {
    T* s = scores + row * block.columns;
    const int64_t from = block.from(row), to = block.to(row);
    T largest = s[from];
#pragma omp simd reduction(max : largest)
    for (int64_t c = from; c < to; ++c) largest = s[c] > largest ? s[c] : largest;
    const T shift = largest * scale;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = from; c < to; ++c) {
      s[c] = fast_exp(s[c] * scale - shift);
      sum += s[c];
    }
    const T factor = 1 / sum;
    for (int64_t c = from; c < to; ++c) s[c] *= factor;
    std::fill(s, s + from, T(0));
    std::fill(s + to, s + block.columns, T(0));
    log_sum_exp[row] = shift + std::log(sum);
  }
}

/// From the products q.k in `p` and the gradient of the softmax in `grad`: p becomes the softmax
/// again, grad the gradient of the products, p * (grad - delta[row]) * scale.
template <class T>
FORGE_INLINE void score_gradient_rows(
    const Block& block, T scale, const T* log_sum_exp, const T* delta, T* p, T* grad) {
  for (int64_t row = 0; row < block.rows; ++row) {
    T* __restrict s = p + row * block.columns;
    T* __restrict g = grad + row * block.columns;
    const int64_t from = block.from(row), to = block.to(row);
    const T shift = log_sum_exp[row], center = delta[row];
    for (int64_t c = from; c < to; ++c) {
      s[c] = fast_exp(s[c] * scale - shift);
      g[c] = s[c] * (g[c] - center) * scale;
    }
    for (int64_t c = 0; c < from; ++c) s[c] = g[c] = 0;
    for (int64_t c = to; c < block.columns; ++c) s[c] = g[c] = 0;
  }
}

FORGE_SIMD_CLONES void softmax(const Block& block, float scale, float* scores, float* log_sum_exp) {
  softmax_rows(block, scale, scores, log_sum_exp);
}
void softmax(const Block& block, double scale, double* scores, double* log_sum_exp) {
  softmax_rows(block, scale, scores, log_sum_exp);
}
FORGE_SIMD_CLONES void score_gradient(const Block& block,
                                      float scale,
                                      const float* log_sum_exp,
                                      const float* delta,
                                      float* p,
                                      float* grad) {
  score_gradient_rows(block, scale, log_sum_exp, delta, p, grad);
}
void score_gradient(const Block& block,
                    double scale,
                    const double* log_sum_exp,
                    const double* delta,
                    double* p,
                    double* grad) {
  score_gradient_rows(block, scale, log_sum_exp, delta, p, grad);
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

at::Tensor head_of(const at::Tensor& x, int64_t row, int64_t head) {
  return x.select(0, row).select(1, head);
}

/// Of one row, where documents are kept apart.
const int32_t* first_of(const at::Tensor& first, int64_t row) {
  return first.defined() ? first.data_ptr<int32_t>() + row * first.size(1) : nullptr;
}

template <class T>
void forward(const at::Tensor& q,
             const at::Tensor& k,
             const at::Tensor& v,
             const at::Tensor& first,
             at::Tensor& out,
             at::Tensor& log_sum_exp) {
  const int64_t length = q.size(1);
  const int64_t group = q.size(2) / k.size(2);
  const T scale = static_cast<T>(1 / std::sqrt(double(q.size(3))));
  for_each_head(k, [&](int64_t row, int64_t key_head) {
    const at::Tensor keys = head_of(k, row, key_head);
    const at::Tensor values = head_of(v, row, key_head);
    for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      const at::Tensor queries = head_of(q, row, head);
      at::Tensor head_out = head_of(out, row, head);
      T* head_lse = log_sum_exp.data_ptr<T>() + (row * q.size(2) + head) * length;
      for (int64_t begin = 0; begin < length; begin += block_queries) {
        const Block block = block_at(begin, length, first_of(first, row));
        at::Tensor scores = at::mm(queries.narrow(0, begin, block.rows),
                                   keys.narrow(0, block.left, block.columns).t());
        softmax(block, scale, scores.data_ptr<T>(), head_lse + begin);
        at::Tensor block_out = head_out.narrow(0, begin, block.rows);
        at::mm_out(block_out, scores, values.narrow(0, block.left, block.columns));
      }
    }
  });
}

template <class T>
void backward(const at::Tensor& q,
              const at::Tensor& k,
              const at::Tensor& v,
              const at::Tensor& first,
              const at::Tensor& out,
              const at::Tensor& log_sum_exp,
              const at::Tensor& grad_out,
              at::Tensor& grad_q,
              at::Tensor& grad_k,
              at::Tensor& grad_v) {
  const int64_t length = q.size(1);
  const int64_t group = q.size(2) / k.size(2);
  const T scale = static_cast<T>(1 / std::sqrt(double(q.size(3))));
  for_each_head(k, [&](int64_t row, int64_t key_head) {
    const at::Tensor keys = head_of(k, row, key_head);
    const at::Tensor values = head_of(v, row, key_head);
    at::Tensor keys_grad = at::zeros({length, k.size(3)}, k.options());
    at::Tensor values_grad = at::zeros_like(keys_grad);
    for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      const at::Tensor queries = head_of(q, row, head);
      const at::Tensor head_grad = head_of(grad_out, row, head);
      at::Tensor queries_grad = head_of(grad_q, row, head);
      const at::Tensor delta = (head_grad * head_of(out, row, head)).sum(1);
      const T* head_lse = log_sum_exp.data_ptr<T>() + (row * q.size(2) + head) * length;
      for (int64_t begin = 0; begin < length; begin += block_queries) {
        const Block block = block_at(begin, length, first_of(first, row));
        const at::Tensor seen_keys = keys.narrow(0, block.left, block.columns);
        const at::Tensor own_queries = queries.narrow(0, begin, block.rows);
        const at::Tensor block_grad = head_grad.narrow(0, begin, block.rows);
        at::Tensor p = at::mm(own_queries, seen_keys.t());
        at::Tensor score_grad = at::mm(block_grad, values.narrow(0, block.left, block.columns).t());
        score_gradient(block,
                       scale,
                       head_lse + begin,
                       delta.data_ptr<T>() + begin,
                       p.data_ptr<T>(),
                       score_grad.data_ptr<T>());
        values_grad.narrow(0, block.left, block.columns).addmm_(p.t(), block_grad);
        keys_grad.narrow(0, block.left, block.columns).addmm_(score_grad.t(), own_queries);
        at::Tensor grad_of_queries = queries_grad.narrow(0, begin, block.rows);
        at::mm_out(grad_of_queries, score_grad, seen_keys);
      }
    }
    head_of(grad_k, row, key_head).copy_(keys_grad);
    head_of(grad_v, row, key_head).copy_(values_grad);
  });
}

}  // namespace

void causal_attention_forward_cpu(const at::Tensor& q,
                                  const at::Tensor& k,
                                  const at::Tensor& v,
                                  const at::Tensor& first,
                                  at::Tensor& out,
                                  at::Tensor& log_sum_exp) {
  q.scalar_type() == at::kFloat ? forward<float>(q, k, v, first, out, log_sum_exp)
                                : forward<double>(q, k, v, first, out, log_sum_exp);
}

void causal_attention_backward_cpu(const at::Tensor& q,
                                   const at::Tensor& k,
                                   const at::Tensor& v,
                                   const at::Tensor& first,
                                   const at::Tensor& out,
                                   const at::Tensor& log_sum_exp,
                                   const at::Tensor& grad_out,
                                   at::Tensor& grad_q,
                                   at::Tensor& grad_k,
                                   at::Tensor& grad_v) {
  q.scalar_type() == at::kFloat
      ? backward<float>(q, k, v, first, out, log_sum_exp, grad_out, grad_q, grad_k, grad_v)
      : backward<double>(q, k, v, first, out, log_sum_exp, grad_out, grad_q, grad_k, grad_v);
}

}  // namespace forge::ops
