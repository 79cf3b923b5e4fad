#include "core/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::generation {
namespace {

int32_t likeliest(const double* logits, int64_t count) {
  return static_cast<int32_t>(std::max_element(logits, logits + count) - logits);
}

/// Throws Error where the logits are no distribution.
void require_numbers(const double* logits, int64_t count) {
  if (count < 1) throw Error("there are no logits to draw a token from");
  double wrong = *std::max_element(logits, logits + count);
  for (int64_t id = 0; id < count; ++id) {
    if (std::isnan(logits[id])) wrong = logits[id];
  }
  if (std::isfinite(wrong)) return;
  throw Error("the model's logits are " + shortest(wrong),
              {},
              "its training may have diverged; 'forge runs' shows its loss",
              ExitCode::failed);
}

}  // namespace

void check(const SamplingOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    throw Error("temperature " + shortest(options.temperature) + " makes no sense",
                {},
                "a number from 0 on: 0 takes the likeliest token, 1 draws as the model says");
  }
  if (options.top_k < 0) {
    throw Error("top-k " + std::to_string(options.top_k) + " makes no sense",
                {},
                "how many of the likeliest tokens to draw from; 0: all");
  }
  if (!(options.top_p > 0) || options.top_p > 1) {
    throw Error("top-p " + shortest(options.top_p) + " makes no sense",
                {},
                "a probability above 0 and at most 1, e.g. 0.95; 1 draws from all tokens");
  }
}

RandomStream sample_stream(uint64_t seed, int64_t prompt, int64_t sample) {
  const std::string name =
      "generate prompt " + std::to_string(prompt) + " sample " + std::to_string(sample);
  return {seed, stream_number(name)};
}

Sampler::Sampler(const SamplingOptions& options) : options_(options) { check(options); }

int32_t Sampler::choose(const double* logits, int64_t count, RandomStream& random) {
  require_numbers(logits, count);
  const int32_t best = likeliest(logits, count);
  if (options_.temperature == 0) return best;
  keep_candidates(logits, count);
  weights_.resize(static_cast<size_t>(count));
  for (const int32_t id : candidates_) {
    weights_[id] = portable_exp((logits[id] - logits[best]) / options_.temperature);
  }
  if (options_.top_p < 1) keep_most_probable();
  double total = 0;
  for (const int32_t id : candidates_) total += weights_[id];
  const double drawn = random.uniform() * total;
  double sum = 0;
  int32_t last = best;  // where rounding leaves the sum just below what was drawn
  for (const int32_t id : candidates_) {
    sum += weights_[id];
    if (weights_[id] > 0) last = id;
    if (sum > drawn) return id;
  }
  return last;
}

void Sampler::keep_candidates(const double* logits, int64_t count) {
  candidates_.resize(static_cast<size_t>(count));
  std::iota(candidates_.begin(), candidates_.end(), 0);
  if (options_.top_k == 0 || options_.top_k >= count) return;
  const auto end = candidates_.begin() + options_.top_k;
  std::nth_element(candidates_.begin(), end, candidates_.end(), [&](int32_t a, int32_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  candidates_.erase(end, candidates_.end());
  std::sort(candidates_.begin(), candidates_.end());
}

void Sampler::keep_most_probable() {
  double total = 0;
  for (const int32_t id : candidates_) total += weights_[id];
  // A heap, not a sorted list: most often a few of many tokens are enough.
  const auto less_likely = [&](int32_t a, int32_t b) {
    return weights_[a] != weights_[b] ? weights_[a] < weights_[b] : a > b;
  };
  std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
  auto end = candidates_.end();
  double sum = 0;
  while (end != candidates_.begin() && (end == candidates_.end() || sum < options_.top_p * total)) {
    std::pop_heap(candidates_.begin(), end, less_likely);
    --end;
    sum += weights_[*end];
  }
  candidates_.erase(candidates_.begin(), end);
  std::sort(candidates_.begin(), candidates_.end());
}

}  // namespace forge::generation
