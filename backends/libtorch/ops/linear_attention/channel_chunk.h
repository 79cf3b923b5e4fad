#pragma once

#include "backends/libtorch/ops/linear_attention/cpu.h"

/// One chunk of a head whose rows fade by decays of their own: factors, A, and the state's update,
/// see channel_decay.cpp.
namespace forge::ops::recurrence {

/// Tokens that share a reference where a chunk as a whole cannot.
constexpr int64_t block_tokens = 16;

/// Sums of log decays over a chunk, [tokens, K].
template <class T>
FORGE_INLINE void sum_decays(const Head<T>& head, const Chunk& chunk, const Rows<double>& sums) {
  for (int64_t i = 0; i < chunk.tokens; ++i) {
    const T* decay = head.log_decay.at(chunk.begin + i);
    double* sum = sums.at(i);
    if (i == 0) {
      std::copy(decay, decay + head.keys, sum);
      continue;
    }
    const double* before = sums.at(i - 1);
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) sum[d] = before[d] + static_cast<double>(decay[d]);
  }
}

/// Whether one reference does for all tokens of a chunk with these sums.
FORGE_INLINE bool has_one_reference(int64_t tokens, int64_t keys, const Rows<double>& sums) {
  const double *first = sums.at(0), *last = sums.at(tokens - 1);
  double most = 0;
#pragma omp simd reduction(max : most)
  for (int64_t d = 0; d < keys; ++d) most = std::max(most, first[d] - last[d]);
  return most <= most_decay_of_one_reference;
}

/// What is computed of one chunk, here and in the backward pass again. All matrices are of chunk
/// tokens; those of the sub-blocks too, whose references differ.
template <class T>
struct ChannelChunk {
  Rows<double> sums;           ///< b
  Rows<T> from_begin;          ///< exp b
  Rows<T> to_end;              ///< exp(b_n - b)
  Rows<T> q_begin;             ///< s Q * exp b
  Rows<T> k_end;               ///< K * exp(b_n - b)
  Rows<T> q_factor, k_factor;  ///< exp(b - m), exp(m - b)
  Rows<T> q_scaled, k_scaled;  ///< s Q * exp(b - m), K * exp(m - b)
  Rows<T> scores;              ///< A, zeros above the diagonal
  T* whole;                    ///< exp b_n
  bool one_reference;

  static constexpr int64_t pieces = 11;
  static int64_t numbers(int64_t keys) {
    return chunk_tokens * (8 * keys + chunk_tokens) + keys +
           Memory<T>::doubles(chunk_tokens * keys);
  }
  ChannelChunk(Memory<T>& memory, int64_t keys) {
    sums = memory.matrix_of_doubles(chunk_tokens, keys);
    for (Rows<T>* matrix :
         {&from_begin, &to_end, &q_begin, &k_end, &q_factor, &k_factor, &q_scaled, &k_scaled}) {
      *matrix = memory.matrix(chunk_tokens, keys);
    }
    scores = memory.matrix(chunk_tokens, chunk_tokens);
    whole = memory.take(keys);
  }
};

/// What the state's update needs.
template <class T>
FORGE_INLINE void compute_update(const Head<T>& head, const Chunk& chunk, ChannelChunk<T>& c) {
  sum_decays(head, chunk, c.sums);
  const double* last = c.sums.at(chunk.tokens - 1);
  for (int64_t i = 0; i < chunk.tokens; ++i) {
    const double* b = c.sums.at(i);
    const T* k = head.k.at(chunk.begin + i);
    T *to_end = c.to_end.at(i), *k_end = c.k_end.at(i);
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) {
      to_end[d] = faded<T>(last[d], b[d]);
      k_end[d] = k[d] * to_end[d];
    }
  }
#pragma omp simd
  for (int64_t d = 0; d < head.keys; ++d) c.whole[d] = faded<T>(last[d], 0);
}

template <class T>
FORGE_INLINE void compute_factors(const Head<T>& head, const Chunk& chunk, ChannelChunk<T>& c) {
  const double *first = c.sums.at(0), *last = c.sums.at(chunk.tokens - 1);
  for (int64_t i = 0; i < chunk.tokens; ++i) {
    const double* b = c.sums.at(i);
    const T *q = head.q.at(chunk.begin + i), *k = head.k.at(chunk.begin + i);
    T *from_begin = c.from_begin.at(i), *q_begin = c.q_begin.at(i);
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) {
      from_begin[d] = faded<T>(b[d], 0);
      q_begin[d] = head.scale * q[d] * from_begin[d];
    }
    if (!c.one_reference) continue;
    T *q_factor = c.q_factor.at(i), *k_factor = c.k_factor.at(i);
    T *q_scaled = c.q_scaled.at(i), *k_scaled = c.k_scaled.at(i);
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) {
      const T difference = static_cast<T>(b[d] - (first[d] + last[d]) / 2);
      q_factor[d] = fast_exp(difference);
      k_factor[d] = fast_exp(-difference);
      q_scaled[d] = head.scale * q[d] * q_factor[d];
      k_scaled[d] = k[d] * k_factor[d];
    }
  }
}

/// Rows `begin` … `end` - 1 of s Q and all rows of K before them, with the first of these rows as
/// their reference: no factor is above 1.
template <class T>
FORGE_INLINE void compute_block(
    const Head<T>& head, const Chunk& chunk, int64_t begin, int64_t end, ChannelChunk<T>& c) {
  const double* reference = c.sums.at(begin);
  for (int64_t i = begin; i < end; ++i) {
    const double* b = c.sums.at(i);
    const T* q = head.q.at(chunk.begin + i);
    T *factor = c.q_factor.at(i), *result = c.q_scaled.at(i);
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) {
      factor[d] = faded<T>(b[d], reference[d]);
      result[d] = head.scale * q[d] * factor[d];
    }
  }
  for (int64_t j = 0; j < begin; ++j) {
    const double* b = c.sums.at(j);
    const T* k = head.k.at(chunk.begin + j);
    T *factor = c.k_factor.at(j), *result = c.k_scaled.at(j);
#pragma omp simd
    for (int64_t d = 0; d < head.keys; ++d) {
      factor[d] = faded<T>(reference[d], b[d]);
      result[d] = k[d] * factor[d];
    }
  }
}

/// sum_c q_c k_c exp(b_q - b_k)
template <class T>
FORGE_INLINE T
faded_dot(int64_t size, const T* q, const T* k, const double* b_q, const double* b_k) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t d = 0; d < size; ++d) sum += q[d] * k[d] * faded<T>(b_q[d], b_k[d]);
  return sum;
}

template <class T>
void scores_by_blocks(const Head<T>& head, const Chunk& chunk, ChannelChunk<T>& c) {
  for (int64_t begin = 0; begin < chunk.tokens; begin += block_tokens) {
    const int64_t end = std::min(begin + block_tokens, chunk.tokens);
    with_simd([&]() FORGE_SIMD_BODY {
      compute_block(head, chunk, begin, end, c);
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = begin; j <= i; ++j) {
          const T *q = head.q.at(chunk.begin + i), *k = head.k.at(chunk.begin + j);
          c.scores.at(i)[j] = head.scale * faded_dot(head.keys, q, k, c.sums.at(i), c.sums.at(j));
        }
      }
    });
    if (begin == 0) continue;
    multiply(c.scores.from(begin),
             end - begin,
             begin,
             head.keys,
             c.q_scaled.from(begin).matrix(),
             c.k_scaled.transposed());
  }
}

template <class T>
void compute_scores(const Head<T>& head, const Chunk& chunk, ChannelChunk<T>& c) {
  with_simd([&]() FORGE_SIMD_BODY {
    c.one_reference = has_one_reference(chunk.tokens, head.keys, c.sums);
    compute_factors(head, chunk, c);
  });
  if (c.one_reference) {
    multiply(c.scores,
             chunk.tokens,
             chunk.tokens,
             head.keys,
             c.q_scaled.matrix(),
             c.k_scaled.transposed());
  } else {
    scores_by_blocks(head, chunk, c);
  }
  zero_above_diagonal(chunk.tokens, c.scores);
}

/// S' = diag(exp b_n) S + k_end^T V
template <class T>
void update_state(const Head<T>& head, const Chunk& chunk, const ChannelChunk<T>& c, T* state) {
  with_simd([&]() FORGE_SIMD_BODY {
    for (int64_t d = 0; d < head.keys; ++d) {
      T* row = state + d * head.values;
      scaled(head.values, c.whole[d], row, row);
    }
  });
  multiply<T>({state, head.values},
              head.keys,
              head.values,
              chunk.tokens,
              c.k_end.transposed(),
              head.v.from(chunk.begin).matrix(),
              true);
}

}  // namespace forge::ops::recurrence
