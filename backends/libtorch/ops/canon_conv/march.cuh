#pragma once

#include <cuda_pipeline.h>

#include <type_traits>

#include "backends/libtorch/ops/common/cuda.cuh"

/// The causal convolution of a Canon layer as a march over time: a thread owns a few channels and
/// goes from token to token, with what the taps reach back to in registers. What an operation does
/// next with the outputs costs no memory at all. A block brings a tile of tokens and channels to
/// shared memory at once, so that many bytes are under way while other blocks compute.
///
/// A thread owns two packs of neighbouring channels, a and b, because what follows mostly joins two
/// channels that lie apart: gate and up, or the two halves of a rotated pair.
namespace forge::ops::cuda {

/// Where a thread's channels lie in a token; -1: it has none.
struct Unit {
  int64_t a, b;
};

constexpr int unit_lanes = warp_size;  // threads of a block side by side
constexpr int stretch_lanes = 4;       // stretches of tokens of a block
constexpr int stretch_tokens = 16;
constexpr int tile_tokens = stretch_lanes * stretch_tokens;

/// The tokens of a block, and of a thread among them.
struct Stretch {
  int64_t first_token;  ///< of the row, in the batch
  int tile_begin;       ///< tokens of the row
  int begin, end;       ///< none where begin >= end
  int length;           ///< of the row
};

__device__ __forceinline__ Stretch stretch_of(const Sequences& s) {
  const int length = static_cast<int>(s.length);
  const int tiles = (length + tile_tokens - 1) / tile_tokens;
  Stretch out;
  out.first_token = blockIdx.y / tiles * s.length;
  out.tile_begin = static_cast<int>(blockIdx.y % tiles) * tile_tokens;
  out.begin = out.tile_begin + static_cast<int>(threadIdx.y) * stretch_tokens;
  out.end = min(out.begin + stretch_tokens, length);
  out.length = length;
  return out;
}

/// Blocks of a march over units of channels.
struct MarchShape {
  dim3 grid, block;
  int64_t block_rows() const { return grid.y; }
};

inline MarchShape march_shape(const Sequences& s, int64_t units) {
  const int64_t tiles = s.batch * ((s.length + tile_tokens - 1) / tile_tokens);
  return {dim3(static_cast<unsigned>((units + unit_lanes - 1) / unit_lanes),
               static_cast<unsigned>(tiles)),
          dim3(unit_lanes, stretch_lanes)};
}

/// Values of a thread's pack: token t's lie at first[t * stride].
template <class T>
struct Values {
  const T* first;
  int64_t stride;
};

/// Rows of shared memory that hold one pack of each lane for the tokens tile_begin - before … .
template <class T, int width, int before, int after>
struct Staged {
  static constexpr int rows = before + tile_tokens + after;
  static constexpr int row_size = unit_lanes * width;
  T of[rows][row_size];

  /// Begins to copy from x [tokens, stride], the row's first token; channel(lane) is where a lane's
  /// pack begins, -1 without one. Packs of 4 channels lie side by side. Tokens before and behind
  /// the row become zeros. Wait with wait_for_staged().
  template <class Channel>
  __device__ __forceinline__ void begin(const T* x,
                                        int64_t stride,
                                        const Stretch& stretch,
                                        const Channel& channel) {
    // A thread stays in its column, so that where its pack lies is found once.
    constexpr int chunk = 4, chunks = row_size / chunk;
    constexpr int rows_at_once = unit_lanes * stretch_lanes / chunks;
    static_assert(rows_at_once * chunks == unit_lanes * stretch_lanes, "threads fill whole rows");
    const int thread = threadIdx.y * unit_lanes + threadIdx.x;
    const int within = thread % chunks * chunk;
    const int64_t c = channel(within / width);
    int t = stretch.tile_begin - before + thread / chunks;
    const T* from = x + t * stride + c + within % width;
#pragma unroll 4
    for (int row = thread / chunks; row < rows; row += rows_at_once) {
      auto* to = reinterpret_cast<Pack<T, chunk>*>(&of[row][within]);
      if (t >= 0 && t < stretch.length && c >= 0) {
        __pipeline_memcpy_async(to, from, sizeof(*to));
      } else {
        *to = {};
      }
      t += rows_at_once;
      from += rows_at_once * stride;
    }
  }

  __device__ __forceinline__ Values<T> of_lane(const Stretch& stretch) const {
    return {&of[0][0] + threadIdx.x * width - (stretch.tile_begin - before) * row_size, row_size};
  }
};

__device__ __forceinline__ void wait_for_staged() {
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
}

/// The taps of neighbouring channels from weights [C, taps], current token first. With a residual
/// one more of the current token is added. `channel` is a multiple of 4.
template <int taps, int width>
__device__ __forceinline__ void load_taps(const float* weights,
                                          int64_t channel,
                                          bool residual,
                                          float (&out)[taps][width]) {
  float stored[width * taps];
  load_input(weights + channel * taps, stored);
#pragma unroll
  for (int i = 0; i < width; ++i) {
#pragma unroll
    for (int tap = 0; tap < taps; ++tap) {
      out[tap][i] = stored[i * taps + taps - 1 - tap] + (residual && tap == 0 ? 1.0f : 0.0f);
    }
  }
}

/// The taps of a unit's channels from weights [C, taps].
template <int taps, int width>
struct Taps {
  float of[2][taps > 0 ? taps : 1][width];

  __device__ __forceinline__ void load(const float* weights, bool residual, const Unit& unit) {
    if constexpr (taps > 0) {
      load_taps(weights, unit.a, residual, of[0]);
      load_taps(weights, unit.b, residual, of[1]);
    }
  }
  __device__ __forceinline__ void clear() {
    if constexpr (taps > 0) {
#pragma unroll
      for (int tap = 0; tap < taps; ++tap) {
        fill(of[0][tap], 0);
        fill(of[1][tap], 0);
      }
    }
  }
};

/// The last `size` values of a unit's channels, newest first.
template <int size, int width>
struct Window {
  float of[2][size][width];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
#pragma unroll
      for (int i = 0; i < size; ++i) fill(of[side][i], 0);
    }
  }
  __device__ __forceinline__ void push(const float (&a)[width], const float (&b)[width]) {
#pragma unroll
    for (int i = size - 1; i > 0; --i) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
        of[0][i][j] = of[0][i - 1][j];
        of[1][i][j] = of[1][i - 1][j];
      }
    }
#pragma unroll
    for (int j = 0; j < width; ++j) {
      of[0][0][j] = a[j];
      of[1][0][j] = b[j];
    }
  }
};

/// The documents of the last tokens, newest first, where there are several in a row.
template <int size, bool documents>
struct DocumentWindow {
  int32_t of[documents ? size : 1];

  __device__ __forceinline__ void clear() {
    if constexpr (documents) {
#pragma unroll
      for (int i = 0; i < size; ++i) of[i] = -1;
    }
  }
  __device__ __forceinline__ void push(int32_t document) {
    if constexpr (documents) {
#pragma unroll
      for (int i = size - 1; i > 0; --i) of[i] = of[i - 1];
      of[0] = document;
    }
  }
  /// Whether two of the tokens are of one document, as far as that matters.
  __device__ __forceinline__ bool same(int first, int second) const {
    if constexpr (documents) return of[first] == of[second];
    return true;
  }
};

/// The convolution's outputs for the newest tokens of a window.
template <int taps, int width, bool documents>
__device__ __forceinline__ void convolve(const Window<taps, width>& past,
                                         const DocumentWindow<taps, documents>& docs,
                                         const Taps<taps, width>& w,
                                         float (&a)[width],
                                         float (&b)[width]) {
#pragma unroll
  for (int j = 0; j < width; ++j) {
    a[j] = w.of[0][0][j] * past.of[0][0][j];
    b[j] = w.of[1][0][j] * past.of[1][0][j];
  }
#pragma unroll
  for (int tap = 1; tap < taps; ++tap) {
    if (!docs.same(0, tap)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      a[j] += w.of[0][tap][j] * past.of[0][tap][j];
      b[j] += w.of[1][tap][j] * past.of[1][tap][j];
    }
  }
}

/// A window of the tokens before the stretch.
template <class T, int taps, int width, bool documents>
__device__ __forceinline__ void begin_windows(const Values<T>& xa,
                                              const Values<T>& xb,
                                              const int32_t* doc_ids,
                                              const Stretch& stretch,
                                              Window<taps, width>& past,
                                              DocumentWindow<taps, documents>& docs) {
  past.clear();
  docs.clear();
#pragma unroll
  for (int i = 1; i < taps; ++i) {
    const int t = stretch.begin - taps + i;
    float a[width], b[width];
    load(xa.first + t * xa.stride, a);
    load(xb.first + t * xb.stride, b);
    past.push(a, b);
    if constexpr (documents) docs.push(t >= 0 ? doc_ids[t] : -1);
  }
}

/// Calls emit(t, a, b) with the convolution's outputs for every token of the stretch; without taps
/// with x itself. With taps x is in shared memory, from taps - 1 tokens before the stretch on;
/// without in global memory.
template <class T, int taps, int width, bool documents, class Emit>
__device__ __forceinline__ void march(const Values<T>& xa,
                                      const Values<T>& xb,
                                      const int32_t* doc_ids,
                                      const Stretch& stretch,
                                      const Taps<taps, width>& w,
                                      const Emit& emit) {
  float a[width], b[width];
  if constexpr (taps == 0) {
#pragma unroll 4
    for (int t = stretch.begin; t < stretch.end; ++t) {
      load_input(xa.first + t * xa.stride, a);
      load_input(xb.first + t * xb.stride, b);
      emit(t, a, b);
    }
  } else {
    Window<taps, width> past;
    DocumentWindow<taps, documents> docs;
    begin_windows(xa, xb, doc_ids, stretch, past, docs);
#pragma unroll 4
    for (int t = stretch.begin; t < stretch.end; ++t) {
      load(xa.first + t * xa.stride, a);
      load(xb.first + t * xb.stride, b);
      past.push(a, b);
      if constexpr (documents) docs.push(doc_ids[t]);
      convolve(past, docs, w, a, b);
      emit(t, a, b);
    }
  }
}

/// What the newest token's gradient a, b adds to the taps'.
template <int taps, int width, bool documents>
__device__ __forceinline__ void add_tap_products(const Window<taps, width>& past,
                                                 const DocumentWindow<taps, documents>& docs,
                                                 const float (&a)[width],
                                                 const float (&b)[width],
                                                 Taps<taps, width>& grad_taps) {
#pragma unroll
  for (int tap = 0; tap < taps; ++tap) {
    if (!docs.same(0, tap)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      grad_taps.of[0][tap][j] += a[j] * past.of[0][tap][j];
      grad_taps.of[1][tap][j] += b[j] * past.of[1][tap][j];
    }
  }
}

/// The gradient of the oldest token of a window, from those of all that read it.
template <int taps, int width, bool documents>
__device__ __forceinline__ void gather(const Window<taps, width>& grad,
                                       const DocumentWindow<taps, documents>& docs,
                                       const Taps<taps, width>& w,
                                       float (&a)[width],
                                       float (&b)[width]) {
  fill(a, 0);
  fill(b, 0);
#pragma unroll
  for (int tap = 0; tap < taps; ++tap) {
    if (!docs.same(taps - 1 - tap, taps - 1)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) {
      a[j] += w.of[0][tap][j] * grad.of[0][taps - 1 - tap][j];
      b[j] += w.of[1][tap][j] * grad.of[1][taps - 1 - tap][j];
    }
  }
}

/// One token of the way back. `own`: it lies in the stretch; `known`: so does the token taps - 1
/// before it, whose gradient is known with this one's.
template <bool needs_outputs,
          bool own,
          bool known,
          class T,
          int taps,
          int width,
          bool documents,
          class Upstream,
          class Emit>
__device__ __forceinline__ void step_back(int t,
                                          const Values<T>& xa,
                                          const Values<T>& xb,
                                          const int32_t* doc_ids,
                                          const Stretch& stretch,
                                          const Taps<taps, width>& w,
                                          Window<taps, width>& past,
                                          Window<taps, width>& grad,
                                          DocumentWindow<taps, documents>& docs,
                                          Taps<taps, width>& grad_taps,
                                          const Upstream& upstream,
                                          const Emit& emit) {
  float a[width], b[width];
  load(xa.first + t * xa.stride, a);
  load(xb.first + t * xb.stride, b);
  past.push(a, b);
  if constexpr (documents) docs.push(t < stretch.length ? doc_ids[t] : -2);
  if constexpr (needs_outputs) convolve(past, docs, w, a, b);
  upstream(t, own, a, b);
  grad.push(a, b);
  if constexpr (own) add_tap_products(past, docs, a, b, grad_taps);
  if constexpr (known) {
    gather(grad, docs, w, a, b);
    emit(t - taps + 1, a, b);
  }
}

/// The way back: gives the gradient of x to emit(t, a, b), and adds that of the taps to grad_taps
/// (current token first). upstream(t, own, a, b) turns the convolution's outputs a and b at token t
/// into their gradient, zeros behind the row; `own`, a constant, says that t lies in the stretch
/// and not in the taps' reach behind it. Where needs_outputs is false a and b come in without a
/// meaning. With taps x must be readable from taps - 1 tokens before the stretch on, and to as many
/// behind it.
template <class T,
          int taps,
          int width,
          bool documents,
          bool needs_outputs,
          class Upstream,
          class Emit>
__device__ __forceinline__ void march_back(const Values<T>& xa,
                                           const Values<T>& xb,
                                           const int32_t* doc_ids,
                                           const Stretch& stretch,
                                           const Taps<taps, width>& w,
                                           Taps<taps, width>& grad_taps,
                                           const Upstream& upstream,
                                           const Emit& emit) {
  if constexpr (taps == 0) {
    float a[width], b[width];
#pragma unroll 4
    for (int t = stretch.begin; t < stretch.end; ++t) {
      if constexpr (needs_outputs) {
        load_input(xa.first + t * xa.stride, a);
        load_input(xb.first + t * xb.stride, b);
      }
      upstream(t, true, a, b);
      emit(t, a, b);
    }
  } else {
    Window<taps, width> past, grad;
    DocumentWindow<taps, documents> docs;
    begin_windows(xa, xb, doc_ids, stretch, past, docs);
    grad.clear();
    constexpr int reach = taps - 1;
    const int known = min(stretch.begin + reach, stretch.end);
    for (int t = stretch.begin; t < known; ++t) {
      step_back<needs_outputs, true, false>(
          t, xa, xb, doc_ids, stretch, w, past, grad, docs, grad_taps, upstream, emit);
    }
#pragma unroll 4
    for (int t = known; t < stretch.end; ++t) {
      step_back<needs_outputs, true, true>(
          t, xa, xb, doc_ids, stretch, w, past, grad, docs, grad_taps, upstream, emit);
    }
    for (int t = stretch.end; t < stretch.end + reach; ++t) {
      if (t < stretch.begin + reach) {
        step_back<needs_outputs, false, false>(
            t, xa, xb, doc_ids, stretch, w, past, grad, docs, grad_taps, upstream, emit);
      } else {
        step_back<needs_outputs, false, true>(
            t, xa, xb, doc_ids, stretch, w, past, grad, docs, grad_taps, upstream, emit);
      }
    }
  }
}

/// Adds the taps' gradients of a block's stretches up, in their order, and writes them to
/// partial[blockIdx.y][C][taps], last tap the current token's as weights are. All threads call it.
template <int taps, int width>
__device__ __forceinline__ void write_tap_sums(const Taps<taps, width>& grad_taps,
                                               bool active,
                                               const Unit& unit,
                                               int64_t channels,
                                               float* partial) {
  if constexpr (taps > 0) {
    __shared__ float sums[2 * width * taps][warp_size];
    for (unsigned lane = 0; lane < blockDim.y; ++lane) {
      if (threadIdx.y == lane) {
#pragma unroll
        for (int side = 0; side < 2; ++side) {
#pragma unroll
          for (int j = 0; j < width; ++j) {
#pragma unroll
            for (int tap = 0; tap < taps; ++tap) {
              const int slot = (side * width + j) * taps + taps - 1 - tap;
              const float own = active ? grad_taps.of[side][tap][j] : 0.0f;
              sums[slot][threadIdx.x] = lane == 0 ? own : sums[slot][threadIdx.x] + own;
            }
          }
        }
      }
      __syncthreads();
    }
    if (threadIdx.y != 0 || unit.a < 0) return;
    float* row = partial + blockIdx.y * channels * taps;
#pragma unroll
    for (int slot = 0; slot < width * taps; ++slot) {
      row[unit.a * taps + slot] = sums[slot][threadIdx.x];
      row[unit.b * taps + slot] = sums[width * taps + slot][threadIdx.x];
    }
  }
}

/// Calls run(integral constant taps, bool constant documents) for a number of taps of 0, 2, 3, 4.
template <class Run>
void with_taps(int taps, bool documents, const Run& run) {
  const auto with_documents = [&](auto count) {
    documents ? run(count, std::true_type{}) : run(count, std::false_type{});
  };
  switch (taps) {
    case 0: return run(std::integral_constant<int, 0>{}, std::false_type{});
    case 2: return with_documents(std::integral_constant<int, 2>{});
    case 3: return with_documents(std::integral_constant<int, 3>{});
    case 4: return with_documents(std::integral_constant<int, 4>{});
  }
}

}  // namespace forge::ops::cuda
