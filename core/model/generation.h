#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"

namespace forge::model {

/// How the next token is drawn from a model's logits.
struct SamplingOptions {
  double temperature = 0.8;  ///< logits are divided by it; 0: always the likeliest token
  int64_t top_k = 0;         ///< only this number of likeliest tokens; 0: all
  double top_p = 1;          ///< only the likeliest tokens that together have this probability
};

/// Throws Error naming the option that makes no sense, and what would.
void check(const SamplingOptions& options);

/// The random numbers of one sample: a stream of its own for each, so that a sample's tokens do not
/// depend on how many others are drawn beside it.
RandomStream sample_stream(uint64_t seed, int64_t prompt, int64_t sample);

/// Draws tokens. In this order: the logits are divided by the temperature; the top_k likeliest
/// stay; of these the likeliest stay until their probabilities, which sum to 1 over what was left,
/// reach top_p ("nucleus", Holtzman et al., "The Curious Case of Neural Text Degeneration", ICLR
/// 2020), one at the least; one of these is drawn. Of equal logits the lower id counts as the
/// likelier one.
///
/// Everything is computed in double precision from IEEE operations alone: the same logits and the
/// same stream give the same token on every machine. To be used by one thread.
class Sampler {
 public:
  /// Throws Error as check does.
  explicit Sampler(const SamplingOptions& options);

  /// The next token for `count` logits. Takes one number of the stream, none at temperature 0.
  /// Throws Error where no logit is above all others, or one is not a number.
  int32_t choose(const double* logits, int64_t count, RandomStream& random);

 private:
  /// Puts the ids that may be drawn into candidates_, ascending.
  void keep_candidates(const double* logits, int64_t count);
  void keep_most_probable();

  SamplingOptions options_;
  std::vector<int32_t> candidates_;
  std::vector<double> weights_;  ///< of every id: its probability but for a common factor
};

/// Throws Error where one of the texts is empty: it would stand before every token.
void check_stop_texts(const std::vector<std::string>& texts);

/// Turns the bytes of tokens, which come one after another, into text that may be shown at once.
/// What may still be the beginning of a stop text is held back, and so is a character of which some
/// bytes are missing. Bytes that are no UTF-8 become U+FFFD.
class TextStream {
 public:
  /// `stop_texts`, none of them empty, end the text: it is cut in front of the first that is whole.
  explicit TextStream(std::vector<std::string> stop_texts) : stop_texts_(std::move(stop_texts)) {}

  /// Takes more bytes; returns what can be shown now. After a stop text nothing more comes.
  std::string push(std::string_view bytes);
  /// No more bytes come: returns what was held back.
  std::string finish();
  /// Whether a stop text came.
  bool stopped() const { return stopped_; }

 private:
  /// Where the stop text that is whole first begins; npos: none is.
  size_t find_stop_text() const;
  /// How many bytes at the end may be the beginning of a stop text.
  size_t possible_stop_bytes() const;

  std::vector<std::string> stop_texts_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace forge::model
