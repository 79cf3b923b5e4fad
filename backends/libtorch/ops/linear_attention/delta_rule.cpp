// A decay for a head as a whole and the delta rule, as in gated delta networks. In a chunk, with b
// the sums of log decays from its first token to each, s the scale and e = exp(b):
//     M  = stril(K K^T * D), D_ij = exp(b_i - b_j);  P = s tril(Q K^T * D)
//     (I + diag(beta) M) U = R = diag(beta) (V - diag(e) K S)      U: what the tokens write
//     O  = s diag(e) Q S + P U
//     S' = exp(b_n) S + (diag(exp(b_n - b)) K)^T U
// The system is unit lower triangular and solved as it stands; the backward pass solves its
// transpose.

#include "backends/libtorch/ops/linear_attention/cpu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops::recurrence {
namespace {

/// Columns of the right-hand side that a triangular solve works on at a time.
constexpr int64_t strip_columns = 64;

/// x_i -= sum over earlier j of L_ij x_j, row after row, for `width` columns; L is strictly lower.
template <class T>
FORGE_INLINE void solve_strip(
    int64_t n, int64_t width, const Rows<T>& lower, const Rows<T>& x, int64_t column) {
  for (int64_t i = 1; i < n; ++i) {
    T* row = x.at(i) + column;
    T sum[strip_columns];
    std::copy(row, row + width, sum);
    for (int64_t j = 0; j < i; ++j) {
      const T factor = lower.at(i)[j];
      const T* earlier = x.at(j) + column;
      for (int64_t c = 0; c < width; ++c) sum[c] -= factor * earlier[c];
    }
    std::copy(sum, sum + width, row);
  }
}

/// The same with the transpose of L, from the last row on.
template <class T>
FORGE_INLINE void solve_transposed_strip(
    int64_t n, int64_t width, const Rows<T>& lower, const Rows<T>& x, int64_t column) {
  for (int64_t i = n - 2; i >= 0; --i) {
    T* row = x.at(i) + column;
    T sum[strip_columns];
    std::copy(row, row + width, sum);
    for (int64_t j = i + 1; j < n; ++j) {
      const T factor = lower.at(j)[i];
      const T* later = x.at(j) + column;
      for (int64_t c = 0; c < width; ++c) sum[c] -= factor * later[c];
    }
    std::copy(sum, sum + width, row);
  }
}

/// X becomes (I + L)^-1 X, or that of the transpose. L and X have n rows, X `columns` columns.
template <bool transposed, class T>
FORGE_INLINE void solve(int64_t n, int64_t columns, const Rows<T>& lower, const Rows<T>& x) {
  const auto strip = [&](int64_t width, int64_t column) FORGE_SIMD_BODY {
    if (transposed) {
      solve_transposed_strip(n, width, lower, x, column);
    } else {
      solve_strip(n, width, lower, x, column);
    }
  };
  int64_t column = 0;
  // A constant width, so that the sums stay in registers.
  for (; column + strip_columns <= columns; column += strip_columns) strip(strip_columns, column);
  if (column < columns) strip(columns - column, column);
}

/// What is computed of a chunk and kept until its backward pass.
template <class T>
struct DeltaChunk {
  Rows<T> writes;   ///< U
  Rows<T> overlap;  ///< M, zeros from the diagonal on

  static int64_t numbers(const Head<T>& head) {
    return chunk_tokens * (head.values + chunk_tokens);
  }
};

/// What is computed of a chunk and not kept.
template <class T>
struct DeltaWork {
  ScalarDecay<T> decay;
  Rows<T> lower;   ///< diag(beta) M
  Rows<T> scores;  ///< P, zeros above the diagonal
  Rows<T> k_end;   ///< diag(exp(b_n - b)) K
  Rows<T> read;    ///< K S

  static constexpr int64_t pieces = 4;
  static int64_t numbers(const Head<T>& head) {
    return chunk_tokens * (2 * chunk_tokens + head.keys + head.values);
  }
  DeltaWork(Memory<T>& memory, const Head<T>& head)
      : lower(memory.matrix(chunk_tokens, chunk_tokens)),
        scores(memory.matrix(chunk_tokens, chunk_tokens)),
        k_end(memory.matrix(chunk_tokens, head.keys)),
        read(memory.matrix(chunk_tokens, head.values)) {}
};

/// Rows i of products of vectors become 0 from column i + `more` on and are multiplied by D and a
/// factor before it.
template <class T>
FORGE_INLINE void fade_products(const Chunk& chunk,
                                const ScalarDecay<T>& decay,
                                int64_t more,
                                T factor,
                                const Rows<T>& matrix) {
  T factors[chunk_tokens];
  for (int64_t i = 0; i < chunk.tokens; ++i) {
    T* row = matrix.at(i);
    decay.since(i, i + more, factors);
#pragma omp simd
    for (int64_t j = 0; j < i + more; ++j) row[j] *= factor * factors[j];
    std::fill(row + i + more, row + chunk.tokens, T(0));
  }
}

template <class T>
FORGE_INLINE void compute_lower(const Head<T>& head,
                                const Chunk& chunk,
                                const Rows<T>& overlap,
                                const Rows<T>& lower) {
  for (int64_t i = 0; i < chunk.tokens; ++i)
    scaled(chunk.tokens, head.beta_of(chunk.begin + i), overlap.at(i), lower.at(i));
}

/// U and M of a chunk, K S and k_end.
template <class T>
void compute_writes(const Head<T>& head,
                    const Chunk& chunk,
                    const T* state,
                    DeltaWork<T>& work,
                    const DeltaChunk<T>& c) {
  const int64_t n = chunk.tokens;
  const Rows<const T> k = head.k.from(chunk.begin), v = head.v.from(chunk.begin);
  multiply(c.overlap, n, n, head.keys, k.matrix(), k.transposed());
  multiply(work.read, n, head.values, head.keys, k.matrix(), head.matrix(state).matrix());
  with_simd([&]() FORGE_SIMD_BODY {
    work.decay.compute(head.log_decay, chunk);
    fade_products(chunk, work.decay, 0, T(1), c.overlap);
    compute_lower(head, chunk, c.overlap, work.lower);
    for (int64_t i = 0; i < n; ++i) {
      const T beta = head.beta_of(chunk.begin + i), fade = work.decay.from_begin[i];
      const T *value = v.at(i), *read = work.read.at(i);
      T* write = c.writes.at(i);
#pragma omp simd
      for (int64_t d = 0; d < head.values; ++d) write[d] = beta * (value[d] - fade * read[d]);
      scaled(head.keys, work.decay.to_end[i], k.at(i), work.k_end.at(i));
    }
    solve<false>(n, head.values, work.lower, c.writes);
  });
}

/// S' = exp(b_n) S + k_end^T U
template <class T>
void update_delta_state(const Head<T>& head,
                        const Chunk& chunk,
                        const DeltaWork<T>& work,
                        const Rows<T>& writes,
                        T* state) {
  with_simd([&]() FORGE_SIMD_BODY { scaled(head.state_size(), work.decay.whole, state, state); });
  multiply({state, head.values},
           head.keys,
           head.values,
           chunk.tokens,
           work.k_end.transposed(),
           writes.matrix(),
           true);
}

template <class T>
void compute_delta_scores(const Head<T>& head, const Chunk& chunk, const DeltaWork<T>& work) {
  const Rows<const T> q = head.q.from(chunk.begin), k = head.k.from(chunk.begin);
  multiply(work.scores, chunk.tokens, chunk.tokens, head.keys, q.matrix(), k.transposed());
  with_simd([&]()
                FORGE_SIMD_BODY { fade_products(chunk, work.decay, 1, head.scale, work.scores); });
}

/// What a chunk's backward pass writes besides.
template <class T>
struct DeltaGradients {
  Rows<T> writes;           ///< dU, then dR
  Rows<T> read;             ///< dX = -diag(beta e) dR
  Rows<T> faded_writes;     ///< diag(exp(b_n - b)) U
  Rows<T> scores;           ///< dP, then s dP * D
  Rows<T> lower;            ///< dL, then dG
  Rows<T> k_plus, k_minus;  ///< of k, by their sign in the gradient of b

  static constexpr int64_t pieces = 7;
  static int64_t numbers(const Head<T>& head) {
    return chunk_tokens * (3 * head.values + 2 * chunk_tokens + 2 * head.keys);
  }
  DeltaGradients(Memory<T>& memory, const Head<T>& head)
      : writes(memory.matrix(chunk_tokens, head.values)),
        read(memory.matrix(chunk_tokens, head.values)),
        faded_writes(memory.matrix(chunk_tokens, head.values)),
        scores(memory.matrix(chunk_tokens, chunk_tokens)),
        lower(memory.matrix(chunk_tokens, chunk_tokens)),
        k_plus(memory.matrix(chunk_tokens, head.keys)),
        k_minus(memory.matrix(chunk_tokens, head.keys)) {}
};

/// dU, through the system dR; from it the gradients of v, of K S, and beta's first part.
template <class T>
void write_gradients_of_writes(const Head<T>& head,
                               const Chunk& chunk,
                               const DeltaWork<T>& work,
                               const DeltaChunk<T>& c,
                               const HeadGradients<T>& grad,
                               const Rows<T>& grad_state,
                               const DeltaGradients<T>& g) {
  const int64_t n = chunk.tokens, values = head.values;
  const Rows<const T> upstream = grad.output.from(chunk.begin);
  multiply(g.writes, n, values, n, work.scores.transposed(), upstream.matrix());
  multiply(g.writes, n, values, head.keys, work.k_end.matrix(), grad_state.matrix(), true);
  with_simd([&]() FORGE_SIMD_BODY {
    solve<true>(n, values, work.lower, g.writes);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t t = chunk.begin + i;
      const T beta = head.beta_of(t), fade = work.decay.from_begin[i];
      const T *of_write = g.writes.at(i), *v = head.v.at(t), *read = work.read.at(i);
      T *of_v = grad.v.at(t), *of_read = g.read.at(i), of_beta = 0;
#pragma omp simd reduction(+ : of_beta)
      for (int64_t d = 0; d < values; ++d) {
        of_v[d] = beta * of_write[d];
        of_read[d] = -beta * fade * of_write[d];
        of_beta += of_write[d] * (v[d] - fade * read[d]);
      }
      grad.beta.number(t) = of_beta;
      scaled(values, work.decay.to_end[i], c.writes.at(i), g.faded_writes.at(i));
    }
  });
}

/// From dP and -dL, both products of vectors: s dP * D and dG, and beta's second part.
template <class T>
FORGE_INLINE void fade_gradients(const Head<T>& head,
                                 const Chunk& chunk,
                                 const DeltaWork<T>& work,
                                 const DeltaChunk<T>& c,
                                 const HeadGradients<T>& grad,
                                 const DeltaGradients<T>& g) {
  fade_products(chunk, work.decay, 1, head.scale, g.scores);
  for (int64_t i = 0; i < chunk.tokens; ++i)
    grad.beta.number(chunk.begin + i) -= dot(i, g.lower.at(i), c.overlap.at(i));
  fade_products(chunk, work.decay, 0, T(-1), g.lower);
  for (int64_t i = 0; i < chunk.tokens; ++i)
    scaled(i, head.beta_of(chunk.begin + i), g.lower.at(i), g.lower.at(i));
}

/// The gradients of q and k and, from what carries them, of the log decays.
template <class T>
void write_delta_gradients(const Head<T>& head,
                           const Chunk& chunk,
                           const DeltaWork<T>& work,
                           const Rows<const T>& before,
                           T end,
                           const HeadGradients<T>& grad,
                           const Rows<T>& grad_state,
                           const DeltaGradients<T>& g) {
  const int64_t n = chunk.tokens, keys = head.keys, values = head.values;
  const Rows<const T> q = head.q.from(chunk.begin), k = head.k.from(chunk.begin);
  const Rows<T> grad_q = grad.q.from(chunk.begin), grad_k = grad.k.from(chunk.begin);
  const Rows<const T> upstream = grad.output.from(chunk.begin);
  multiply(grad_q, n, keys, values, upstream.matrix(), before.transposed());
  with_simd([&]() FORGE_SIMD_BODY {
    for (int64_t i = 0; i < n; ++i)
      scaled(keys, head.scale * work.decay.from_begin[i], grad_q.at(i), grad_q.at(i));
  });
  multiply(grad_q, n, keys, n, g.scores.matrix(), k.matrix(), true);
  multiply(g.k_plus, n, keys, values, g.read.matrix(), before.transposed());
  multiply(g.k_plus, n, keys, n, g.lower.matrix(), k.matrix(), true);
  multiply(g.k_minus, n, keys, n, g.scores.transposed(), q.matrix());
  multiply(g.k_minus, n, keys, values, g.faded_writes.matrix(), grad_state.transposed(), true);
  multiply(g.k_minus, n, keys, n, g.lower.transposed(), k.matrix(), true);
  with_simd([&]() FORGE_SIMD_BODY {
    T of_sums[chunk_tokens];
    for (int64_t i = 0; i < n; ++i) {
      const T *plus = g.k_plus.at(i), *minus = g.k_minus.at(i), *query = q.at(i), *key = k.at(i);
      const T* of_query = grad_q.at(i);
      T *of_key = grad_k.at(i), sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t d = 0; d < keys; ++d) {
        of_key[d] = plus[d] + minus[d];
        sum += query[d] * of_query[d] + key[d] * (plus[d] - minus[d]);
      }
      of_sums[i] = sum;
    }
    sum_from_end(chunk, end, of_sums, grad.log_decay);
  });
}

}  // namespace

template <class T>
void delta_rule_forward(const Head<T>& head, const HeadResults<T>& results) {
  Memory<T> memory(DeltaWork<T>::numbers(head) + DeltaChunk<T>::numbers(head) + head.state_size(),
                   DeltaWork<T>::pieces + 3);
  DeltaWork<T> work(memory, head);
  const DeltaChunk<T> c{memory.matrix(chunk_tokens, head.values),
                        memory.matrix(chunk_tokens, chunk_tokens)};
  const Rows<T> state = memory.matrix(head.keys, head.values);
  load_state(head, state.data);
  for (int64_t index = 0; index < head.chunks(); ++index) {
    const Chunk chunk = chunk_at(index, head.length);
    const int64_t n = chunk.tokens;
    compute_writes(head, chunk, state.data, work, c);
    compute_delta_scores(head, chunk, work);
    const Rows<T> out = results.output.from(chunk.begin);
    multiply(out, n, head.values, head.keys, head.q.from(chunk.begin).matrix(), state.matrix());
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t i = 0; i < n; ++i)
        scaled(head.values, head.scale * work.decay.from_begin[i], out.at(i), out.at(i));
    });
    multiply(out, n, head.values, n, work.scores.matrix(), c.writes.matrix(), true);
    update_delta_state(head, chunk, work, c.writes, state.data);
  }
  if (results.state) std::copy(state.data, state.data + head.state_size(), results.state);
}

template <class T>
void delta_rule_backward(const Head<T>& head, const HeadGradients<T>& grad) {
  const int64_t chunks = head.chunks(), size = head.state_size();
  Memory<T> memory(DeltaWork<T>::numbers(head) + DeltaGradients<T>::numbers(head) +
                       chunks * DeltaChunk<T>::numbers(head) + (chunks + 2) * size,
                   DeltaWork<T>::pieces + DeltaGradients<T>::pieces + 4);
  DeltaWork<T> work(memory, head);
  const DeltaGradients<T> g(memory, head);
  const Rows<T> grad_state = memory.matrix(head.keys, head.values);
  T* states = memory.take((chunks + 1) * size);  // before each chunk and behind the last
  const Rows<T> writes = memory.matrix(chunks * chunk_tokens, head.values);
  const Rows<T> overlaps = memory.matrix(chunks * chunk_tokens, chunk_tokens);
  const auto kept = [&](const Chunk& chunk) {
    return DeltaChunk<T>{writes.from(chunk.begin), overlaps.from(chunk.begin)};
  };
  load_state(head, states);
  for (int64_t index = 0; index < chunks; ++index) {
    const Chunk chunk = chunk_at(index, head.length);
    const T* state = states + index * size;
    T* next = states + (index + 1) * size;
    compute_writes(head, chunk, state, work, kept(chunk));
    std::copy(state, state + size, next);
    update_delta_state(head, chunk, work, kept(chunk).writes, next);
  }
  load_final_gradient(head, grad, grad_state.data);
  for (int64_t index = chunks - 1; index >= 0; --index) {
    const Chunk chunk = chunk_at(index, head.length);
    const int64_t n = chunk.tokens;
    const DeltaChunk<T> c = kept(chunk);
    const Rows<const T> before = head.matrix(states + index * size);
    const Rows<const T> upstream = grad.output.from(chunk.begin);
    const Rows<const T> q = head.q.from(chunk.begin), k = head.k.from(chunk.begin);
    multiply(work.read, n, head.values, head.keys, k.matrix(), before.matrix());
    with_simd([&]() FORGE_SIMD_BODY {
      work.decay.compute(head.log_decay, chunk);
      compute_lower(head, chunk, c.overlap, work.lower);
      for (int64_t i = 0; i < n; ++i)
        scaled(head.keys, work.decay.to_end[i], k.at(i), work.k_end.at(i));
    });
    compute_delta_scores(head, chunk, work);
    write_gradients_of_writes(head, chunk, work, c, grad, grad_state, g);
    multiply(g.scores, n, n, head.values, upstream.matrix(), c.writes.transposed());
    multiply(g.lower, n, n, head.values, g.writes.matrix(), c.writes.transposed());
    T end = 0;
    with_simd([&]() FORGE_SIMD_BODY {
      fade_gradients(head, chunk, work, c, grad, g);
      end = dot(size, states + (index + 1) * size, grad_state.data);
    });
    write_delta_gradients(head, chunk, work, before, end, grad, grad_state, g);
    // k_end is done with: s diag(e) Q takes its place.
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t i = 0; i < n; ++i)
        scaled(head.keys, head.scale * work.decay.from_begin[i], q.at(i), work.k_end.at(i));
      scaled(size, work.decay.whole, grad_state.data, grad_state.data);
    });
    multiply(
        grad_state, head.keys, head.values, n, work.k_end.transposed(), upstream.matrix(), true);
    multiply(grad_state, head.keys, head.values, n, k.transposed(), g.read.matrix(), true);
  }
  if (grad.state) std::copy(grad_state.data, grad_state.data + size, grad.state);
}

template void delta_rule_forward(const Head<float>&, const HeadResults<float>&);
template void delta_rule_forward(const Head<double>&, const HeadResults<double>&);
template void delta_rule_backward(const Head<float>&, const HeadGradients<float>&);
template void delta_rule_backward(const Head<double>&, const HeadGradients<double>&);

}  // namespace forge::ops::recurrence
