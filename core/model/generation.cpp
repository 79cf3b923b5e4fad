#include "core/model/generation.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <utf8proc.h>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::model {
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
              "its training may have diverged; 'forge runs' shows its loss",
              ExitCode::failed);
}

}  // namespace

void check(const SamplingOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    throw Error("temperature " + shortest(options.temperature) + " makes no sense",
                "a number from 0 on: 0 takes the likeliest token, 1 draws as the model says");
  }
  if (options.top_k < 0) {
    throw Error("top-k " + std::to_string(options.top_k) + " makes no sense",
                "how many of the likeliest tokens to draw from; 0: all");
  }
  if (!(options.top_p > 0) || options.top_p > 1) {
    throw Error("top-p " + shortest(options.top_p) + " makes no sense",
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

namespace {

/// How many bytes at the end of the text are the beginning of a character that is not whole yet.
size_t unfinished_character_bytes(std::string_view text) {
  for (size_t back = 1; back <= std::min<size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte >= 0x80 && byte < 0xc0) continue;         // not the first byte of a character
    const bool begins = byte >= 0xc2 && byte <= 0xf4;  // several bytes; the others never do
    const size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return begins && length > back ? back : 0;
  }
  return 0;
}

std::string as_utf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    utf8proc_int32_t code_point = 0;
    const utf8proc_ssize_t length =
        utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(bytes.data()),
                         static_cast<utf8proc_ssize_t>(bytes.size()),
                         &code_point);
    text += length > 0 ? bytes.substr(0, static_cast<size_t>(length)) : "\xef\xbf\xbd";
    bytes.remove_prefix(length > 0 ? static_cast<size_t>(length) : 1);
  }
  return text;
}

}  // namespace

void check_stop_texts(const std::vector<std::string>& texts) {
  if (std::find(texts.begin(), texts.end(), "") == texts.end()) return;
  throw Error("a stop text is empty", "it would end every sample before its first token");
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return "";
  held_ += bytes;
  const size_t stop = find_stop_text();
  if (stop != std::string::npos) {
    stopped_ = true;
    held_.resize(stop);
    return finish();
  }
  const std::string_view certain(held_.data(), held_.size() - possible_stop_bytes());
  const size_t shown = certain.size() - unfinished_character_bytes(certain);
  std::string text = as_utf8(certain.substr(0, shown));
  held_.erase(0, shown);
  return text;
}

std::string TextStream::finish() {
  std::string text = as_utf8(held_);
  held_.clear();
  return text;
}

size_t TextStream::find_stop_text() const {
  // The one that is whole first, so that it does not matter how the bytes were cut into tokens.
  size_t first_begin = std::string::npos, first_end = std::string::npos;
  for (const std::string& stop : stop_texts_) {
    const size_t begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    const size_t end = begin + stop.size();
    if (end < first_end || (end == first_end && begin < first_begin)) {
      first_begin = begin;
      first_end = end;
    }
  }
  return first_begin;
}

size_t TextStream::possible_stop_bytes() const {
  size_t most = 0;
  for (const std::string& stop : stop_texts_) {
    for (size_t size = std::min(stop.size() - 1, held_.size()); size > most; --size) {
      if (held_.compare(held_.size() - size, size, stop, 0, size) == 0) most = size;
    }
  }
  return most;
}

}  // namespace forge::model
