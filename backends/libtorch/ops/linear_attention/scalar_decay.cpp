// A decay for a head as a whole, as in Mamba-2, whose heads share q and k. In a chunk, with b the
// sums of log decays from its first token to each, s the scale and V^ = diag(beta) V:
//     G = s Q K^T, once for all heads that share them;  D_ij = exp(b_i - b_j) for i >= j
//     O  = (G * D) V^ + s diag(exp b) Q S
//     S' = exp(b_n) S + (diag(exp(b_n - b)) K)^T V^

#include <vector>

#include "backends/libtorch/ops/linear_attention/cpu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops::recurrence {
namespace {

/// One chunk of one head.
template <class T>
struct ScalarChunk {
  ScalarDecay<T> decay;
  Rows<T> values;   ///< V^
  Rows<T> k_end;    ///< diag(exp(b_n - b)) K
  Rows<T> scores;   ///< G * D, zeros above the diagonal
  Rows<T> q_begin;  ///< s diag(exp b) Q

  static constexpr int64_t pieces = 4;
  static int64_t numbers(const Head<T>& head) {
    return chunk_tokens * (head.values + 2 * head.keys + chunk_tokens);
  }
  ScalarChunk(Memory<T>& memory, const Head<T>& head)
      : values(memory.matrix(chunk_tokens, head.values)),
        k_end(memory.matrix(chunk_tokens, head.keys)),
        scores(memory.matrix(chunk_tokens, chunk_tokens)),
        q_begin(memory.matrix(chunk_tokens, head.keys)) {}

  /// Everything but the scores.
  FORGE_INLINE void compute(const Head<T>& head, const Chunk& chunk) {
    decay.compute(head.log_decay, chunk);
    for (int64_t i = 0; i < chunk.tokens; ++i) {
      const int64_t t = chunk.begin + i;
      scaled(head.values, head.beta_of(t), head.v.at(t), values.at(i));
      scaled(head.keys, decay.to_end[i], head.k.at(t), k_end.at(i));
      scaled(head.keys, head.scale * decay.from_begin[i], head.q.at(t), q_begin.at(i));
    }
  }
  FORGE_INLINE void compute_scores(const Chunk& chunk, const Rows<T>& products) {
    for (int64_t i = 0; i < chunk.tokens; ++i) {
      T* row = scores.at(i);
      decay.since(i, i + 1, row);
      const T* product = products.at(i);
#pragma omp simd
      for (int64_t j = 0; j <= i; ++j) row[j] *= product[j];
    }
    zero_above_diagonal(chunk.tokens, scores);
  }
};

template <class T>
void update_scalar_state(const Head<T>& head,
                         const Chunk& chunk,
                         const ScalarChunk<T>& c,
                         T* state) {
  with_simd([&]() FORGE_SIMD_BODY { scaled(head.state_size(), c.decay.whole, state, state); });
  multiply({state, head.values},
           head.keys,
           head.values,
           chunk.tokens,
           c.k_end.transposed(),
           c.values.matrix(),
           true);
}

/// G of all chunks, one below another.
template <class T>
void compute_products(const Head<T>& head, const Rows<T>& products) {
  for (int64_t index = 0; index < head.chunks(); ++index) {
    const Chunk chunk = chunk_at(index, head.length);
    const int64_t n = chunk.tokens;
    const Rows<T> to = products.from(chunk.begin);
    multiply(to,
             n,
             n,
             head.keys,
             head.q.from(chunk.begin).matrix(),
             head.k.from(chunk.begin).transposed());
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t i = 0; i < n; ++i) scaled(n, head.scale, to.at(i), to.at(i));
    });
  }
}

/// What a chunk's backward pass writes besides.
template <class T>
struct ScalarGradients {
  Rows<T> scores;         ///< d(G * D), zeros above the diagonal
  Rows<T> q, k;           ///< through the states
  Rows<T> values;         ///< of V^
  T decay[chunk_tokens];  ///< of b

  static constexpr int64_t pieces = 4;
  static int64_t numbers(const Head<T>& head) {
    return chunk_tokens * (head.values + 2 * head.keys + chunk_tokens);
  }
  ScalarGradients(Memory<T>& memory, const Head<T>& head)
      : scores(memory.matrix(chunk_tokens, chunk_tokens)),
        q(memory.matrix(chunk_tokens, head.keys)),
        k(memory.matrix(chunk_tokens, head.keys)),
        values(memory.matrix(chunk_tokens, head.values)) {}
};

/// From d(G * D): dG is added to the sum over heads, and db starts with the sums of rows less those
/// of columns.
template <class T>
FORGE_INLINE void score_gradients(const Chunk& chunk,
                                  const ScalarChunk<T>& c,
                                  const Rows<T>& grad_products,
                                  ScalarGradients<T>& g) {
  std::fill(g.decay, g.decay + chunk.tokens, T(0));
  T factors[chunk_tokens];
  for (int64_t i = 0; i < chunk.tokens; ++i) {
    const T *grad = g.scores.at(i), *score = c.scores.at(i);
    T *sum = grad_products.at(i), *decay = g.decay;
    c.decay.since(i, i + 1, factors);
    T row = 0;
#pragma omp simd reduction(+ : row)
    for (int64_t j = 0; j <= i; ++j) {
      const T through_decay = grad[j] * score[j];
      sum[j] += grad[j] * factors[j];
      decay[j] -= through_decay;
      row += through_decay;
    }
    decay[i] += row;
  }
}

/// Adds what came through the states to the gradients of q and k, and writes those of v, beta and
/// the log decays. `end` is <S', dS'>.
template <class T>
FORGE_INLINE void write_scalar_gradients(const Head<T>& head,
                                         const Chunk& chunk,
                                         const ScalarChunk<T>& c,
                                         T end,
                                         const HeadGradients<T>& grad,
                                         ScalarGradients<T>& g) {
  for (int64_t i = 0; i < chunk.tokens; ++i) {
    const int64_t t = chunk.begin + i;
    const T of_q = head.scale * c.decay.from_begin[i], of_k = c.decay.to_end[i];
    const T *q = g.q.at(i), *k = g.k.at(i);
    T *sum_q = grad.q.at(t), *sum_k = grad.k.at(t);
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) {
      sum_q[d] += of_q * q[d];
      sum_k[d] += of_k * k[d];
    }
    g.decay[i] += of_q * dot(head.keys, head.q.at(t), q) - of_k * dot(head.keys, head.k.at(t), k);
    if (grad.beta.data) grad.beta.number(t) = dot(head.values, head.v.at(t), g.values.at(i));
    scaled(head.values, head.beta_of(t), g.values.at(i), grad.v.at(t));
  }
  sum_from_end(chunk, end, g.decay, grad.log_decay);
}

/// One head's backward pass. Adds to gradients of q, k and G.
template <class T>
void scalar_head_backward(const Head<T>& head,
                          const HeadGradients<T>& grad,
                          const Rows<T>& products,
                          const Rows<T>& grad_products) {
  const int64_t chunks = head.chunks(), size = head.state_size();
  using Factors = ScalarChunk<T>;
  using Gradients = ScalarGradients<T>;
  Memory<T> memory(Factors::numbers(head) + Gradients::numbers(head) + (chunks + 2) * size,
                   Factors::pieces + Gradients::pieces + 2);
  Factors c(memory, head);
  Gradients g(memory, head);
  const Rows<T> grad_state = memory.matrix(head.keys, head.values);
  T* states = memory.take((chunks + 1) * size);  // before each chunk and behind the last
  load_state(head, states);
  for (int64_t index = 0; index < chunks; ++index) {
    const Chunk chunk = chunk_at(index, head.length);
    T* next = states + (index + 1) * size;
    std::copy(states + index * size, next, next);
    with_simd([&]() FORGE_SIMD_BODY { c.compute(head, chunk); });
    update_scalar_state(head, chunk, c, next);
  }
  load_final_gradient(head, grad, grad_state.data);
  for (int64_t index = chunks - 1; index >= 0; --index) {
    const Chunk chunk = chunk_at(index, head.length);
    const int64_t n = chunk.tokens;
    const Rows<const T> before{states + index * size, head.values};
    const Rows<const T> upstream = grad.output.from(chunk.begin);
    with_simd([&]() FORGE_SIMD_BODY {
      c.compute(head, chunk);
      c.compute_scores(chunk, products.from(chunk.begin));
    });
    multiply(g.values, n, head.values, n, c.scores.transposed(), upstream.matrix());
    multiply(g.values, n, head.values, head.keys, c.k_end.matrix(), grad_state.matrix(), true);
    multiply(g.scores, n, n, head.values, upstream.matrix(), c.values.transposed());
    multiply(g.q, n, head.keys, head.values, upstream.matrix(), before.transposed());
    multiply(g.k, n, head.keys, head.values, c.values.matrix(), grad_state.transposed());
    with_simd([&]() FORGE_SIMD_BODY {
      const T end = dot(size, states + (index + 1) * size, grad_state.data);
      score_gradients(chunk, c, grad_products.from(chunk.begin), g);
      write_scalar_gradients(head, chunk, c, end, grad, g);
      scaled(size, c.decay.whole, grad_state.data, grad_state.data);
    });
    multiply(
        grad_state, head.keys, head.values, n, c.q_begin.transposed(), upstream.matrix(), true);
  }
  if (grad.state) std::copy(grad_state.data, grad_state.data + size, grad.state);
}

}  // namespace

template <class T>
void scalar_decay_forward(const Head<T>* heads, const HeadResults<T>* results, int64_t count) {
  const Head<T>& first = heads[0];
  Memory<T> memory(
      ScalarChunk<T>::numbers(first) + first.state_size() + first.length * chunk_tokens,
      ScalarChunk<T>::pieces + 2);
  ScalarChunk<T> c(memory, first);
  const Rows<T> state = memory.matrix(first.keys, first.values);
  const Rows<T> products = memory.matrix(first.length, chunk_tokens);
  compute_products(first, products);
  for (int64_t h = 0; h < count; ++h) {
    const Head<T>& head = heads[h];
    load_state(head, state.data);
    for (int64_t index = 0; index < head.chunks(); ++index) {
      const Chunk chunk = chunk_at(index, head.length);
      const int64_t n = chunk.tokens;
      with_simd([&]() FORGE_SIMD_BODY {
        c.compute(head, chunk);
        c.compute_scores(chunk, products.from(chunk.begin));
      });
      const Rows<T> out = results[h].output.from(chunk.begin);
      multiply(out, n, head.values, n, c.scores.matrix(), c.values.matrix());
      multiply(out, n, head.values, head.keys, c.q_begin.matrix(), state.matrix(), true);
      update_scalar_state(head, chunk, c, state.data);
    }
    if (results[h].state) std::copy(state.data, state.data + head.state_size(), results[h].state);
  }
}

template <class T>
void scalar_decay_backward(const Head<T>* heads, const HeadGradients<T>* grads, int64_t count) {
  const Head<T>& head = heads[0];
  const HeadGradients<T>& grad = grads[0];
  Memory<T> memory(2 * head.length * chunk_tokens, 2);
  const Rows<T> products = memory.matrix(head.length, chunk_tokens);
  const Rows<T> grad_products = memory.matrix(head.length, chunk_tokens);
  compute_products(head, products);
  std::fill(grad_products.data, grad_products.at(head.length), T(0));
  for (int64_t t = 0; t < head.length; ++t) {
    std::fill(grad.q.at(t), grad.q.at(t) + head.keys, T(0));
    std::fill(grad.k.at(t), grad.k.at(t) + head.keys, T(0));
  }
  for (int64_t h = 0; h < count; ++h)
    scalar_head_backward(heads[h], grads[h], products, grad_products);
  for (int64_t index = 0; index < head.chunks(); ++index) {
    const Chunk chunk = chunk_at(index, head.length);
    const int64_t n = chunk.tokens;
    const Rows<T> sum = grad_products.from(chunk.begin);
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t i = 0; i < n; ++i) scaled(n, head.scale, sum.at(i), sum.at(i));
    });
    const auto tokens = [&](const auto& rows) { return rows.from(chunk.begin); };
    multiply(tokens(grad.q), n, head.keys, n, sum.matrix(), tokens(head.k).matrix(), true);
    multiply(tokens(grad.k), n, head.keys, n, sum.transposed(), tokens(head.q).matrix(), true);
  }
}

template void scalar_decay_forward(const Head<float>*, const HeadResults<float>*, int64_t);
template void scalar_decay_forward(const Head<double>*, const HeadResults<double>*, int64_t);
template void scalar_decay_backward(const Head<float>*, const HeadGradients<float>*, int64_t);
template void scalar_decay_backward(const Head<double>*, const HeadGradients<double>*, int64_t);

}  // namespace forge::ops::recurrence
