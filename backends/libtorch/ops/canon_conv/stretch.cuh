#pragma once

#include <algorithm>
#include <type_traits>

#include "backends/libtorch/ops/common/cuda.cuh"

/// The causal convolution of a Canon layer as a march over time: a thread owns a few channels and
/// goes from token to token. What the taps reach back to stays in a ring of registers, and as many
/// tokens are always on their way from memory. So each input is read once, but for the reach at the
/// beginning of a stretch, and what an operation does next with the outputs costs no memory at all.
///
/// A ring has as many slots as there are tokens in the body of a loop, so that the slot of each is
/// a constant: token t + i of a round lies in slot i, the token before it in the slot before, and
/// before slot 0 is the last one.
namespace forge::ops::cuda {

/// Tokens begin … end - 1 of a row of the batch.
struct Stretch {
  int64_t first_token;  ///< of the row, in the batch
  int begin, end;
  int length;  ///< of the row
};

/// All stretches of a batch; the last of a row may be shorter than the others.
struct Stretches {
  unsigned size, per_row, count;

  __device__ __forceinline__ Stretch at(const Sequences& s, unsigned index) const {
    const unsigned length = static_cast<unsigned>(s.length), row = index / per_row;
    const unsigned begin = (index - row * per_row) * size;
    return {row * s.length,
            static_cast<int>(begin),
            static_cast<int>(min(begin + size, length)),
            static_cast<int>(length)};
  }
};

inline Stretches stretches_of(const Sequences& s, int64_t size) {
  const int64_t per_row = (s.length + size - 1) / size;
  return {static_cast<unsigned>(size),
          static_cast<unsigned>(per_row),
          static_cast<unsigned>(s.batch * per_row)};
}

/// Stretches for workers that take one each in a round, `at_once` of them. Long ones read little
/// twice, but leave workers idle in the last round: of the multiples of `step` this takes the size
/// with which the rounds are the shortest together.
inline Stretches even_stretches(const Sequences& s, int64_t at_once, int64_t step) {
  // What the beginning of a stretch costs, in tokens: the reach, and waiting for the first ones.
  constexpr int64_t beginning = 8;
  Stretches best = stretches_of(s, std::max<int64_t>((s.length + step - 1) / step, 1) * step);
  const auto time = [&](const Stretches& x) {
    return (x.count + at_once - 1) / at_once * (x.size + beginning);
  };
  for (int64_t size = step; size < s.length; size += step) {
    const Stretches other = stretches_of(s, size);
    if (time(other) < time(best)) best = other;
  }
  return best;
}

/// Slots of a ring: the tokens of a round.
template <int taps>
constexpr int slots = taps > 0 ? 4 : 2;

/// The slot of the token `back` before that of slot i.
template <int count>
__device__ __forceinline__ constexpr int slot_before(int i, int back) {
  return (i + count - back) % count;
}

/// A thread's channels of the tokens of a row, one after the other; `count` of them are on their
/// way.
template <class T, int count, int width>
struct Incoming {
  static constexpr int step = elements_of_access<T, width>, accesses = width / step;
  Pack<T, step> packs[count][accesses];
  const T* next;  ///< of the token that is asked for next
  int64_t stride;
  int token, limit;

  /// Tokens first, first + 1, …; those before 0 and from `end` on are zeros. The channels of token
  /// 0 begin at `row`.
  __device__ __forceinline__ void begin(const T* row, int64_t apart, int first, int end) {
    next = row + first * apart;
    stride = apart;
    token = first;
    limit = end;
#pragma unroll
    for (int i = 0; i < count; ++i) ask(i, token >= 0);
  }
  /// The next token, the round's i'th.
  __device__ __forceinline__ void take(int i, float (&out)[width]) {
#pragma unroll
    for (int j = 0; j < accesses; ++j) unpack(packs[i][j], out + j * step);
    ask(i, true);
  }

 private:
  __device__ __forceinline__ void ask(int i, bool exists) {
#pragma unroll
    for (int j = 0; j < accesses; ++j) {
      packs[i][j] = {};
      if (exists && token < limit) packs[i][j] = read_only<T, step>(next + j * step);
    }
    next += stride;
    ++token;
  }
};

/// Fills the slots of the `reach` tokens before `first`, which will be a round's slot 0.
template <int reach, class T, int count, int width>
__device__ __forceinline__ void fill_before(const T* row,
                                            int64_t stride,
                                            int first,
                                            float (&ring)[count][width]) {
#pragma unroll
  for (int back = 1; back <= reach; ++back) {
    float(&slot)[width] = ring[slot_before<count>(0, back)];
    fill(slot, 0);
    if (first >= back) load_input(row + (first - back) * stride, slot);
  }
}

/// Documents of the tokens of a ring, where a row has several.
template <int count, bool documents>
struct DocumentRing {
  int32_t ids[documents ? count : 1];

  /// Fills the slots of all tokens before `first`.
  __device__ __forceinline__ void begin(const Sequences& s, const Stretch& stretch, int first) {
#pragma unroll
    for (int i = 0; i < count; ++i) take(s, stretch, first - count + i, i);
  }
  /// Token t, the round's i'th.
  __device__ __forceinline__ void take(const Sequences& s, const Stretch& stretch, int t, int i) {
    if constexpr (documents)
      ids[i] = t >= 0 && t < stretch.length ? __ldg(s.doc_ids + stretch.first_token + t) : -1;
  }
  __device__ __forceinline__ bool same(int i, int j) const {
    if constexpr (documents) return ids[i] == ids[j];
    return true;
  }
};

/// The taps of neighbouring channels from weights [C, taps], current token first. With a residual
/// one more of the current token is added.
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

/// The convolution's output for the token in slot i; without taps the token itself.
template <int taps, int count, int width, bool documents, int kept>
__device__ __forceinline__ void convolve(const float (&x)[count][width],
                                         const DocumentRing<count, documents>& docs,
                                         const float (&w)[kept][width],
                                         int i,
                                         float (&out)[width]) {
#pragma unroll
  for (int j = 0; j < width; ++j) out[j] = taps > 0 ? w[0][j] * x[i][j] : x[i][j];
#pragma unroll
  for (int tap = 1; tap < taps; ++tap) {
    const int before = slot_before<count>(i, tap);
    if (!docs.same(i, before)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) out[j] += w[tap][j] * x[before][j];
  }
}

/// The way back: the gradient of an input, from those of the outputs that read it, the last of
/// which lies in slot i.
template <int taps, int count, int width, bool documents, int kept>
__device__ __forceinline__ void gather(const float (&grad)[count][width],
                                       const DocumentRing<count, documents>& docs,
                                       const float (&w)[kept][width],
                                       int i,
                                       float (&out)[width]) {
  const int own = slot_before<count>(i, taps > 0 ? taps - 1 : 0);
#pragma unroll
  for (int j = 0; j < width; ++j) out[j] = taps > 0 ? w[0][j] * grad[own][j] : grad[own][j];
#pragma unroll
  for (int tap = 1; tap < taps; ++tap) {
    const int later = slot_before<count>(i, taps - 1 - tap);
    if (!docs.same(own, later)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) out[j] += w[tap][j] * grad[later][j];
  }
}

/// What that input, x, adds to the gradients of the taps.
template <int taps, int count, int width, bool documents, int kept>
__device__ __forceinline__ void add_tap_products(const float (&grad)[count][width],
                                                 const DocumentRing<count, documents>& docs,
                                                 const float (&x)[width],
                                                 int i,
                                                 float (&sums)[kept][width]) {
  const int own = slot_before<count>(i, taps > 0 ? taps - 1 : 0);
#pragma unroll
  for (int tap = 0; tap < taps; ++tap) {
    const int later = slot_before<count>(i, taps - 1 - tap);
    if (!docs.same(own, later)) continue;
#pragma unroll
    for (int j = 0; j < width; ++j) sums[tap][j] += grad[later][j] * x[j];
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
