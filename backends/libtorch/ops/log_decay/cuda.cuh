#pragma once

#include "backends/libtorch/ops/common/cuda.cuh"
#include "backends/libtorch/ops/log_decay/cuda.h"

// Element by element. A thread keeps its channels from token to token, so that sums over tokens
// stay in registers; a block's threads share a few tokens.
namespace forge::ops::cuda {

constexpr int decay_vector = 8, decay_threads = 256;

/// log(1 + e^x), exact in both tails.
__device__ __forceinline__ float softplus(float x) {
  return (x > 0 ? x : 0.0f) + log1pf(expf(x > 0 ? -x : x));
}

/// How `columns` pieces of a token are given to the threads of blocks: thread n of a block takes
/// piece n % of_token of token n / of_token.
struct DecayGrid {
  int of_token, slots;
  unsigned columns;  ///< blocks that a token takes
};

inline DecayGrid decay_grid(int64_t pieces) {
  const int of_token = static_cast<int>(std::min<int64_t>(pieces, decay_threads));
  return {of_token,
          decay_threads / of_token,
          static_cast<unsigned>((pieces + of_token - 1) / of_token)};
}

struct DecayLane {
  int slot;
  int64_t piece;
  bool active;
};

__device__ __forceinline__ DecayLane decay_lane(const DecayGrid& grid, int64_t pieces) {
  const int thread = static_cast<int>(threadIdx.x), slot = thread / grid.of_token;
  const int64_t piece = int64_t{blockIdx.x} * grid.of_token + thread - slot * grid.of_token;
  return {slot, piece, slot < grid.slots && piece < pieces};
}

/// Calls run(token) for each of a thread's tokens.
template <class Run>
__device__ __forceinline__ void for_each_token(const DecayGrid& grid,
                                               const DecayLane& lane,
                                               int64_t tokens,
                                               const Run& run) {
  if (!lane.active) return;
  const int64_t step = int64_t{gridDim.y} * grid.slots;
  for (int64_t token = int64_t{blockIdx.y} * grid.slots + lane.slot; token < tokens; token += step)
    run(token);
}

/// Adds the values of a block's slots up and writes them to row[piece count + i]. All threads call
/// it. Shared memory: 1 KiB for each value.
template <int count>
__device__ __forceinline__ void write_slot_sums(const float (&values)[count],
                                                const DecayGrid& grid,
                                                const DecayLane& lane,
                                                float* row) {
  __shared__ float memory[count][decay_threads];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i) memory[i][threadIdx.x] = values[i];
  __syncthreads();
  if (!lane.active || lane.slot > 0) return;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    float sum = 0;
    for (int slot = 0; slot < grid.slots; ++slot)
      sum += memory[i][slot * grid.of_token + static_cast<int>(threadIdx.x)];
    row[lane.piece * count + i] = sum;
  }
}

/// log(sigmoid(x + bias)) / normalizer.
/// Grid: [pieces of 8 channels / 256, blocks over tokens]. Block: 256 threads. Shared memory: none.
/// Reads B T C elements, writes as many floats.
template <class T>
__global__ void __launch_bounds__(decay_threads)
    log_decay_forward_kernel(LogDecayPass<T> in, DecayGrid grid, float* log_decay) {
  const DecayLane lane = decay_lane(grid, in.channels / decay_vector);
  float bias[decay_vector];
  if (lane.active) load_input(in.bias + lane.piece * decay_vector, bias);
  const float factor = -1 / in.normalizer;
  for_each_token(grid, lane, in.tokens, [&](int64_t token) {
    const int64_t at = token * in.channels + lane.piece * decay_vector;
    float x[decay_vector];
    load_input(in.x + at, x);
#pragma unroll
    for (int i = 0; i < decay_vector; ++i) x[i] = factor * softplus(-(x[i] + bias[i]));
    store(log_decay + at, x);
  });
}

/// dx = d(log decay) (1 - sigmoid(x + bias)) / normalizer, and for every block its sum over tokens.
/// Grid, block: as above. Shared memory: 8 KiB. Reads B T C elements and as many floats, writes B T
/// C elements and a row of 4 C bytes for each block.
template <class T>
__global__ void __launch_bounds__(decay_threads) log_decay_backward_kernel(
    LogDecayPass<T> in, DecayGrid grid, const float* grad, T* grad_x, float* partial) {
  const DecayLane lane = decay_lane(grid, in.channels / decay_vector);
  float bias[decay_vector], sums[decay_vector];
  fill(sums, 0);
  if (lane.active) load_input(in.bias + lane.piece * decay_vector, bias);
  const float factor = 1 / in.normalizer;
  for_each_token(grid, lane, in.tokens, [&](int64_t token) {
    const int64_t at = token * in.channels + lane.piece * decay_vector;
    float x[decay_vector], up[decay_vector];
    load_input(in.x + at, x);
    load_input(grad + at, up);
#pragma unroll
    for (int i = 0; i < decay_vector; ++i) {
      x[i] = up[i] * factor * sigmoid(-(x[i] + bias[i]));
      sums[i] += x[i];
    }
    store(grad_x + at, x);
  });
  write_slot_sums(sums, grid, lane, partial + blockIdx.y * in.channels);
}

/// With s = softplus(step + step_bias): log decay = -e^a_log s, beta = sigmoid(write) or s.
/// Grid: [1, blocks over tokens]. Block: 256 threads, for a token of one head each. Shared memory:
/// none. Reads 1 or 2 B T H elements, writes 2 B T H floats.
template <class T>
__global__ void __launch_bounds__(decay_threads)
    head_gates_forward_kernel(HeadGatesPass<T> in, DecayGrid grid, float* log_decay, float* beta) {
  const DecayLane lane = decay_lane(grid, in.heads);
  const float rate = lane.active ? -expf(in.a_log[lane.piece]) : 0.0f;
  const float bias = lane.active ? in.step_bias[lane.piece] : 0.0f;
  for_each_token(grid, lane, in.tokens, [&](int64_t token) {
    const int64_t at = token * in.heads + lane.piece;
    const float s = softplus(to_float(in.step[token * in.step_stride + lane.piece]) + bias);
    log_decay[at] = rate * s;
    beta[at] = in.write ? sigmoid(to_float(in.write[token * in.write_stride + lane.piece])) : s;
  });
}

/// ds = -e^a_log d(log decay) [+ dbeta],  dstep = ds sigmoid(step + step_bias),
/// dwrite = dbeta beta (1 - beta), and for every block sums over tokens of d(log decay) log decay
/// for a_log and of dstep for step_bias. Grid, block: as above. Shared memory: 1 KiB. Reads 1 or 2
/// B T H elements and 2 B T H floats, writes 1 or 2 B T H elements and a row of 8 H bytes for each
/// block.
template <class T>
__global__ void __launch_bounds__(decay_threads)
    head_gates_backward_kernel(HeadGatesPass<T> in,
                               DecayGrid grid,
                               const float* grad_log_decay,
                               const float* grad_beta,
                               T* grad_step,
                               T* grad_write,
                               float* partial) {
  const DecayLane lane = decay_lane(grid, in.heads);
  const float rate = lane.active ? -expf(in.a_log[lane.piece]) : 0.0f;
  const float bias = lane.active ? in.step_bias[lane.piece] : 0.0f;
  float of_a[1] = {0}, of_bias[1] = {0};
  for_each_token(grid, lane, in.tokens, [&](int64_t token) {
    const int64_t at = token * in.heads + lane.piece;
    const float z = to_float(in.step[token * in.step_stride + lane.piece]) + bias;
    const float up = grad_log_decay[at], of_beta = grad_beta[at];
    const float of_step = (rate * up + (in.write ? 0.0f : of_beta)) * sigmoid(z);
    of_a[0] += up * rate * softplus(z);
    of_bias[0] += of_step;
    grad_step[at] = from_float<T>(of_step);
    if (!in.write) return;
    const float b = sigmoid(to_float(in.write[token * in.write_stride + lane.piece]));
    grad_write[at] = from_float<T>(of_beta * b * (1 - b));
  });
  float* row = partial + blockIdx.y * 2 * in.heads;
  write_slot_sums(of_a, grid, lane, row);
  write_slot_sums(of_bias, grid, lane, row + in.heads);
}

/// start as for short_conv. Blocks over tokens of a kernel that gives `columns` blocks to a token.
template <class Kernel, class Start>
unsigned decay_blocks(Kernel kernel, const DecayGrid& grid, int64_t tokens, const Start& start) {
  const int64_t rows =
      std::max<int64_t>(start.resident(kernel, decay_threads) / int64_t{grid.columns}, 1);
  const int64_t work = (tokens + grid.slots - 1) / grid.slots;
  return static_cast<unsigned>(std::max<int64_t>(balanced_blocks(work, rows), 1));
}

template <class T, class Start>
void run_log_decay_forward(const LogDecayPass<T>& in, float* log_decay, const Start& start) {
  if (in.tokens * in.channels == 0) return;
  const DecayGrid grid = decay_grid(in.channels / decay_vector);
  const auto kernel = log_decay_forward_kernel<T>;
  start(kernel,
        grid.columns,
        decay_blocks(kernel, grid, in.tokens, start),
        decay_threads,
        in,
        grid,
        log_decay);
}

template <class T, class Start>
void run_log_decay_backward(const LogDecayPass<T>& in,
                            const float* grad_log_decay,
                            T* grad_x,
                            const AllocateRows& sums,
                            const Start& start) {
  const DecayGrid grid = decay_grid(in.channels / decay_vector);
  const auto kernel = log_decay_backward_kernel<T>;
  const unsigned blocks = decay_blocks(kernel, grid, in.tokens, start);
  float* partial = sums(blocks);
  if (in.tokens * in.channels == 0) return;
  start(kernel, grid.columns, blocks, decay_threads, in, grid, grad_log_decay, grad_x, partial);
}

template <class T, class Start>
void run_head_gates_forward(const HeadGatesPass<T>& in,
                            float* log_decay,
                            float* beta,
                            const Start& start) {
  if (in.tokens == 0) return;
  const DecayGrid grid = decay_grid(in.heads);
  const auto kernel = head_gates_forward_kernel<T>;
  start(kernel,
        grid.columns,
        decay_blocks(kernel, grid, in.tokens, start),
        decay_threads,
        in,
        grid,
        log_decay,
        beta);
}

template <class T, class Start>
void run_head_gates_backward(const HeadGatesPass<T>& in,
                             const float* grad_log_decay,
                             const float* grad_beta,
                             T* grad_step,
                             T* grad_write,
                             const AllocateRows& sums,
                             const Start& start) {
  const DecayGrid grid = decay_grid(in.heads);
  const auto kernel = head_gates_backward_kernel<T>;
  const unsigned blocks = decay_blocks(kernel, grid, in.tokens, start);
  float* partial = sums(blocks);
  if (in.tokens == 0) return;
  start(kernel,
        grid.columns,
        blocks,
        decay_threads,
        in,
        grid,
        grad_log_decay,
        grad_beta,
        grad_step,
        grad_write,
        partial);
}

}  // namespace forge::ops::cuda
