#pragma once

#include <type_traits>

#include "backends/libtorch/ops/common/cuda.cuh"

/// The causal convolution of a Canon layer as a march over time: a thread owns a few channels and
/// goes from token to token, with what the taps reach back to in registers. So each input is read
/// once (but for the taps' reach at the beginning of a stretch), and what an operation does next
/// with the outputs costs no memory at all.
///
/// A thread owns two packs of neighbouring channels, a and b, because what follows mostly joins two
/// channels that lie apart: gate and up, or the two halves of a rotated pair.
namespace forge::ops::cuda {

/// Where a thread's channels lie in a token.
struct Unit {
  int64_t a, b;
};

/// A stretch of tokens of one row.
struct Stretch {
  int64_t row;
  int begin, end;  ///< tokens
  int length;      ///< of the row
};

/// The stretch of thread lane y: `tokens` of them, rows cut into as many as they need.
__device__ __forceinline__ bool stretch_of(const Sequences& s, int tokens, Stretch& out) {
  const int length = static_cast<int>(s.length);
  const int per_row = (length + tokens - 1) / tokens;
  const int64_t index = int64_t{blockIdx.y} * blockDim.y + threadIdx.y;
  if (index >= s.batch * per_row) return false;
  out.row = index / per_row;
  out.begin = static_cast<int>(index % per_row) * tokens;
  out.end = min(out.begin + tokens, length);
  out.length = length;
  return true;
}

/// The taps of neighbouring channels from weights [C, taps], current token first. With a residual
/// one more of the current token is added. `channel` is a multiple of 4.
template <int taps, int width>
__device__ __forceinline__ void load_taps(const float* weights,
                                          int64_t channel,
                                          bool residual,
                                          float (&out)[taps][width]) {
  float stored[width * taps];
  load(weights + channel * taps, stored);
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

/// Calls emit(t, a, b) with the convolution's outputs for every token of the stretch; without taps
/// with x itself. x points at the row's first token.
template <class T, int taps, int width, bool documents, class Emit>
__device__ __forceinline__ void march(const T* x,
                                      int64_t channels,
                                      const int32_t* doc_ids,
                                      const Unit& unit,
                                      const Stretch& stretch,
                                      const Taps<taps, width>& w,
                                      const Emit& emit) {
  float a[width], b[width];
  if constexpr (taps == 0) {
#pragma unroll 4
    for (int t = stretch.begin; t < stretch.end; ++t) {
      load(x + t * channels + unit.a, a);
      load(x + t * channels + unit.b, b);
      emit(t, a, b);
    }
  } else {
    Window<taps, width> past;
    DocumentWindow<taps, documents> docs;
    past.clear();
    docs.clear();
    for (int t = max(0, stretch.begin - taps + 1); t < stretch.begin; ++t) {
      load(x + t * channels + unit.a, a);
      load(x + t * channels + unit.b, b);
      past.push(a, b);
      if constexpr (documents) docs.push(doc_ids[t]);
    }
#pragma unroll 4
    for (int t = stretch.begin; t < stretch.end; ++t) {
      load(x + t * channels + unit.a, a);
      load(x + t * channels + unit.b, b);
      past.push(a, b);
      if constexpr (documents) docs.push(doc_ids[t]);
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
      emit(t, a, b);
    }
  }
}

/// The way back: the gradient of x, written to grad_x, and that of the taps, added to grad_taps
/// (current token first). upstream(t, own, a, b) turns the convolution's outputs a and b at token t
/// into their gradient; `own` says that t lies in the stretch and not in the taps' reach behind it.
/// Where needs_outputs is false a and b come in without a meaning.
template <class T, int taps, int width, bool documents, bool needs_outputs, class Upstream>
__device__ __forceinline__ void march_back(const T* x,
                                           T* grad_x,
                                           int64_t channels,
                                           const int32_t* doc_ids,
                                           const Unit& unit,
                                           const Stretch& stretch,
                                           const Taps<taps, width>& w,
                                           Taps<taps, width>& grad_taps,
                                           const Upstream& upstream) {
  float a[width], b[width];
  if constexpr (taps == 0) {
#pragma unroll 4
    for (int t = stretch.begin; t < stretch.end; ++t) {
      if constexpr (needs_outputs) {
        load(x + t * channels + unit.a, a);
        load(x + t * channels + unit.b, b);
      }
      upstream(t, true, a, b);
      store(grad_x + t * channels + unit.a, a);
      store(grad_x + t * channels + unit.b, b);
    }
  } else {
    Window<taps, width> past, grad;
    DocumentWindow<taps, documents> docs;
    past.clear();
    grad.clear();
    docs.clear();
    for (int t = max(0, stretch.begin - taps + 1); t < stretch.begin; ++t) {
      load(x + t * channels + unit.a, a);
      load(x + t * channels + unit.b, b);
      past.push(a, b);
      if constexpr (documents) docs.push(doc_ids[t]);
    }
#pragma unroll 2
    for (int t = stretch.begin; t < stretch.end + taps - 1; ++t) {
      const bool own = t < stretch.end, inside = t < stretch.length;
      fill(a, 0);
      fill(b, 0);
      if (inside && (own || needs_outputs)) {
        load(x + t * channels + unit.a, a);
        load(x + t * channels + unit.b, b);
      }
      past.push(a, b);
      if constexpr (documents) docs.push(inside ? doc_ids[t] : -2);
      if (inside) {
        if constexpr (needs_outputs) {
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
        upstream(t, own, a, b);
      }
      grad.push(a, b);
      if (own) {
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
      // Token s was read by s … t: the newest gradient is that of t = s + taps - 1.
      const int s = t - taps + 1;
      if (s < stretch.begin) continue;
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
      store(grad_x + s * channels + unit.a, a);
      store(grad_x + s * channels + unit.b, b);
    }
  }
}

/// The grid of a march: 32 units by 8 stretches a block.
struct MarchShape {
  dim3 grid, block;
  int tokens;  ///< of a stretch
  int64_t block_rows() const { return grid.y; }
};

inline MarchShape march_shape(const Sequences& s, int64_t units) {
  constexpr int unit_lanes = 32, stretch_lanes = 8;
  // Long stretches read little twice; short ones keep a large GPU busy with little work.
  constexpr int64_t threads_wanted = 132 * 1024;
  int tokens = 64;
  const auto stretches = [&] { return s.batch * ((s.length + tokens - 1) / tokens); };
  while (tokens > 16 && units * stretches() < threads_wanted) tokens /= 2;
  MarchShape shape;
  shape.tokens = tokens;
  shape.block = dim3(unit_lanes, stretch_lanes);
  shape.grid = dim3(static_cast<unsigned>((units + unit_lanes - 1) / unit_lanes),
                    static_cast<unsigned>((stretches() + stretch_lanes - 1) / stretch_lanes));
  return shape;
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
