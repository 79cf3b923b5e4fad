#pragma once

#include "backends/libtorch/ops/common/cuda.cuh"
#include "backends/libtorch/ops/gated_norm/cuda.h"

// A thread owns 8 channels of all tokens that it sees, so that sums over tokens stay in registers.
// The threads of D channels are a team, padded to a power of two or to whole warps, whose sums are
// exchanges between lanes and, of several warps, through shared memory.
// Grid: at most as many blocks as are resident. Block: 256 threads that share a few tokens, or as
// many as one token needs, at most 512.
namespace forge::ops::cuda {

constexpr int gate_vector = 8;
constexpr int gate_threads = 256, most_gate_threads = 512;
constexpr int gate_batch =
    2;  // tokens of a thread at a time: loads in flight, and sums of a barrier

/// How threads are given to channels.
struct GateTeams {
  int team;      ///< threads of D channels
  int of_token;  ///< threads of a token
  int slots;     ///< tokens of a block at a time
  int threads() const { return (of_token * slots + warp_size - 1) / warp_size * warp_size; }
};

inline GateTeams gate_teams(int64_t channels, int64_t width) {
  const int vectors = static_cast<int>((width + gate_vector - 1) / gate_vector);
  GateTeams teams{1, 0, 1};
  while (teams.team < vectors && teams.team < warp_size) teams.team *= 2;
  if (teams.team < vectors) teams.team = (vectors + warp_size - 1) / warp_size * warp_size;
  teams.of_token = static_cast<int>(channels / width) * teams.team;
  teams.slots = std::max(1, gate_threads / teams.of_token);
  return teams;
}

/// A thread's token among those of a block, and its channels.
struct GateLane {
  int slot, channel, in_group;
  bool active;
};

__device__ __forceinline__ GateLane gate_lane(const GateTeams& teams, int width) {
  const int thread = static_cast<int>(threadIdx.x), slot = thread / teams.of_token;
  const int in_token = thread - slot * teams.of_token;
  const int group = in_token / teams.team;
  const int in_group = (in_token - group * teams.team) * gate_vector;
  return {slot, group * width + in_group, in_group, slot < teams.slots && in_group < width};
}

/// Sums over each team, in all of its threads. All threads of the block call it. `call` counts the
/// calls: they use the two halves of `memory` in turn, so one barrier a call is enough.
template <int count>
__device__ __forceinline__ void sum_over_team(
    float (&sums)[count],
    const GateTeams& teams,
    float (&memory)[2][most_gate_threads / warp_size][count],
    int call) {
#pragma unroll
  for (int i = 0; i < count; ++i) {
    for (int distance = min(teams.team, warp_size) / 2; distance > 0; distance /= 2)
      sums[i] += __shfl_xor_sync(0xffffffffu, sums[i], distance);
  }
  if (teams.team <= warp_size) return;
  float(&of_warps)[most_gate_threads / warp_size][count] = memory[call & 1];
  const int warp = static_cast<int>(threadIdx.x / warp_size), warps = teams.team / warp_size;
  if (threadIdx.x % warp_size == 0) {
#pragma unroll
    for (int i = 0; i < count; ++i) of_warps[warp][i] = sums[i];
  }
  __syncthreads();
  const int first = warp / warps * warps;
  fill(sums, 0);
  for (int w = first; w < first + warps; ++w) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += of_warps[w][i];
  }
}

/// 8 channels that may begin anywhere, or where a vector can.
template <class T>
__device__ __forceinline__ void load_gate(const T* p, bool aligned, float (&out)[gate_vector]) {
  if (aligned) return load_input(p, out);
#pragma unroll
  for (int i = 0; i < gate_vector; ++i) out[i] = to_float(p[i]);
}
template <class T>
__device__ __forceinline__ void store_gate(T* p, bool aligned, const float (&in)[gate_vector]) {
  if (aligned) return store(p, in);
#pragma unroll
  for (int i = 0; i < gate_vector; ++i) p[i] = from_float<T>(in[i]);
}

/// Whether vectors of tokens that lie `stride` apart are aligned.
template <class T>
bool has_aligned_tokens(const T* p, int64_t stride) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0 && stride * int64_t{sizeof(T)} % 16 == 0;
}

/// What a thread reads of its channels once.
template <class T>
struct GateWeights {
  float weight[gate_vector], bias[gate_vector], factor;

  __device__ __forceinline__ void load(const GatedNormPass<T>& in, const GateLane& lane) {
    fill(weight, 0);
    fill(bias, 0);
    factor = 0;
    if (!lane.active) return;
    load_input(in.weight + lane.in_group, weight);
    if (in.bias) load_input(in.bias + lane.channel, bias);
    if (in.skip) factor = __ldg(in.factor + lane.channel / in.head_width);
  }
};

/// Of a token, a thread's channels: o + factor skip, the skip, and silu of the gate with its slope.
template <bool with_skip>
struct GateValues {
  float x[gate_vector], skip[with_skip ? gate_vector : 1], value[gate_vector], slope[gate_vector];

  template <class T>
  __device__ __forceinline__ void load(const GatedNormPass<T>& in,
                                       const GateLane& lane,
                                       const GateWeights<T>& w,
                                       int64_t token,
                                       bool gate_aligned,
                                       bool exists) {
    fill(x, 0);
    fill(skip, 0);
    fill(value, 0);
    if (exists) {
      const int64_t at = token * in.channels + lane.channel;
      load_input(in.o + at, x);
      load_gate(in.gate + token * in.gate_stride + lane.channel, gate_aligned, value);
      if constexpr (with_skip) load_input(in.skip + at, skip);
    }
#pragma unroll
    for (int i = 0; i < gate_vector; ++i) {
      if constexpr (with_skip) x[i] += w.factor * skip[i];
      const float g = value[i] + w.bias[i], s = sigmoid(g);
      value[i] = g * s;
      slope[i] = s * (1 + g * (1 - s));
    }
  }
  /// What is normed: its squares added up.
  __device__ __forceinline__ float squares(bool gate_first) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < gate_vector; ++i) {
      const float u = gate_first ? x[i] * value[i] : x[i];
      sum += u * u;
    }
    return sum;
  }
};

/// With x = o + factor skip, g = gate + bias and r = 1 / sqrt(mean of u^2 over D channels + eps):
///   y = w r x silu(g),  u = x silu(g) where the gate comes first, else x.
/// Grid, block: as above. Shared memory: 256 bytes. Moves o, gate, skip and y once: 3 or 4 B T C
/// elements.
template <class T, bool with_skip, int threads>
__global__ void __launch_bounds__(threads, threads == gate_threads ? 3 : 1)
    gated_norm_forward_kernel(GatedNormPass<T> in, GateTeams teams, bool gate_aligned) {
  __shared__ float memory[2][most_gate_threads / warp_size][gate_batch];
  const GateLane lane = gate_lane(teams, in.width);
  GateWeights<T> w;
  w.load(in, lane);
  const float inverse_width = 1 / static_cast<float>(in.width);
  const int64_t step = int64_t{teams.slots} * gate_batch;
  int call = 0;
  for (int64_t first = blockIdx.x * step; first < in.tokens; first += gridDim.x * step) {
    GateValues<with_skip> v[gate_batch];
    float sums[gate_batch];
#pragma unroll
    for (int b = 0; b < gate_batch; ++b) {
      const int64_t token = first + b * teams.slots + lane.slot;
      v[b].load(in, lane, w, token, gate_aligned, lane.active && token < in.tokens);
      sums[b] = v[b].squares(in.gate_first);
    }
    sum_over_team(sums, teams, memory, call++);
#pragma unroll
    for (int b = 0; b < gate_batch; ++b) {
      const int64_t token = first + b * teams.slots + lane.slot;
      const float scale = rsqrtf(sums[b] * inverse_width + in.eps);
      float y[gate_vector];
#pragma unroll
      for (int i = 0; i < gate_vector; ++i)
        y[i] = w.weight[i] * (v[b].x[i] * scale) * v[b].value[i];
      if (lane.active && token < in.tokens) store(in.y + token * in.channels + lane.channel, y);
    }
  }
}

/// Sums over a thread's tokens.
struct GateSums {
  float weight[gate_vector] = {}, bias[gate_vector] = {}, factor = 0;
};

/// Adds a block's sums up in a fixed order and writes its row of them. All threads call it.
/// Shared memory: 16 KiB.
template <class T>
__device__ __forceinline__ void write_gate_sums(const GateSums& sums,
                                                const GatedNormPass<T>& in,
                                                const GateTeams& teams,
                                                const GateLane& lane,
                                                float* partial) {
  __shared__ float memory[most_gate_threads][gate_vector];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int channels = static_cast<int>(in.channels), groups = channels / in.width;
  const int heads = in.skip ? channels / in.head_width : 0;
  float* row = partial + blockIdx.x * (in.width + (in.bias ? in.channels : 0) + heads);
  // The thread of a slot that owns a channel.
  const auto owner = [&](int slot, int channel) {
    const int group = channel / in.width;
    return slot * teams.of_token + group * teams.team + (channel - group * in.width) / gate_vector;
  };
  const auto show = [&](const float(&values)[gate_vector]) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < gate_vector; ++i) memory[thread][i] = lane.active ? values[i] : 0.0f;
    __syncthreads();
  };
  show(sums.weight);
  for (int c = thread; c < in.width; c += threads) {
    float sum = 0;
    for (int slot = 0; slot < teams.slots; ++slot)
      for (int group = 0; group < groups; ++group)
        sum += memory[owner(slot, group * in.width + c)][c % gate_vector];
    row[c] = sum;
  }
  row += in.width;
  if (in.bias) {
    show(sums.bias);
    for (int c = thread; c < channels; c += threads) {
      float sum = 0;
      for (int slot = 0; slot < teams.slots; ++slot) sum += memory[owner(slot, c)][c % gate_vector];
      row[c] = sum;
    }
    row += channels;
  }
  if (heads == 0) return;
  const float of_factor[gate_vector] = {sums.factor};
  show(of_factor);
  for (int head = thread; head < heads; head += threads) {
    float sum = 0;
    for (int slot = 0; slot < teams.slots; ++slot)
      for (int c = 0; c < in.head_width; c += gate_vector)
        sum += memory[owner(slot, head * in.head_width + c)][0];
    row[head] = sum;
  }
}

/// With n = u r, what y is but for the gate behind it and w, and s = silu(g), s' its slope:
///   du = r (dn - n mean(dn n)),  dn = dy w, times s where the gate comes last
///   gate first: dx = du s, dg = du x s';   gate last: dx = du, dg = dy w n s'
///   do = dx, dskip = factor dx,
/// and for every block sums over its tokens for w, bias and factor. y as in the forward pass, if it
/// is not null.
/// Grid, block: as above. Shared memory: 17 KiB. Moves o, gate, skip, dy, their gradients and y
/// once: 5 to 8 B T C elements, and a row of 4 (D + C + H) bytes for each block.
template <class T, bool with_skip, int threads>
__global__ void __launch_bounds__(threads, threads == gate_threads ? 3 : 1)
    gated_norm_backward_kernel(GatedNormPass<T> in,
                               GatedNormGradient<T> grad,
                               GateTeams teams,
                               bool gate_aligned,
                               bool grad_aligned,
                               float* partial) {
  __shared__ float memory[2][most_gate_threads / warp_size][2];
  const GateLane lane = gate_lane(teams, in.width);
  GateWeights<T> w;
  w.load(in, lane);
  GateSums sums;
  const float inverse_width = 1 / static_cast<float>(in.width);
  int call = 0;
  for (int64_t first = int64_t{blockIdx.x} * teams.slots; first < in.tokens;
       first += int64_t{gridDim.x} * teams.slots) {
    const int64_t token = first + lane.slot, at = token * in.channels + lane.channel;
    const bool exists = lane.active && token < in.tokens;
    GateValues<with_skip> v;
    float up[gate_vector];
    fill(up, 0);
    if (exists) load_input(grad.y + at, up);
    v.load(in, lane, w, token, gate_aligned, exists);
    float both[2] = {v.squares(in.gate_first), 0};
#pragma unroll
    for (int i = 0; i < gate_vector; ++i) both[1] += up[i] * w.weight[i] * v.x[i] * v.value[i];
    sum_over_team(both, teams, memory, call++);
    if (!exists) continue;
    const float scale = rsqrtf(both[0] * inverse_width + in.eps);
    const float mean = both[1] * scale * inverse_width;
    float y[gate_vector], of_o[gate_vector], of_gate[gate_vector];
#pragma unroll
    for (int i = 0; i < gate_vector; ++i) {
      const float before =
          in.gate_first ? v.value[i] : 1.0f;  // factors of the two sides of the norm
      const float behind = in.gate_first ? 1.0f : v.value[i];
      const float n = v.x[i] * before * scale, of_n = up[i] * w.weight[i] * behind;
      const float of_u = scale * (of_n - n * mean);
      y[i] = w.weight[i] * (v.x[i] * scale) * v.value[i];  // the bits of the forward pass
      of_o[i] = of_u * before;
      of_gate[i] = (in.gate_first ? of_u * v.x[i] : up[i] * w.weight[i] * n) * v.slope[i];
      sums.weight[i] += up[i] * n * behind;
      sums.bias[i] += of_gate[i];
      if constexpr (with_skip) sums.factor += of_o[i] * v.skip[i];
    }
    store(grad.o + at, of_o);
    store_gate(grad.gate + token * grad.gate_stride + lane.channel, grad_aligned, of_gate);
    if (in.y) store(in.y + at, y);
    if constexpr (with_skip) {
#pragma unroll
      for (int i = 0; i < gate_vector; ++i) of_o[i] *= w.factor;
      store(grad.skip + at, of_o);
    }
  }
  write_gate_sums(sums, in, teams, lane, partial);
}

/// Calls run(with a skip, threads of a block at most), constants.
template <class T, class Run>
void dispatch_gate(const GatedNormPass<T>& in, const GateTeams& teams, const Run& run) {
  const auto with_threads = [&](auto skip) {
    teams.threads() <= gate_threads ? run(skip, std::integral_constant<int, gate_threads>{})
                                    : run(skip, std::integral_constant<int, most_gate_threads>{});
  };
  in.skip ? with_threads(std::true_type{}) : with_threads(std::false_type{});
}

/// `start` as for short_conv.
template <class T, class Start>
void run_gated_norm_forward(const GatedNormPass<T>& in, const Start& start) {
  if (in.tokens == 0) return;
  const GateTeams teams = gate_teams(in.channels, in.width);
  dispatch_gate(in, teams, [&](auto skip, auto threads) {
    const auto kernel = gated_norm_forward_kernel<T, skip, threads>;
    const int64_t step = int64_t{teams.slots} * gate_batch;
    const int64_t blocks =
        balanced_blocks((in.tokens + step - 1) / step, start.resident(kernel, teams.threads()));
    start(kernel,
          static_cast<unsigned>(blocks),
          1,
          teams.threads(),
          in,
          teams,
          has_aligned_tokens(in.gate, in.gate_stride));
  });
}

template <class T, class Start>
void run_gated_norm_backward(const GatedNormPass<T>& in,
                             const GatedNormGradient<T>& grad,
                             const AllocateRows& sums,
                             const Start& start) {
  const GateTeams teams = gate_teams(in.channels, in.width);
  dispatch_gate(in, teams, [&](auto skip, auto threads) {
    const auto kernel = gated_norm_backward_kernel<T, skip, threads>;
    const int64_t blocks = balanced_blocks((in.tokens + teams.slots - 1) / teams.slots,
                                           start.resident(kernel, teams.threads()));
    float* partial = sums(std::max<int64_t>(blocks, 1));
    if (in.tokens == 0) return;
    start(kernel,
          static_cast<unsigned>(blocks),
          1,
          teams.threads(),
          in,
          grad,
          teams,
          has_aligned_tokens(in.gate, in.gate_stride),
          has_aligned_tokens(grad.gate, grad.gate_stride),
          partial);
  });
}

}  // namespace forge::ops::cuda
