// A decay for each row of the state, as in gated linear attention. In a chunk, with b the sums of
// log decays from its first token to each and s the scale:
//     A_ij = s sum_c q_ic k_jc exp(b_ic - b_jc)  for i >= j
//     O    = (s Q * exp b) S + A V
//     S'   = diag(exp b_n) S + (K * exp(b_n - b))^T V

#include "backends/libtorch/ops/linear_attention/channel_chunk.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops::recurrence {
namespace {

/// What a chunk's backward pass writes besides.
template <class T>
struct ChannelGradients {
  Rows<T> scores;            ///< dA, zeros above the diagonal
  Rows<T> q, k;              ///< through A, before their factors
  Rows<T> q_state, k_state;  ///< dO S^T and V dS'^T
  T* decay;                  ///< [K]

  static constexpr int64_t pieces = 6;
  static int64_t numbers(int64_t keys) { return chunk_tokens * (4 * keys + chunk_tokens) + keys; }
  ChannelGradients(Memory<T>& memory, int64_t keys) {
    scores = memory.matrix(chunk_tokens, chunk_tokens);
    for (Rows<T>* matrix : {&q, &k, &q_state, &k_state})
      *matrix = memory.matrix(chunk_tokens, keys);
    decay = memory.take(keys);
  }
};

/// Gradients of q and k through A, with their factors: dA of one block's rows with all tokens
/// before them, and with one another.
template <class T>
void gradients_by_blocks(const Head<T>& head,
                         const Chunk& chunk,
                         ChannelChunk<T>& c,
                         const ChannelGradients<T>& g,
                         const Rows<T>& block_k) {
  const int64_t keys = head.keys;
  for (const Rows<T>& matrix : {g.q, g.k})
    std::fill(matrix.data, matrix.data + chunk.tokens * keys, T(0));
  for (int64_t begin = 0; begin < chunk.tokens; begin += block_tokens) {
    const int64_t end = std::min(begin + block_tokens, chunk.tokens);
    if (begin > 0) {
      with_simd([&]() FORGE_SIMD_BODY { compute_block(head, chunk, begin, end, c); });
      const Rows<T> scores = g.scores.from(begin);
      multiply(g.q.from(begin), end - begin, keys, begin, scores.matrix(), c.k_scaled.matrix());
      multiply(
          block_k, begin, keys, end - begin, scores.transposed(), c.q_scaled.from(begin).matrix());
    }
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t j = 0; j < begin; ++j) {
        const T *factor = c.k_factor.at(j), *from = block_k.at(j);
        T* to = g.k.at(j);
#pragma omp simd
        for (int64_t d = 0; d < keys; ++d) to[d] += factor[d] * from[d];
      }
      for (int64_t i = begin; i < end; ++i) {
        const double* b_i = c.sums.at(i);
        const T* q = head.q.at(chunk.begin + i);
        T* grad_q = g.q.at(i);
        if (begin > 0) {
          const T* factor = c.q_factor.at(i);
#pragma omp simd
          for (int64_t d = 0; d < keys; ++d) grad_q[d] *= head.scale * factor[d];
        }
        for (int64_t j = begin; j <= i; ++j) {
          const double* b_j = c.sums.at(j);
          const T* k = head.k.at(chunk.begin + j);
          const T score = head.scale * g.scores.at(i)[j];
          T* grad_k = g.k.at(j);
#pragma omp simd
          for (int64_t d = 0; d < keys; ++d) {
            const T product = score * faded<T>(b_i[d], b_j[d]);
            grad_q[d] += product * k[d];
            grad_k[d] += product * q[d];
          }
        }
      }
    });
  }
}

/// The same with one reference.
template <class T>
void gradients_by_one_reference(const Head<T>& head,
                                const Chunk& chunk,
                                const ChannelChunk<T>& c,
                                const ChannelGradients<T>& g) {
  const int64_t n = chunk.tokens, keys = head.keys;
  multiply(g.q, n, keys, n, g.scores.matrix(), c.k_scaled.matrix());
  multiply(g.k, n, keys, n, g.scores.transposed(), c.q_scaled.matrix());
  with_simd([&]() FORGE_SIMD_BODY {
    for (int64_t i = 0; i < n; ++i) {
      const T *q_factor = c.q_factor.at(i), *k_factor = c.k_factor.at(i);
      T *q = g.q.at(i), *k = g.k.at(i);
#pragma omp simd
      for (int64_t d = 0; d < keys; ++d) {
        q[d] *= head.scale * q_factor[d];
        k[d] *= k_factor[d];
      }
    }
  });
}

/// Adds what came through the states, writes the gradients of q and k, and those of the log decays:
/// every path through b_i carries q_i or k_i.
template <class T>
FORGE_INLINE void write_gradients(const Head<T>& head,
                                  const Chunk& chunk,
                                  const ChannelChunk<T>& c,
                                  const ChannelGradients<T>& g,
                                  const HeadGradients<T>& grad) {
  for (int64_t i = chunk.tokens - 1; i >= 0; --i) {
    const int64_t t = chunk.begin + i;
    const T *from_begin = c.from_begin.at(i), *to_end = c.to_end.at(i);
    const T *q_state = g.q_state.at(i), *k_state = g.k_state.at(i), *q_scores = g.q.at(i),
            *k_scores = g.k.at(i), *q = head.q.at(t), *k = head.k.at(t);
    T *grad_q = grad.q.at(t), *grad_k = grad.k.at(t), *grad_decay = grad.log_decay.at(t),
      *sum = g.decay;
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) {
      const T of_q = q_scores[d] + head.scale * from_begin[d] * q_state[d];
      const T of_k = k_scores[d] + to_end[d] * k_state[d];
      grad_q[d] = of_q;
      grad_k[d] = of_k;
      sum[d] += q[d] * of_q - k[d] * of_k;
      grad_decay[d] = sum[d];
    }
  }
}

/// dA = tril(dO V^T) and dV = A^T dO + k_end dS'
template <class T>
void chunk_value_gradients(const Head<T>& head,
                           const Chunk& chunk,
                           const ChannelChunk<T>& c,
                           const ChannelGradients<T>& g,
                           const HeadGradients<T>& grad,
                           const Rows<T>& grad_state) {
  const int64_t n = chunk.tokens;
  const Rows<const T> upstream = grad.output.from(chunk.begin);
  multiply(g.scores, n, n, head.values, upstream.matrix(), head.v.from(chunk.begin).transposed());
  zero_above_diagonal(n, g.scores);
  const Rows<T> grad_v = grad.v.from(chunk.begin);
  multiply(grad_v, n, head.values, n, c.scores.transposed(), upstream.matrix());
  multiply(grad_v, n, head.values, head.keys, c.k_end.matrix(), grad_state.matrix(), true);
}

}  // namespace

template <class T>
void channel_decay_forward(const Head<T>& head, const HeadResults<T>& results) {
  using Factors = ChannelChunk<T>;
  Memory<T> memory(Factors::numbers(head.keys) + head.state_size(), Factors::pieces + 1);
  Factors c(memory, head.keys);
  const Rows<T> state = memory.matrix(head.keys, head.values);
  load_state(head, state.data);
  for (int64_t index = 0; index < head.chunks(); ++index) {
    const Chunk chunk = chunk_at(index, head.length);
    const int64_t n = chunk.tokens;
    with_simd([&]() FORGE_SIMD_BODY { compute_update(head, chunk, c); });
    compute_scores(head, chunk, c);
    const Rows<T> out = results.output.from(chunk.begin);
    multiply(out, n, head.values, n, c.scores.matrix(), head.v.from(chunk.begin).matrix());
    multiply(out, n, head.values, head.keys, c.q_begin.matrix(), state.matrix(), true);
    update_state(head, chunk, c, state.data);
  }
  if (results.state) std::copy(state.data, state.data + head.state_size(), results.state);
}

template <class T>
void channel_decay_backward(const Head<T>& head, const HeadGradients<T>& grad) {
  using Factors = ChannelChunk<T>;
  using Gradients = ChannelGradients<T>;
  const int64_t chunks = head.chunks(), size = head.state_size(), keys = head.keys;
  Memory<T> memory(
      Factors::numbers(keys) + Gradients::numbers(keys) + chunk_tokens * keys + (chunks + 2) * size,
      Factors::pieces + Gradients::pieces + 3);
  Factors c(memory, keys);
  const Gradients g(memory, keys);
  const Rows<T> block_k = memory.matrix(chunk_tokens, keys);
  const Rows<T> grad_state = memory.matrix(keys, head.values);
  T* states = memory.take((chunks + 1) * size);  // before each chunk and behind the last
  load_state(head, states);
  for (int64_t index = 0; index < chunks; ++index) {
    const Chunk chunk = chunk_at(index, head.length);
    T* next = states + (index + 1) * size;
    std::copy(states + index * size, next, next);
    with_simd([&]() FORGE_SIMD_BODY { compute_update(head, chunk, c); });
    update_state(head, chunk, c, next);
  }
  load_final_gradient(head, grad, grad_state.data);
  for (int64_t index = chunks - 1; index >= 0; --index) {
    const Chunk chunk = chunk_at(index, head.length);
    const int64_t n = chunk.tokens;
    const Rows<const T> before{states + index * size, head.values};
    const T* behind = states + (index + 1) * size;
    const Rows<const T> upstream = grad.output.from(chunk.begin);
    with_simd([&]() FORGE_SIMD_BODY { compute_update(head, chunk, c); });
    compute_scores(head, chunk, c);
    chunk_value_gradients(head, chunk, c, g, grad, grad_state);
    c.one_reference ? gradients_by_one_reference(head, chunk, c, g)
                    : gradients_by_blocks(head, chunk, c, g, block_k);
    multiply(g.q_state, n, keys, head.values, upstream.matrix(), before.transposed());
    multiply(g.k_state,
             n,
             keys,
             head.values,
             head.v.from(chunk.begin).matrix(),
             grad_state.transposed());
    with_simd([&]() FORGE_SIMD_BODY {
      for (int64_t d = 0; d < keys; ++d) {
        T* row = grad_state.at(d);
        g.decay[d] = dot(head.values, behind + d * head.values, row);
        scaled(head.values, c.whole[d], row, row);
      }
      write_gradients(head, chunk, c, g, grad);
    });
    multiply(grad_state, keys, head.values, n, c.q_begin.transposed(), upstream.matrix(), true);
  }
  if (grad.state) std::copy(grad_state.data, grad_state.data + size, grad.state);
}

template void channel_decay_forward(const Head<float>&, const HeadResults<float>&);
template void channel_decay_forward(const Head<double>&, const HeadResults<double>&);
template void channel_decay_backward(const Head<float>&, const HeadGradients<float>&);
template void channel_decay_backward(const Head<double>&, const HeadGradients<double>&);

}  // namespace forge::ops::recurrence

namespace forge::ops {

int64_t chunks_beyond_one_reference(const at::Tensor& log_decay) {
  using namespace recurrence;
  const at::Tensor decay = log_decay.to(at::kDouble).contiguous();
  const int64_t length = decay.size(1), heads = decay.size(2), keys = decay.size(3);
  std::vector<double> numbers(static_cast<size_t>(chunk_tokens * keys));
  const Rows<double> sums{numbers.data(), keys};
  int64_t beyond = 0;
  for (int64_t row = 0; row < decay.size(0); ++row) {
    for (int64_t h = 0; h < heads; ++h) {
      recurrence::Head<double> head{};
      head.length = length;
      head.keys = keys;
      head.log_decay = {decay.data_ptr<double>() + (row * length * heads + h) * keys, heads * keys};
      for (int64_t index = 0; index < head.chunks(); ++index) {
        const recurrence::Chunk chunk = chunk_at(index, length);
        sum_decays(head, chunk, sums);
        if (!has_one_reference(chunk.tokens, keys, sums)) ++beyond;
      }
    }
  }
  return beyond;
}

}  // namespace forge::ops
