#include <cmath>
#include <memory>
#include <type_traits>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/gemm.h"
#include "backends/libtorch/ops/common/simd.h"
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

/// From products q.k in `scores` [rows, columns], `p` (which may lie where they do) becomes
/// exponentials of their scaled values, of which the largest of a row is 1; inverse_sum [rows]
/// makes them a softmax. log_sum_exp [rows] is written.
template <class T, class E>
FORGE_INLINE void exponentials(
    const Block& block, T scale, const T* scores, E* p, T* inverse_sum, T* log_sum_exp) {
  for (int64_t row = 0; row < block.rows; ++row) {
    const T* s = scores + row * block.columns;
    E* out = p + row * block.columns;
    const int64_t from = block.from(row), to = block.to(row);
    T largest = s[from];
#pragma omp simd reduction(max : largest)
    for (int64_t c = from; c < to; ++c) largest = s[c] > largest ? s[c] : largest;
    const T shift = largest * scale;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = from; c < to; ++c) {
      const T e = fast_exp(s[c] * scale - shift);
      out[c] = rounded<E>(e);
      sum += e;
    }
    std::fill(out, out + from, E(0));
    std::fill(out + to, out + block.columns, E(0));
    inverse_sum[row] = 1 / sum;
    log_sum_exp[row] = shift + std::log(sum);
  }
}

/// What the backward pass works on for a block, each [rows, columns]. The last two may lie where
/// the first two do.
template <class T, class E>
struct BlockMemory {
  T *scores, *softmax_grad;
  E *softmax, *scores_grad;
};

/// From the products q.k and the gradient of the softmax: the softmax again, and the gradient of
/// the products, softmax * (softmax_grad - delta[row]) * scale.
template <class T, class E>
FORGE_INLINE void score_gradient(const Block& block,
                                 T scale,
                                 const T* log_sum_exp,
                                 const T* delta,
                                 const BlockMemory<T, E>& memory) {
  for (int64_t row = 0; row < block.rows; ++row) {
    const int64_t start = row * block.columns, from = block.from(row), to = block.to(row);
    const T *s = memory.scores + start, *g = memory.softmax_grad + start;
    E *p = memory.softmax + start, *ds = memory.scores_grad + start;
    const T shift = log_sum_exp[row], center = delta[row];
#pragma omp simd
    for (int64_t c = from; c < to; ++c) {
      const T e = fast_exp(s[c] * scale - shift);
      ds[c] = rounded<E>(e * (g[c] - center) * scale);
      p[c] = rounded<E>(e);
    }
    for (E* x : {p, ds}) {
      std::fill(x, x + from, E(0));
      std::fill(x + to, x + block.columns, E(0));
    }
  }
}

/// The vectors of one head of one row of the batch.
template <class T>
struct Head {
  T* data;
  int64_t stride;  ///< elements from token to token
  T* at(int64_t token) const { return data + token * stride; }
  /// The vectors from a token on as a matrix with a row for each.
  Operand<T> from(int64_t token) const { return {at(token), stride}; }
};

template <class T>
Head<T> head_of(const at::Tensor& x, int64_t row, int64_t head) {
  return {x.data_ptr<T>() + row * x.stride(0) + head * x.stride(2), x.stride(1)};
}

/// Of one row, where documents are kept apart.
const int32_t* first_of(const at::Tensor& first, int64_t row) {
  return first.defined() ? first.data_ptr<int32_t>() + row * first.size(1) : nullptr;
}

/// Memory for `size` sums that are written before they are read, and for as many of them as
/// operands: the same place where both have one type.
template <class T, class E>
class Scratch {
 public:
  explicit Scratch(int64_t size)
      : sums_(new T[size]), operands_(std::is_same_v<T, E> ? nullptr : new E[size]) {}
  T* sums() const { return sums_.get(); }
  E* operands() const {
    if constexpr (std::is_same_v<T, E>)
      return sums_.get();
    else
      return operands_.get();
  }

 private:
  std::unique_ptr<T[]> sums_;
  std::unique_ptr<E[]> operands_;
};

/// Calls task(row, head) for a part of the (row, head) pairs. Tasks of one call share a thread.
template <class MakeTask>
void for_each_head(int64_t batch, int64_t heads, const MakeTask& make_task) {
  at::parallel_for(0, batch * heads, 1, [&](int64_t begin, int64_t end) {
    const auto task = make_task();
    for (int64_t i = begin; i < end; ++i) task(i / heads, i % heads);
  });
}

/// One head's output and the logarithms of its queries' sums of exponentials.
template <class T, class E>
void forward_head(int64_t length,
                  int64_t width,
                  const int32_t* first,
                  const Head<E>& queries,
                  const Head<E>& keys,
                  const Head<E>& values,
                  const Scratch<T, E>& memory,
                  const Head<T>& mixed,
                  T* log_sum_exp) {
  const T scale = static_cast<T>(1 / std::sqrt(double(width)));
  for (int64_t begin = 0; begin < length; begin += block_queries) {
    const Block block = block_at(begin, length, first);
    const int64_t rows = block.rows, columns = block.columns, left = block.left;
    T* scores = memory.sums();
    E* p = memory.operands();
    T inverse_sum[block_queries];
    gemm(Product<T>{rows, columns, width, scores, columns},
         queries.from(begin),
         transposed(keys.from(left)));
    with_simd([&]() FORGE_SIMD_BODY {
      exponentials(block, scale, scores, p, inverse_sum, log_sum_exp + begin);
    });
    gemm(Product<T>{rows, width, columns, mixed.at(begin), mixed.stride},
         Operand<E>{p, columns},
         values.from(left));
    for (int64_t r = 0; r < rows; ++r) {
      T* o = mixed.at(begin + r);
      for (int64_t c = 0; c < width; ++c) o[c] *= inverse_sum[r];
    }
  }
}

/// delta[r] = output . gradient of the output, of query begin + r.
template <class T, class E>
FORGE_INLINE void output_dot_gradient(
    const Block& block, int64_t width, const Head<T>& mixed, const Head<E>& mixed_grad, T* delta) {
  for (int64_t r = 0; r < block.rows; ++r) {
    const T* o = mixed.at(block.begin + r);
    const E* g = mixed_grad.at(block.begin + r);
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t c = 0; c < width; ++c) sum += o[c] * static_cast<T>(g[c]);
    delta[r] = sum;
  }
}

template <class T>
struct Gradients {
  Head<T> queries, keys, values;
};

/// One head's gradients; those of keys and values are added.
template <class T, class E>
void backward_head(int64_t length,
                   int64_t width,
                   const int32_t* first,
                   const Head<E>& queries,
                   const Head<E>& keys,
                   const Head<E>& values,
                   const Head<T>& mixed,
                   const Head<E>& mixed_grad,
                   const T* log_sum_exp,
                   const Scratch<T, E>& scratch,
                   const Gradients<T>& grad) {
  const T scale = static_cast<T>(1 / std::sqrt(double(width)));
  const int64_t half = block_queries * length;
  const BlockMemory<T, E> memory{
      scratch.sums(), scratch.sums() + half, scratch.operands(), scratch.operands() + half};
  for (int64_t begin = 0; begin < length; begin += block_queries) {
    const Block block = block_at(begin, length, first);
    const int64_t rows = block.rows, columns = block.columns, left = block.left;
    T delta[block_queries];
    gemm(Product<T>{rows, columns, width, memory.scores, columns},
         queries.from(begin),
         transposed(keys.from(left)));
    gemm(Product<T>{rows, columns, width, memory.softmax_grad, columns},
         mixed_grad.from(begin),
         transposed(values.from(left)));
    with_simd([&]() FORGE_SIMD_BODY {
      output_dot_gradient(block, width, mixed, mixed_grad, delta);
      score_gradient(block, scale, log_sum_exp + begin, delta, memory);
    });
    const Operand<E> softmax{memory.softmax, columns}, scores_grad{memory.scores_grad, columns};
    gemm(Product<T>{columns, width, rows, grad.values.at(left), grad.values.stride, true},
         transposed(softmax),
         mixed_grad.from(begin));
    gemm(Product<T>{columns, width, rows, grad.keys.at(left), grad.keys.stride, true},
         transposed(scores_grad),
         queries.from(begin));
    gemm(Product<T>{rows, width, columns, grad.queries.at(begin), grad.queries.stride},
         scores_grad,
         keys.from(left));
  }
}

template <class T>
void clear(const Head<T>& head, int64_t length, int64_t width) {
  for (int64_t t = 0; t < length; ++t) std::fill(head.at(t), head.at(t) + width, T(0));
}

}  // namespace

void causal_attention_forward_cpu(const Heads& in,
                                  const at::Tensor& first,
                                  at::Tensor& out,
                                  at::Tensor& log_sum_exp) {
  const at::Tensor &q = in.q, &k = in.k, &v = in.v;
  const int64_t length = q.size(1), heads = q.size(2), width = q.size(3);
  const int64_t group = heads / k.size(2);
  with_operand_type(q.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using E = decltype(element);
    for_each_head(q.size(0), heads, [&] {
      const auto memory = std::make_shared<Scratch<T, E>>(block_queries * length);
      return [&, memory](int64_t row, int64_t head) {
        forward_head(length,
                     width,
                     first_of(first, row),
                     head_of<E>(q, row, head),
                     head_of<E>(k, row, head / group),
                     head_of<E>(v, row, head / group),
                     *memory,
                     head_of<T>(out, row, head),
                     log_sum_exp.data_ptr<T>() + (row * heads + head) * length);
      };
    });
  });
}

void causal_attention_backward_cpu(const Heads& in,
                                   const at::Tensor& first,
                                   const at::Tensor& out,
                                   const at::Tensor& log_sum_exp,
                                   const at::Tensor& grad_out,
                                   Heads& grad) {
  const at::Tensor &q = in.q, &k = in.k, &v = in.v;
  const int64_t length = q.size(1), heads = q.size(2), width = q.size(3);
  const int64_t group = heads / k.size(2);
  with_operand_type(q.scalar_type(), [&](auto number, auto element) {
    using T = decltype(number);
    using E = decltype(element);
    for_each_head(k.size(0), k.size(2), [&] {
      const auto memory = std::make_shared<Scratch<T, E>>(2 * block_queries * length);
      return [&, memory](int64_t row, int64_t key_head) {
        const Head<T> keys_grad = head_of<T>(grad.k, row, key_head);
        const Head<T> values_grad = head_of<T>(grad.v, row, key_head);
        clear(keys_grad, length, width);
        clear(values_grad, length, width);
        for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
          backward_head(length,
                        width,
                        first_of(first, row),
                        head_of<E>(q, row, head),
                        head_of<E>(k, row, key_head),
                        head_of<E>(v, row, key_head),
                        head_of<T>(out, row, head),
                        head_of<E>(grad_out, row, head),
                        log_sum_exp.data_ptr<T>() + (row * heads + head) * length,
                        *memory,
                        {head_of<T>(grad.q, row, head), keys_grad, values_grad});
        }
      };
    });
  });
}

}  // namespace forge::ops
