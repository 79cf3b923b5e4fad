#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace forge {

/// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
/// four 32-bit words for a 128-bit counter under a 64-bit key. No state: any number of any stream
/// can be computed directly, in any order, on any machine.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key);

/// 64-bit number of a stream's name, to give each use of one seed a stream of its own.
uint64_t stream_number(std::string_view name);

/// A sequence of random numbers: `seed` chooses the sequence, `stream` an independent one within
/// it, `position` the place to start at. The numbers are the same bits on every machine.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t stream, uint64_t position = 0)
      : seed_(seed), stream_(stream), position_(position) {}

  uint32_t next_u32();
  uint64_t next_u64();
  /// Uniform in [0, 1) with 53 random bits.
  double uniform();
  /// Uniform in 0 … bound-1 without bias; bound > 0.
  uint64_t below(uint64_t bound);

 private:
  uint64_t seed_;
  uint64_t stream_;
  uint64_t position_;  ///< of the next 32-bit word
  uint64_t block_ = ~uint64_t{0};
  std::array<uint32_t, 4> words_{};
};

/// Uniform number in the open interval (0, 1), exactly representable, from 32 random bits.
double open_uniform(uint32_t bits);

/// Standard normal quantile: x with P(X <= x) = p, for 0 < p < 1 (Wichura, AS 241 PPND16, relative
/// error 1e-16). Only IEEE operations and a logarithm of our own, so the bits do not depend on the
/// C library.
double normal_quantile(double p);

/// Standard normal distribution function, for the bounds of truncated distributions.
double normal_cdf(double x);

/// Natural logarithm of a positive finite number from IEEE additions, products and quotients only.
double portable_log(double x);

/// e^x from IEEE additions, products and quotients only: 0 below the smallest double, infinite
/// above the largest.
double portable_exp(double x);

/// A permutation of 0 … size-1 chosen by (seed, stream), evaluated at one place in O(1) time and
/// memory: a four-round Feistel network over Philox, walked until the value falls inside.
uint64_t permuted_index(uint64_t index, uint64_t size, uint64_t seed, uint64_t stream);

}  // namespace forge
