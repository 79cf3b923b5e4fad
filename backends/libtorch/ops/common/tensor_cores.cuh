#pragma once

// Tests compile kernels for the CPU too: tests/support/cuda_emulation.h comes first there and
// defines the few functions below that are instructions of the GPU.
#ifndef FORGE_CUDA_EMULATION
#include "backends/libtorch/ops/common/cuda.cuh"
#endif

/// Products of matrices in shared memory by a block's warps on tensor cores: bfloat16 operands,
/// float32 sums.
namespace forge::ops::cuda {

#ifndef FORGE_CUDA_EMULATION

/// The block's dynamic shared memory.
__device__ __forceinline__ unsigned char* shared_memory() {
  extern __shared__ uint4 forge_shared_memory[];
  return reinterpret_cast<unsigned char*>(forge_shared_memory);
}

/// Starts the copy of 16 bytes to shared memory; zeros in place of what is not `wanted`.
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool wanted) {
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(wanted ? 16 : 0)
      : "memory");
}
__device__ __forceinline__ void prefetch(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}
/// Waits for this thread's copies. Those of others are there after a barrier.
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// Four 8 x 8 matrices of bfloat16; lane l names row l % 8 of matrix l / 8. A lane receives of each
/// the columns 2 (lane % 4) and the next of row lane / 4, or of the transposed matrix.
template <bool transposed>
__device__ __forceinline__ void load_matrices(unsigned (&out)[4], const bfloat16* row) {
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(row));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"(from)
                 : "memory");
  }
}

/// sum += a b: a [16, 16], b [16, 8].
__device__ __forceinline__ void multiply_add(float (&sum)[4],
                                             const unsigned (&a)[4],
                                             unsigned b0,
                                             unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif

constexpr int tile_warps = 8;
constexpr int tile_threads = 32 * tile_warps;

/// Elements from one row of a matrix in shared memory to the next: 16 bytes more than the row has,
/// an odd number of 16-byte words, so that the eight rows of a load lie in different banks.
constexpr int padded(int columns) { return columns + 8; }

__device__ __forceinline__ float low_half(unsigned word) { return __uint_as_float(word << 16); }
__device__ __forceinline__ float high_half(unsigned word) {
  return __uint_as_float(word & 0xffff0000u);
}
__device__ __forceinline__ unsigned& word_at(bfloat16* p) {
  return *reinterpret_cast<unsigned*>(p);
}
__device__ __forceinline__ unsigned word_at(const bfloat16* p) {
  return *reinterpret_cast<const unsigned*>(p);
}

/// A matrix of float32 in the registers of a block of tile_warps warps.
template <int rows, int columns>
struct Tile {
  static constexpr int warp_rows = rows < 64 || columns >= 128 ? 2 : 4;
  static constexpr int warp_columns = tile_warps / warp_rows;
  static constexpr int own_rows = rows / warp_rows, own_columns = columns / warp_columns;
  static constexpr int m = own_rows / 16, n = own_columns / 8;
  static_assert(own_rows % 16 == 0 && own_columns % 16 == 0, "whole pairs of instructions");

  float x[m][n][4];

  __device__ __forceinline__ static int first_row() {
    return static_cast<int>(threadIdx.x) / 32 / warp_columns * own_rows;
  }
  __device__ __forceinline__ static int first_column() {
    return static_cast<int>(threadIdx.x) / 32 % warp_columns * own_columns;
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < n; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) x[i][j][e] = 0;
  }

  /// Calls run(row, column, x, y) with each pair of neighbours that the thread has.
  template <class Run>
  __device__ __forceinline__ void for_each_pair(const Run& run) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = first_row() + lane / 4, column = first_column() + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < n; ++j)
          run(row + 16 * i + 8 * half, column + 8 * j, x[i][j][2 * half], x[i][j][2 * half + 1]);
  }

  /// The same with both pairs of two tiles: run(row, column, x, y, x of other, y of other).
  template <class Run>
  __device__ __forceinline__ void for_each_pair(Tile& other, const Run& run) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = first_row() + lane / 4, column = first_column() + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int j = 0; j < n; ++j)
          run(row + 16 * i + 8 * half,
              column + 8 * j,
              x[i][j][2 * half],
              x[i][j][2 * half + 1],
              other.x[i][j][2 * half],
              other.x[i][j][2 * half + 1]);
  }

  /// *this += A B over `depth`. A is [rows, depth] with rows of `a_stride`, or stored transposed; B
  /// is [depth, columns], or stored transposed. Two steps at a time, since more of them loaded
  /// ahead do not fit the registers.
  template <int depth, bool a_transposed, bool b_transposed>
  __device__ __forceinline__ void add_product(const bfloat16* a,
                                              int a_stride,
                                              const bfloat16* b,
                                              int b_stride) {
    const int lane = static_cast<int>(threadIdx.x) % 32, matrix = lane / 8, r = lane % 8;
    const int row = first_row(), column = first_column();
    // Where the lane's row of the four matrices begins, for the first step.
    const bfloat16* from_a = a_transposed
                                 ? a + (matrix / 2 * 8 + r) * a_stride + row + matrix % 2 * 8
                                 : a + (row + lane % 16) * a_stride + lane / 16 * 8;
    const bfloat16* from_b = b_transposed
                                 ? b + (column + matrix / 2 * 8 + r) * b_stride + matrix % 2 * 8
                                 : b + (matrix % 2 * 8 + r) * b_stride + column + matrix / 2 * 8;
#pragma unroll 2
    for (int step = 0; step < depth; step += 16) {
      unsigned a_part[m][4];
#pragma unroll
      for (int i = 0; i < m; ++i)
        load_matrices<a_transposed>(
            a_part[i],
            a_transposed ? from_a + step * a_stride + 16 * i : from_a + 16 * i * a_stride + step);
#pragma unroll
      for (int j = 0; j < n; j += 2) {
        unsigned b_part[4];
        load_matrices<!b_transposed>(
            b_part,
            b_transposed ? from_b + 8 * j * b_stride + step : from_b + step * b_stride + 8 * j);
#pragma unroll
        for (int i = 0; i < m; ++i) {
          multiply_add(x[i][j], a_part[i], b_part[0], b_part[1]);
          multiply_add(x[i][j + 1], a_part[i], b_part[2], b_part[3]);
        }
      }
    }
  }

  /// As bfloat16 into a matrix in shared memory.
  __device__ __forceinline__ void round_to(bfloat16* to, int stride) {
    for_each_pair([&](int row, int column, float a, float b) {
      word_at(to + row * stride + column) = pack(a, b);
    });
  }
};

/// Row r of `sums` [warp columns, rows] receives each warp's sum of tile * matrix over its columns;
/// row_total adds them up behind a barrier.
template <int rows, int columns>
__device__ __forceinline__ void row_products(Tile<rows, columns>& tile,
                                             const bfloat16* matrix,
                                             int stride,
                                             float* sums) {
  using Shape = Tile<rows, columns>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(threadIdx.x) / 32 % Shape::warp_columns;
#pragma unroll
  for (int i = 0; i < Shape::m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = Shape::first_row() + 16 * i + 8 * half + lane / 4;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < Shape::n; ++j) {
        const unsigned word =
            word_at(matrix + row * stride + Shape::first_column() + 8 * j + lane % 4 * 2);
        sum += tile.x[i][j][2 * half] * low_half(word);
        sum += tile.x[i][j][2 * half + 1] * high_half(word);
      }
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      if (lane % 4 == 0) sums[part * rows + row] = sum;
    }
}
/// Column c of `sums` [warp rows, columns] receives each warp's sum of the tile over its rows;
/// column_total adds them up behind a barrier.
template <int rows, int columns>
__device__ __forceinline__ void column_sums(Tile<rows, columns>& tile, float* sums) {
  using Shape = Tile<rows, columns>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(threadIdx.x) / 32 / Shape::warp_columns;
#pragma unroll
  for (int j = 0; j < Shape::n; ++j)
#pragma unroll
    for (int next = 0; next < 2; ++next) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < Shape::m; ++i) sum += tile.x[i][j][next] + tile.x[i][j][2 + next];
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, distance);
      if (lane < 4) sums[part * columns + Shape::first_column() + 8 * j + lane * 2 + next] = sum;
    }
}
template <int rows, int columns>
__device__ __forceinline__ float column_total(const float* sums, int column) {
  float sum = 0;
#pragma unroll
  for (int part = 0; part < Tile<rows, columns>::warp_rows; ++part)
    sum += sums[part * columns + column];
  return sum;
}
/// The same of rows, each times `factors` of the columns: as row_products.
template <int rows, int columns>
__device__ __forceinline__ void row_sums(Tile<rows, columns>& tile,
                                         const float* factors,
                                         float* sums) {
  using Shape = Tile<rows, columns>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int part = static_cast<int>(threadIdx.x) / 32 % Shape::warp_columns;
#pragma unroll
  for (int i = 0; i < Shape::m; ++i)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = 0;
#pragma unroll
      for (int j = 0; j < Shape::n; ++j) {
        const float* factor = factors + Shape::first_column() + 8 * j + lane % 4 * 2;
        sum += tile.x[i][j][2 * half] * factor[0] + tile.x[i][j][2 * half + 1] * factor[1];
      }
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      if (lane % 4 == 0)
        sums[part * rows + Shape::first_row() + 16 * i + 8 * half + lane / 4] = sum;
    }
}
template <int rows, int columns>
__device__ __forceinline__ float row_total(const float* sums, int row) {
  float sum = 0;
#pragma unroll
  for (int part = 0; part < Tile<rows, columns>::warp_columns; ++part)
    sum += sums[part * rows + row];
  return sum;
}

/// Calls run(row, column) for the thread's 16-byte pieces of [rows, columns].
template <int rows, int columns, class Run>
__device__ __forceinline__ void for_each_piece(const Run& run) {
  constexpr int pieces = columns / 8, step = tile_threads / pieces;
  static_assert(rows % step == 0, "the same number of pieces for each thread");
  const int column = static_cast<int>(threadIdx.x) % pieces * 8;
#pragma unroll
  for (int i = 0; i < rows / step; ++i)
    run(static_cast<int>(threadIdx.x) / pieces + i * step, column);
}

/// Starts copying `rows` rows of `columns` to shared memory; zeros beyond `valid_rows` and
/// `valid_columns`, a multiple of 8.
template <int rows, int columns>
__device__ __forceinline__ void copy_rows(bfloat16* to,
                                          const bfloat16* from,
                                          int64_t stride,
                                          int valid_rows = rows,
                                          int valid_columns = columns) {
  for_each_piece<rows, columns>([&](int row, int column) {
    const bool wanted = row < valid_rows && column < valid_columns;
    copy_async(
        to + row * padded(columns) + column, wanted ? from + row * stride + column : from, wanted);
  });
}

/// The reverse, at once.
template <int rows, int columns>
__device__ __forceinline__ void write_rows(bfloat16* to,
                                           int64_t stride,
                                           const bfloat16* from,
                                           int valid_rows = rows,
                                           int valid_columns = columns) {
  for_each_piece<rows, columns>([&](int row, int column) {
    if (row < valid_rows && column < valid_columns)
      *reinterpret_cast<uint4*>(to + row * stride + column) =
          *reinterpret_cast<const uint4*>(from + row * padded(columns) + column);
  });
}

/// Asks for rows in the L2 cache that a later copy_rows reads; a line of 128 bytes a time.
template <int rows, int columns>
__device__ __forceinline__ void prefetch_rows(const bfloat16* from,
                                              int64_t stride,
                                              int valid_rows = rows,
                                              int valid_columns = columns) {
  constexpr int line = columns < 64 ? columns : 64, lines = columns / line;
  for (int i = static_cast<int>(threadIdx.x); i < rows * lines; i += tile_threads) {
    const int row = i / lines, column = i % lines * line;
    if (row < valid_rows && column < valid_columns) prefetch(from + row * stride + column);
  }
}

}  // namespace forge::ops::cuda
