#pragma once

// Compiles the kernels that use common/cuda.cuh or common/tensor_cores.cuh for the CPU, to test
// them where there is no GPU: include this before them. A block's threads are fibers of one thread
// that change at each barrier and each exchange between lanes; blocks run one after another.
// Instructions are those of the PTX manual: bfloat16 rounds to nearest even, products of bfloat16
// are exact, sums float32. Not thread-safe. What it cannot show is speed, and the inline assembly
// itself.

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#define FORGE_CUDA_EMULATION
// The namespace of the kernels, forge::ops::cuda, has another name here: a build with CUDA links
// these functions beside those that start the real kernels.
#define cuda emulated_cuda
#define __device__
#define __global__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static  // blocks run one after another

namespace forge::tests::cuda_emulation {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

/// One wait of a group of fibers for each other.
struct Meeting {
  int expected = 0, arrived = 0;
  unsigned generation = 0;
};

/// What lanes of a warp exchange; two, since a lane may be one exchange ahead.
struct Warp {
  Meeting meeting;
  int parity[32] = {};
  struct Exchange {
    const void* pointers[32];
    unsigned words[32][8];
  } exchanges[2];
};

struct Fiber {
  ucontext_t start;
  jmp_buf at;
  unsigned char* stack = nullptr;
  bool started = false, ended = false;
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<std::vector<std::pair<void*, const void*>>> copies;  ///< under way, of each thread
  Meeting all;
  int flag = 0;
  std::vector<unsigned char> shared;
  unsigned char* shared_begin = nullptr;
  std::function<void()> run;
  int current = 0, ended = 0;
  bool backwards = false;  ///< fibers change in the other order: shows missing barriers
  jmp_buf outside;
};

constexpr size_t stack_bytes = 64 << 10;

inline Block* block = nullptr;
inline Index thread_index, block_index, block_size, grid_size;

inline void enter(int next) {
  block->current = next;
  thread_index.x = static_cast<unsigned>(next);
  Fiber& fiber = block->fibers[next];
  if (fiber.started) _longjmp(fiber.at, 1);
  fiber.started = true;
  setcontext(&fiber.start);
}

inline int following(int fiber) {
  const int count = static_cast<int>(block->fibers.size());
  do fiber = (fiber + (block->backwards ? count - 1 : 1)) % count;
  while (block->fibers[fiber].ended);
  return fiber;
}

inline void change_fiber() {
  const int next = following(block->current);
  if (next == block->current) throw std::logic_error("a barrier that not all threads reach");
  if (_setjmp(block->fibers[block->current].at) == 0) enter(next);
}

inline void meet(Meeting& meeting) {
  const unsigned generation = meeting.generation;
  if (++meeting.arrived == meeting.expected) {
    meeting.arrived = 0;
    ++meeting.generation;
    return;
  }
  while (meeting.generation == generation) change_fiber();
}

inline void fiber_main() {
  block->run();
  block->fibers[block->current].ended = true;
  if (++block->ended == static_cast<int>(block->fibers.size())) _longjmp(block->outside, 1);
  enter(following(block->current));
}

inline Warp& own_warp() { return block->warps[thread_index.x / 32]; }
inline int own_lane() { return static_cast<int>(thread_index.x % 32); }

/// Shows `write`'s words to all lanes.
template <class Write>
const Warp::Exchange& exchange(const Write& write) {
  Warp& warp = own_warp();
  const int lane = own_lane();
  Warp::Exchange& shown = warp.exchanges[warp.parity[lane] ^= 1];
  write(shown, lane);
  meet(warp.meeting);
  return shown;
}

inline bool run_backwards = false;

/// Runs one block. Apart from launch(), whose variables a jump would put in doubt.
inline void run_block(Block& running, int threads, int shared_bytes) {
  // What a kernel has not written is not a number, and so seen if it is used.
  running.shared.assign(shared_bytes + 16, 0xff);
  const auto address = reinterpret_cast<uintptr_t>(running.shared.data());
  running.shared_begin = running.shared.data() + (16 - address % 16) % 16;
  running.warps.assign(threads / 32, Warp());
  for (Warp& warp : running.warps) warp.meeting.expected = 32;
  running.all = Meeting();
  running.all.expected = threads;
  running.flag = running.ended = 0;
  for (Fiber& fiber : running.fibers) {
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack;
    fiber.start.uc_stack.ss_size = stack_bytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, fiber_main, 0);
    fiber.started = fiber.ended = false;
  }
  if (_setjmp(running.outside) == 0) enter(running.backwards ? threads - 1 : 0);
}

/// Runs kernel(arguments...) for every block of the grid.
template <class Kernel, class... Arguments>
void launch(
    Kernel kernel, Index grid, int threads, int shared_bytes, const Arguments&... arguments) {
  Block running;
  running.fibers.resize(threads);
  running.copies.resize(threads);
  // Kept, since a fresh one costs more than what runs on it.
  static std::vector<std::vector<unsigned char>> stacks;
  while (static_cast<int>(stacks.size()) < threads) stacks.emplace_back(stack_bytes);
  for (int i = 0; i < threads; ++i) running.fibers[i].stack = stacks[i].data();
  running.run = [&] { kernel(arguments...); };
  running.backwards = run_backwards;
  block = &running;
  grid_size = grid;
  block_size = {static_cast<unsigned>(threads), 1, 1};
  for (block_index.z = 0; block_index.z < grid.z; ++block_index.z)
    for (block_index.y = 0; block_index.y < grid.y; ++block_index.y)
      for (block_index.x = 0; block_index.x < grid.x; ++block_index.x)
        run_block(running, threads, shared_bytes);
  block = nullptr;
}

}  // namespace forge::tests::cuda_emulation

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};

#define threadIdx (::forge::tests::cuda_emulation::thread_index)
#define blockIdx (::forge::tests::cuda_emulation::block_index)
#define blockDim (::forge::tests::cuda_emulation::block_size)
#define gridDim (::forge::tests::cuda_emulation::grid_size)

template <class T>
T __ldg(const T* p) {
  if (reinterpret_cast<uintptr_t>(p) % sizeof(T) != 0)
    throw std::logic_error("a read of memory that is not aligned");
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(uint64_t{a} * b >> 32);
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

inline void __syncthreads() {
  ::forge::tests::cuda_emulation::meet(::forge::tests::cuda_emulation::block->all);
}
inline int __syncthreads_or(int flag) {
  namespace emulation = ::forge::tests::cuda_emulation;
  __syncthreads();
  emulation::block->flag = 0;
  __syncthreads();
  emulation::block->flag |= flag;
  __syncthreads();
  const int any = emulation::block->flag;
  __syncthreads();
  return any != 0;
}
inline void __syncwarp() {
  ::forge::tests::cuda_emulation::meet(::forge::tests::cuda_emulation::own_warp().meeting);
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
inline float __shfl_from(float x, int from) {
  const auto& shown = ::forge::tests::cuda_emulation::exchange(
      [&](auto& all, int lane) { all.words[lane][0] = __float_as_uint(x); });
  return __uint_as_float(shown.words[from][0]);
}
inline float __shfl_sync(unsigned, float x, int from) { return __shfl_from(x, from); }
inline float __shfl_xor_sync(unsigned, float x, int mask) {
  return __shfl_from(x, ::forge::tests::cuda_emulation::own_lane() ^ mask);
}
inline float __shfl_up_sync(unsigned, float x, int distance) {
  const int lane = ::forge::tests::cuda_emulation::own_lane();
  return __shfl_from(x, lane >= distance ? lane - distance : lane);
}
inline float __shfl_down_sync(unsigned, float x, int distance) {
  const int lane = ::forge::tests::cuda_emulation::own_lane();
  return __shfl_from(x, lane + distance < 32 ? lane + distance : lane);
}

namespace forge::ops::cuda {

namespace emulation = forge::tests::cuda_emulation;

using cudaStream_t = void*;
using std::isfinite;
using std::max;
using std::min;

struct bfloat16 {
  uint16_t bits;
};
inline unsigned short bits_of(bfloat16 x) { return x.bits; }
inline float to_float(float x) { return x; }
inline float to_float(bfloat16 x) { return __uint_as_float(unsigned{x.bits} << 16); }
template <class T>
T from_float(float x);
template <>
inline bfloat16 from_float<bfloat16>(float x) {
  const unsigned bits = __float_as_uint(x);
  if (x != x) return {0x7fff};
  return {static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}
template <>
inline float from_float<float>(float x) {
  return x;
}

constexpr float log2_of_e = 1.4426950408889634f;
inline float power_of_two(float x) {
  const float y = std::exp2(x);
  return y < 1.17549435e-38f ? 0 : y;
}
inline float reciprocal(float x) { return 1 / x; }

inline unsigned char* shared_memory() { return emulation::block->shared_begin; }
inline void copy_async(void* shared, const void* global, bool wanted) {
  if (reinterpret_cast<uintptr_t>(shared) % 16 != 0 ||
      reinterpret_cast<uintptr_t>(global) % 16 != 0)
    throw std::logic_error("a copy of 16 bytes that is not aligned");
  emulation::block->copies[threadIdx.x].push_back({shared, wanted ? global : nullptr});
}
inline void prefetch(const void*) {}
/// Only here do the bytes arrive.
inline void wait_for_copies() {
  auto& copies = emulation::block->copies[threadIdx.x];
  for (const auto& [to, from] : copies) {
    if (from)
      std::memcpy(to, from, 16);
    else
      std::memset(to, 0, 16);
  }
  copies.clear();
}

inline unsigned pack(float low, float high) {
  return from_float<bfloat16>(low).bits | unsigned{from_float<bfloat16>(high).bits} << 16;
}

template <bool transposed>
void load_matrices(unsigned (&out)[4], const bfloat16* row) {
  const auto& shown = emulation::exchange([&](auto& all, int lane) { all.pointers[lane] = row; });
  const int lane = emulation::own_lane(), r = lane / 4, c = lane % 4 * 2;
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto at = [&](int i, int j) -> unsigned {
      return static_cast<const bfloat16*>(shown.pointers[8 * matrix + i])[j].bits;
    };
    out[matrix] = transposed ? at(c, r) | at(c + 1, r) << 16 : at(r, c) | at(r, c + 1) << 16;
  }
}

inline void multiply_add(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  const auto& shown = emulation::exchange([&](auto& all, int lane) {
    unsigned* words = all.words[lane];
    for (int i = 0; i < 4; ++i) words[i] = a[i];
    words[4] = b0;
    words[5] = b1;
  });
  const auto half = [](unsigned word, int which) {
    return __uint_as_float(which ? word & 0xffff0000u : word << 16);
  };
  const int lane = emulation::own_lane();
  for (int e = 0; e < 4; ++e) {
    const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (int k = 0; k < 16; ++k) {
      const int owner = k % 8 / 2;
      const unsigned of_a = shown.words[row % 8 * 4 + owner][row / 8 + k / 8 * 2];
      const unsigned of_b = shown.words[column * 4 + owner][4 + k / 8];
      sum[e] += half(of_a, k % 2) * half(of_b, k % 2);
    }
  }
}

}  // namespace forge::ops::cuda
