#include "backends/libtorch/ops/embedding/cuda.h"

#include <cub/device/device_radix_sort.cuh>

#include "backends/libtorch/ops/common/cuda.cuh"

namespace forge::ops::cuda {
namespace {

constexpr int width = 8;  // channels of a vector

/// y[n] = w[ids[n]].
/// Grid, block: a thread for each vector of 8 channels of y, 256 a block. Shared memory: none.
/// Moves the rows that are read and y: 2 N C elements at most, and 4 N bytes of ids.
template <class T>
__global__ void gather_kernel(
    const T* w, const int32_t* ids, int64_t count, int64_t channels, T* y) {
  const int64_t vectors = channels / width;
  const int64_t index = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (index >= count * vectors) return;
  const int64_t row = index / vectors, c = index % vectors * width;
  float x[width];
  load(w + ids[row] * channels + c, x);
  store(y + row * channels + c, x);
}

/// positions[i] = i.
/// Grid, block: a thread for each i, 256 a block. Shared memory: none. Writes 4 N bytes.
__global__ void iota_kernel(int32_t* positions, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) positions[i] = static_cast<int32_t>(i);
}

/// The positions 0 … count - 1 sorted by their ids, stably, and for each id of the vocabulary the
/// range of its positions in that order (0, 0 if it has none).
struct SortedIds {
  int32_t* sorted;     ///< [count]
  int32_t* positions;  ///< [count]
  int32_t* begins;     ///< [vocabulary]
  int32_t* ends;       ///< [vocabulary]
};

/// The range of each id's positions: begins[id] = i if sorted[i - 1] != sorted[i] = id, and
/// ends[id] = i + 1 if sorted[i + 1] != id.
/// Grid, block: a thread for each position, 256 a block. Shared memory: none. Reads 4 N bytes, each
/// number three times through the cache, and writes 8 bytes for each id that occurs.
__global__ void bounds_kernel(SortedIds ids, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const int32_t id = ids.sorted[i];
  if (i == 0 || ids.sorted[i - 1] != id) ids.begins[id] = static_cast<int32_t>(i);
  if (i + 1 == count || ids.sorted[i + 1] != id) ids.ends[id] = static_cast<int32_t>(i + 1);
}

/// grad_w[v] = sum over the positions n of id v of grad_y[n], in a fixed order.
/// Grid: a block for each id v of the vocabulary. Block: 256 threads, in groups that each span the
/// channels; group i takes positions i, i + groups, …, and the first group adds the groups' sums.
/// Shared memory: 4 C bytes for each group, where several fit.
/// Moves grad_y and grad_w once: N C and V C elements.
template <class T, class Out>
__global__ void sum_gradients_by_id(SortedIds ids, const T* grad_y, int64_t channels, Out* grad_w) {
  extern __shared__ float sums[];  // [groups][channels]
  const int64_t id = blockIdx.x;
  const int begin = ids.begins[id], end = ids.ends[id];
  const int vectors = static_cast<int>(channels / width);
  const int groups = max(1, static_cast<int>(blockDim.x) / vectors);
  const int group = static_cast<int>(threadIdx.x) / vectors;
  const bool many = groups > 1 && end - begin > 1;
  for (int vector = groups == 1 ? threadIdx.x : threadIdx.x % vectors; vector < vectors;
       vector += groups == 1 ? blockDim.x : vectors) {
    float sum[width];
    fill(sum, 0);
    if (groups == 1 || group < groups) {
      const int first = groups == 1 ? begin : begin + group, step = groups == 1 ? 1 : groups;
#pragma unroll 4
      for (int i = first; i < end; i += step) {
        float x[width];
        load(grad_y + int64_t{ids.positions[i]} * channels + vector * width, x);
#pragma unroll
        for (int j = 0; j < width; ++j) sum[j] += x[j];
      }
    }
    if (many) {
      if (group < groups) store(sums + group * channels + vector * width, sum);
    } else if (groups == 1 || group == 0) {
      store(grad_w + id * channels + vector * width, sum);
    }
  }
  if (!many) return;
  __syncthreads();
  if (group > 0) return;
  const int vector = threadIdx.x;
  float sum[width];
  fill(sum, 0);
  for (int other = 0; other < min(groups, end - begin); ++other) {
    float x[width];
    load(sums + other * channels + vector * width, x);
#pragma unroll
    for (int j = 0; j < width; ++j) sum[j] += x[j];
  }
  store(grad_w + id * channels + vector * width, sum);
}

constexpr int threads = 256;

unsigned blocks_for(int64_t count) {
  return static_cast<unsigned>((count + threads - 1) / threads);
}

SortedIds sort_ids(const int32_t* ids,
                   int64_t count,
                   int64_t vocabulary,
                   const Allocate& allocate,
                   cudaStream_t stream) {
  auto* numbers = static_cast<int32_t*>(allocate(sizeof(int32_t) * (3 * count + 2 * vocabulary)));
  int32_t* unsorted = numbers + 2 * count;
  const SortedIds out{numbers, numbers + count, unsorted + count, unsorted + count + vocabulary};
  cudaMemsetAsync(out.begins, 0, sizeof(int32_t) * 2 * vocabulary, stream);
  if (count == 0) return out;
  int bits = 1;
  while (int64_t{1} << bits < vocabulary) ++bits;
  iota_kernel<<<blocks_for(count), threads, 0, stream>>>(unsorted, count);
  require_started();
  const auto sort = [&](void* memory, size_t& bytes) {  // without memory: its size in bytes
    cub::DeviceRadixSort::SortPairs(memory,
                                    bytes,
                                    ids,
                                    out.sorted,
                                    static_cast<const int32_t*>(unsorted),
                                    out.positions,
                                    static_cast<int>(count),
                                    0,
                                    bits,
                                    stream);
  };
  size_t bytes = 0;
  sort(nullptr, bytes);
  sort(allocate(bytes), bytes);
  bounds_kernel<<<blocks_for(count), threads, 0, stream>>>(out, count);
  require_started();
  return out;
}

}  // namespace

template <class T>
void gather_rows(
    const T* w, const int32_t* ids, int64_t count, int64_t channels, T* y, cudaStream_t stream) {
  if (count == 0) return;
  gather_kernel<<<blocks_for(count * (channels / width)), threads, 0, stream>>>(
      w, ids, count, channels, y);
  require_started();
}

template <class T, class Out>
void sum_rows_by_id(const int32_t* ids,
                    int64_t count,
                    const T* grad_y,
                    int64_t vocabulary,
                    int64_t channels,
                    Out* grad_w,
                    const Allocate& allocate,
                    cudaStream_t stream) {
  if (vocabulary == 0) return;
  const SortedIds sorted = sort_ids(ids, count, vocabulary, allocate, stream);
  const int64_t vectors = channels / width;
  const int64_t groups = vectors >= threads ? 1 : threads / vectors;
  const size_t bytes = groups > 1 ? groups * channels * sizeof(float) : 0;
  sum_gradients_by_id<<<static_cast<unsigned>(vocabulary), threads, bytes, stream>>>(
      sorted, grad_y, channels, grad_w);
  require_started();
}

template void gather_rows(const float*, const int32_t*, int64_t, int64_t, float*, cudaStream_t);
template void gather_rows(
    const bfloat16*, const int32_t*, int64_t, int64_t, bfloat16*, cudaStream_t);
#define FORGE_SUM_ROWS_BY_ID(T, Out) \
  template void sum_rows_by_id(      \
      const int32_t*, int64_t, const T*, int64_t, int64_t, Out*, const Allocate&, cudaStream_t)
FORGE_SUM_ROWS_BY_ID(float, float);
FORGE_SUM_ROWS_BY_ID(bfloat16, float);
FORGE_SUM_ROWS_BY_ID(bfloat16, bfloat16);
#undef FORGE_SUM_ROWS_BY_ID

}  // namespace forge::ops::cuda
