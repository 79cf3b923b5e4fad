#include <cmath>
#include <memory>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/vector_math.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {
namespace {

// Queries of a block: what it wastes above the diagonal grows with it, what each matrix product
// costs to begin falls. Its scores (64 x 512 floats = 128 KiB) stay in a core's L2 cache.
constexpr int64_t block_queries = 64;

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

/// Products q.k in `scores` [rows, columns] become exponentials of their scaled values, of which
/// the largest of a row is 1; inverse_sum [rows] makes them a softmax. log_sum_exp [rows] is
/// written.
template <class T>
FORGE_INLINE void exponentials(
    const Block& block, T scale, T* scores, T* inverse_sum, T* log_sum_exp) {
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
    std::fill(s, s + from, T(0));
    std::fill(s + to, s + block.columns, T(0));
    inverse_sum[row] = 1 / sum;
    log_sum_exp[row] = shift + std::log(sum);
  }
}

/// From the products q.k in `p` and the gradient of the softmax in `grad`: p becomes the softmax
/// again, grad the gradient of the products, p * (grad - delta[row]) * scale.
template <class T>
FORGE_INLINE void score_gradient(
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

/// The vectors of one head of one row of the batch.
template <class T>
struct Head {
  T* data;
  int64_t stride;  ///< elements from token to token
  T* at(int64_t token) const { return data + token * stride; }
  /// The vectors from a token on as a matrix with a row for each.
  Operand<T> from(int64_t token) const { return {at(token), stride, false}; }
  Operand<T> transposed_from(int64_t token) const { return {at(token), stride, true}; }
};

template <class T>
Head<T> head_of(const at::Tensor& x, int64_t row, int64_t head) {
  return {x.data_ptr<T>() + row * x.stride(0) + head * x.stride(2), x.stride(1)};
}

/// Of one row, where documents are kept apart.
const int32_t* first_of(const at::Tensor& first, int64_t row) {
  return first.defined() ? first.data_ptr<int32_t>() + row * first.size(1) : nullptr;
}

/// Memory for numbers that are written before they are read.
template <class T>
std::unique_ptr<T[]> scratch(int64_t size) {
  return std::unique_ptr<T[]>(new T[size]);
}

/// Calls task(row, head) for a part of the (row, head) pairs. Tasks of one call share a thread.
template <class MakeTask>
void for_each_head(int64_t batch, int64_t heads, const MakeTask& make_task) {
  at::parallel_for(0, batch * heads, 1, [&](int64_t begin, int64_t end) {
    const auto task = make_task();
    for (int64_t i = begin; i < end; ++i) task(i / heads, i % heads);
  });
}

template <class T>
void forward(const at::Tensor& q,
             const at::Tensor& k,
             const at::Tensor& v,
             const at::Tensor& first,
             at::Tensor& out,
             at::Tensor& log_sum_exp) {
  const int64_t length = q.size(1), heads = q.size(2), width = q.size(3);
  const int64_t group = heads / k.size(2);
  const T scale = static_cast<T>(1 / std::sqrt(double(width)));
  for_each_head(q.size(0), heads, [&] {
    const std::shared_ptr<T[]> scores = scratch<T>(block_queries * length);
    return [&, scores](int64_t row, int64_t head) {
      const Head<T> queries = head_of<T>(q, row, head), mixed = head_of<T>(out, row, head);
      const Head<T> keys = head_of<T>(k, row, head / group);
      const Head<T> values = head_of<T>(v, row, head / group);
      T* head_lse = log_sum_exp.data_ptr<T>() + (row * heads + head) * length;
      for (int64_t begin = 0; begin < length; begin += block_queries) {
        const Block block = block_at(begin, length, first_of(first, row));
        T* s = scores.get();
        T inverse_sum[block_queries];
        gemm(block.rows,
             block.columns,
             width,
             queries.from(begin),
             keys.transposed_from(block.left),
             T(0),
             s,
             block.columns);
        with_simd([&]() FORGE_SIMD_BODY {
          exponentials(block, scale, s, inverse_sum, head_lse + begin);
        });
        gemm(block.rows,
             width,
             block.columns,
             {s, block.columns},
             values.from(block.left),
             T(0),
             mixed.at(begin),
             mixed.stride);
        for (int64_t r = 0; r < block.rows; ++r) {
          T* o = mixed.at(begin + r);
          for (int64_t c = 0; c < width; ++c) o[c] *= inverse_sum[r];
        }
      }
    };
  });
}

template <class T>
struct Gradients {
  Head<T> queries, keys, values;
};

/// One head's gradients; those of keys and values are added.
template <class T>
void backward_head(int64_t length,
                   int64_t width,
                   const int32_t* first,
                   const Head<T>& queries,
                   const Head<T>& keys,
                   const Head<T>& values,
                   const Head<T>& mixed,
                   const Head<T>& mixed_grad,
                   const T* log_sum_exp,
                   T* memory,
                   const Gradients<T>& grad) {
  const T scale = static_cast<T>(1 / std::sqrt(double(width)));
  for (int64_t begin = 0; begin < length; begin += block_queries) {
    const Block block = block_at(begin, length, first);
    const int64_t rows = block.rows, columns = block.columns, left = block.left;
    T *p = memory, *score_grad = memory + block_queries * length;
    T delta[block_queries];
    for (int64_t r = 0; r < rows; ++r) {
      const T *o = mixed.at(begin + r), *g = mixed_grad.at(begin + r);
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t c = 0; c < width; ++c) sum += o[c] * g[c];
      delta[r] = sum;
    }
    const Operand<T> p_transposed = {p, columns, true},
                     grad_transposed = {score_grad, columns, true};
    gemm(rows, columns, width, queries.from(begin), keys.transposed_from(left), T(0), p, columns);
    gemm(rows,
         columns,
         width,
         mixed_grad.from(begin),
         values.transposed_from(left),
         T(0),
         score_grad,
         columns);
    with_simd([&]() FORGE_SIMD_BODY {
      score_gradient(block, scale, log_sum_exp + begin, delta, p, score_grad);
    });
    gemm(columns,
         width,
         rows,
         p_transposed,
         mixed_grad.from(begin),
         T(1),
         grad.values.at(left),
         grad.values.stride);
    gemm(columns,
         width,
         rows,
         grad_transposed,
         queries.from(begin),
         T(1),
         grad.keys.at(left),
         grad.keys.stride);
    gemm(rows,
         width,
         columns,
         {score_grad, columns},
         keys.from(left),
         T(0),
         grad.queries.at(begin),
         grad.queries.stride);
  }
}

template <class T>
void clear(const Head<T>& head, int64_t length, int64_t width) {
  for (int64_t t = 0; t < length; ++t) std::fill(head.at(t), head.at(t) + width, T(0));
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
  const int64_t length = q.size(1), heads = q.size(2), width = q.size(3);
  const int64_t group = heads / k.size(2);
  for_each_head(k.size(0), k.size(2), [&] {
    const std::shared_ptr<T[]> memory = scratch<T>(2 * block_queries * length);
    return [&, memory](int64_t row, int64_t key_head) {
      const Head<T> keys_grad = head_of<T>(grad_k, row, key_head);
      const Head<T> values_grad = head_of<T>(grad_v, row, key_head);
      clear(keys_grad, length, width);
      clear(values_grad, length, width);
      for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
        backward_head(length,
                      width,
                      first_of(first, row),
                      head_of<T>(q, row, head),
                      head_of<T>(k, row, key_head),
                      head_of<T>(v, row, key_head),
                      head_of<T>(out, row, head),
                      head_of<T>(grad_out, row, head),
                      log_sum_exp.data_ptr<T>() + (row * heads + head) * length,
                      memory.get(),
                      {head_of<T>(grad_q, row, head), keys_grad, values_grad});
      }
    };
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
