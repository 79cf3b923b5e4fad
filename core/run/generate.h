#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/model/generation.h"
#include "core/run/open_model.h"
#include "core/worker/launcher.h"

namespace forge::run {

/// What a user asks of a model.
struct GenerationQuestion {
  std::vector<std::string> prompts;
  int samples = 1;  ///< of each prompt
  int64_t max_tokens = 256;
  std::vector<std::string> stop;  ///< texts that end a sample
  model::SamplingOptions sampling;
  uint64_t seed = 0;
  bool cache = true;    ///< false: compute every token from its whole row again
  int batch_size = 32;  ///< samples at a time
  std::string device = "auto";
  int threads = 0;
};

/// Throws Error for values that make no sense, before a model is opened.
void check_generation(const GenerationQuestion& question);

/// A continuation of one prompt.
struct GeneratedSample {
  size_t prompt = 0;
  int sample = 0;            ///< 0 … samples - 1 of its prompt
  std::string text;          ///< UTF-8, up to the stop text
  std::vector<int32_t> ids;  ///< without the one that ended the sequence
  worker::FinishReason ended = worker::FinishReason::none;  ///< none: stopped on request
};

struct Throughput {
  int64_t tokens = 0;
  double seconds = 0;
  /// 0 if nothing was measured.
  double tokens_per_second() const { return seconds > 0 ? double(tokens) / seconds : 0; }
};

struct Generated {
  std::vector<GeneratedSample> samples;  ///< those of the first prompt first
  std::vector<int64_t> prompt_tokens;    ///< of each prompt, BOS included
  Throughput prefill;                    ///< the prompts
  Throughput decode;                     ///< all tokens but the first of each sample
  worker::Environment environment;       ///< what it ran on
};

/// Lets a worker continue prompts. Each is a document of its own, as in training: BOS if the
/// vocabulary has one, then the text. A sample ends at EOS or BOS (without EOS: at any special
/// token), at a stop text, after max_tokens, or at the length of the training rows. `on_text` gets
/// each piece of text that later tokens cannot change, and the sample so far. Throws Error for a
/// question that makes no sense, a model without a tokenizer, a prompt that is too long, and as
/// worker::run_job does.
Generated generate(
    const RunModel& model,
    const GenerationQuestion& question,
    const worker::Backend& backend,
    worker::Launcher& launcher,
    const std::function<void(const GeneratedSample& sample, const std::string& piece)>& on_text);

/// "stop text", "end of sequence", …
std::string describe(worker::FinishReason ending);

}  // namespace forge::run
