#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/common/simd.h"

/// Loops of the Canon convolution over pointers, for the operations that hold it.
namespace forge::ops::canon {

constexpr int max_kernel = 4;

/// Tokens begin … end - 1 of one row of the batch.
struct Chunk {
  int64_t index, row, begin, end;

  Chunk token(int64_t t) const { return {index, row, t, t + 1}; }
  Chunk until(int64_t other_end) const { return {index, row, begin, other_end}; }
};

/// Successive tokens of one row of the batch, from token `first` on; a token is `channels` numbers.
template <class T>
struct Tokens {
  T* data;
  int64_t first, channels;
  T* at(int64_t t) const { return data + (t - first) * channels; }
  Tokens from_channel(int64_t channel) const { return {data + channel, first, channels}; }
  Tokens<const T> read() const { return {data, first, channels}; }
};

/// A range of channels; the tokens of a loop over it begin with the first of them.
struct Channels {
  int64_t first, count;
};

template <class T>
struct Convolution {
  int64_t batch, length, channels;
  int kernel;
  std::vector<T> taps;     ///< [K][C], tap 0 = current token; with a residual one more of it
  const int32_t* doc_ids;  ///< [B, T] or null

  /// Whether token t reads token t - tap of the same row.
  bool reads(int64_t row, int64_t t, int tap) const {
    if (t < tap || t >= length) return false;
    return !doc_ids || doc_ids[row * length + t] == doc_ids[row * length + t - tap];
  }
  /// Tokens before a chunk that its convolution reads.
  int halo() const { return kernel > 0 ? kernel - 1 : 0; }
  Channels all() const { return {0, channels}; }
  const T* tap(int index) const { return taps.data() + index * channels; }
  int64_t chunk_count() const { return batch * ops::chunk_count(length); }
  /// The chunk's whole row of a contiguous [B, T, C].
  Tokens<const T> row_to_read(const at::Tensor& x, const Chunk& chunk) const {
    return row_to_write<T>(x, chunk).read();
  }
  template <class Out>
  Tokens<Out> row_to_write(const at::Tensor& x, const Chunk& chunk) const {
    return {x.data_ptr<Out>() + chunk.row * length * channels, 0, channels};
  }
};

/// Up to four tokens, and the taps that multiply them.
template <class T>
struct Terms {
  const T* token[max_kernel];
  const T* tap[max_kernel];
  int count = 0;
  void add(const T* x, const T* w) {
    token[count] = x;
    tap[count++] = w;
  }
};

/// y[c] = sum_i tap_i[c] * token_i[c]; a loop for each count, so that every one vectorises.
template <class T, class Out>
FORGE_INLINE void sum_terms(const Terms<T>& terms, Out* __restrict y, int64_t channels) {
  const T *r0 = terms.token[0], *r1 = terms.token[1], *r2 = terms.token[2], *r3 = terms.token[3];
  const T *w0 = terms.tap[0], *w1 = terms.tap[1], *w2 = terms.tap[2], *w3 = terms.tap[3];
  switch (terms.count) {
    case 0:
      for (int64_t c = 0; c < channels; ++c) y[c] = rounded<Out>(T(0));
      break;
    case 1:
      for (int64_t c = 0; c < channels; ++c) y[c] = rounded<Out>(w0[c] * r0[c]);
      break;
    case 2:
      for (int64_t c = 0; c < channels; ++c) y[c] = rounded<Out>(w0[c] * r0[c] + w1[c] * r1[c]);
      break;
    case 3:
      for (int64_t c = 0; c < channels; ++c) {
        y[c] = rounded<Out>(w0[c] * r0[c] + w1[c] * r1[c] + w2[c] * r2[c]);
      }
      break;
    default:
      for (int64_t c = 0; c < channels; ++c) {
        y[c] = rounded<Out>((w0[c] * r0[c] + w1[c] * r1[c]) + (w2[c] * r2[c] + w3[c] * r3[c]));
      }
  }
}

/// y[t] = sum over taps of tap * x[t - tap], for the tokens of a chunk.
template <class T, class Out>
FORGE_INLINE void convolve(const Convolution<T>& p,
                           const Chunk& chunk,
                           Channels channels,
                           const Tokens<const T>& x,
                           const Tokens<Out>& y) {
  for (int64_t t = chunk.begin; t < chunk.end; ++t) {
    Terms<T> terms;
    for (int tap = 0; tap < p.kernel; ++tap) {
      if (p.reads(chunk.row, t, tap)) terms.add(x.at(t - tap), p.tap(tap) + channels.first);
    }
    sum_terms(terms, y.at(t), channels.count);
  }
}

/// The transpose: grad_x[t] = sum over taps of tap * grad[t + tap].
template <class T>
FORGE_INLINE void convolve_transposed(const Convolution<T>& p,
                                      const Chunk& chunk,
                                      Channels channels,
                                      const Tokens<const T>& grad,
                                      const Tokens<T>& grad_x) {
  for (int64_t t = chunk.begin; t < chunk.end; ++t) {
    Terms<T> terms;
    for (int tap = 0; tap < p.kernel; ++tap) {
      if (p.reads(chunk.row, t + tap, tap))
        terms.add(grad.at(t + tap), p.tap(tap) + channels.first);
    }
    sum_terms(terms, grad_x.at(t), channels.count);
  }
}

/// sums[tap] += sum over t of grad[t] * x[t - tap].
template <class T>
FORGE_INLINE void accumulate_taps(const Convolution<T>& p,
                                  const Chunk& chunk,
                                  Channels channels,
                                  const Tokens<const T>& x,
                                  const Tokens<const T>& grad,
                                  T* sums) {
  for (int64_t t = chunk.begin; t < chunk.end; ++t) {
    const T* g = grad.at(t);
    for (int tap = 0; tap < p.kernel; ++tap) {
      if (!p.reads(chunk.row, t, tap)) continue;
      const T* past = x.at(t - tap);
      T* __restrict sum = sums + tap * p.channels + channels.first;
      for (int64_t c = 0; c < channels.count; ++c) sum[c] += g[c] * past[c];
    }
  }
}

/// Weight gradient [C, 1, K] from the sums [chunks][K][C] of accumulate_taps, chunk by chunk.
template <class T>
FORGE_INLINE void add_up_taps(
    int64_t channels, int64_t kernel, int64_t chunks, T* sums, T* grad_weights) {
  const int64_t size = channels * kernel;
  for (int64_t chunk = 1; chunk < chunks; ++chunk) {
    const T* more = sums + chunk * size;
    for (int64_t i = 0; i < size; ++i) sums[i] += more[i];
  }
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t tap = 0; tap < kernel; ++tap) {
      grad_weights[c * kernel + kernel - 1 - tap] = chunks > 0 ? sums[tap * channels + c] : T(0);
    }
  }
}

/// The convolution of x [B, T, C] by a layer, or, without one, of no taps.
template <class T>
Convolution<T> convolution(const at::Tensor& x, const CanonLayer& layer) {
  Convolution<T> p{x.size(0), x.size(1), x.size(2), 0, {}, nullptr};
  if (!layer.weight.defined()) return p;
  if (layer.doc_ids.defined()) p.doc_ids = layer.doc_ids.data_ptr<int32_t>();
  const int64_t kernel = layer.weight.size(2);
  p.kernel = static_cast<int>(kernel);
  p.taps.resize(static_cast<size_t>(p.channels * kernel));
  const T* weights = layer.weight.data_ptr<T>();
  for (int64_t c = 0; c < p.channels; ++c) {
    for (int64_t k = 0; k < kernel; ++k)
      p.taps[(kernel - 1 - k) * p.channels + c] = weights[c * kernel + k];
    if (layer.options.residual) p.taps[c] += 1;
  }
  return p;
}

/// Calls task(chunk, memory) for every chunk of at most chunk_rows tokens of one row, on all
/// threads. Memory for `size` numbers is uninitialised. Chunks are fixed: sums are added up chunk
/// by chunk, and their bits must not depend on the number of threads.
template <class T, class Task>
void for_each_chunk(int64_t batch, int64_t length, int64_t size, const Task& task) {
  const int64_t per_row = chunk_count(length);
  at::parallel_for(0, batch * per_row, 1, [&](int64_t first, int64_t last) {
    const std::unique_ptr<T[]> memory(new T[size]);
    for (int64_t index = first; index < last; ++index) {
      const int64_t begin = index % per_row * chunk_rows;
      const Chunk chunk{index, index / per_row, begin, std::min(begin + chunk_rows, length)};
      task(chunk, memory.get());
    }
  });
}

}  // namespace forge::ops::canon
