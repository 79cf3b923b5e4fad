#pragma once

#include "backends/libtorch/ops/canon_conv/stretch.cuh"

/// Kernels whose threads own two packs of neighbouring channels each, a and b, because what follows
/// the convolution joins two channels that lie apart: gate and up, or the two halves of a rotated
/// pair. A block's threads lie side by side over such units and over stretches of tokens; it takes
/// tile after tile of tokens, so that it reads its taps once and leaves one row of sums for their
/// gradients.
namespace forge::ops::cuda {

/// Where a thread's channels lie in a token; -1: it has none.
struct Unit {
  int64_t a, b;
};

constexpr int unit_lanes = warp_size;
constexpr int stretch_lanes = 4;
constexpr int unit_threads = unit_lanes * stretch_lanes;
inline const dim3 unit_block(unit_lanes, stretch_lanes);

/// Tokens of a stretch where there is no convolution, and with that nothing to read twice.
constexpr int short_stretch = slots<0>;

/// The blocks of a kernel over units, and their stretches.
struct UnitGrid {
  dim3 blocks;
  Stretches stretches;
};

template <int taps, class Kernel>
UnitGrid unit_grid(Kernel kernel, const Sequences& s, int64_t units) {
  const int64_t columns = (units + unit_lanes - 1) / unit_lanes;
  const int64_t rows = std::max<int64_t>(blocks_at_once(kernel, unit_threads) / columns, 1);
  const Stretches stretches = taps > 0 ? even_stretches(s, rows * stretch_lanes, slots<taps>)
                                       : stretches_of(s, short_stretch);
  const int64_t tiles = (int64_t{stretches.count} + stretch_lanes - 1) / stretch_lanes;
  return {
      dim3(static_cast<unsigned>(columns), static_cast<unsigned>(blocks_of_rounds(tiles, rows))),
      stretches};
}

/// Calls run(stretch) for each of a thread's stretches.
template <class Run>
__device__ __forceinline__ void for_each_stretch(const Sequences& s,
                                                 const Stretches& stretches,
                                                 const Run& run) {
  for (unsigned index = blockIdx.y * stretch_lanes + threadIdx.y; index < stretches.count;
       index += gridDim.y * stretch_lanes) {
    run(stretches.at(s, index));
  }
}

/// Weights of a unit's channels, or sums for their gradients.
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

/// Adds a block's sums up, one stretch lane after the other, and writes them to
/// partial[blockIdx.y][C][taps], last tap the current token's as weights are. All threads call it;
/// those without a unit have cleared sums.
template <int taps, int width>
__device__ __forceinline__ void write_tap_sums(const Taps<taps, width>& sums,
                                               const Unit& unit,
                                               int64_t channels,
                                               float* partial) {
  if constexpr (taps > 0) {
    __shared__ float memory[stretch_lanes][2 * width * taps][unit_lanes];
#pragma unroll
    for (int side = 0; side < 2; ++side) {
#pragma unroll
      for (int j = 0; j < width; ++j) {
#pragma unroll
        for (int tap = 0; tap < taps; ++tap) {
          const int slot = (side * width + j) * taps + taps - 1 - tap;
          memory[threadIdx.y][slot][threadIdx.x] = sums.of[side][tap][j];
        }
      }
    }
    __syncthreads();
    if (unit.a < 0) return;
    float* row = partial + blockIdx.y * channels * taps;
    for (int slot = threadIdx.y; slot < 2 * width * taps; slot += stretch_lanes) {
      float sum = 0;
#pragma unroll
      for (int lane = 0; lane < stretch_lanes; ++lane) sum += memory[lane][slot][threadIdx.x];
      const bool second = slot >= width * taps;
      row[(second ? unit.b : unit.a) * taps + slot - (second ? width * taps : 0)] = sum;
    }
  }
}

}  // namespace forge::ops::cuda
