#include "backends/libtorch/worker/jobs.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/events.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/config/experiment.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/model/generation.h"

namespace forge::libtorch {
namespace {

using worker::FinishReason;
using worker::Generation;

/// One sample while it grows.
struct Sample {
  int64_t number = 0;
  int64_t read = 0;    ///< tokens of its row that the model has read
  int64_t tokens = 0;  ///< that were drawn
  RandomStream random;
  model::TextStream text;
};

using OnTokens = std::function<void(const worker::Tokens&)>;
using Stopped = std::function<bool()>;

class Generator {
 public:
  Generator(const Model& model,
            const Generation& wanted,
            const OnTokens& on_tokens,
            const Stopped& stopped)
      : model_(model),
        wanted_(wanted),
        on_tokens_(on_tokens),
        stopped_(stopped),
        timer_(model.options().device()),
        sampler_({wanted.temperature, wanted.top_k, wanted.top_p}) {
    if (!wanted.stop.empty()) tokenizer_ = data::load_tokenizer(wanted.tokenizer);
  }

  /// Samples first … last - 1, side by side.
  void run_batch(int64_t first, int64_t last) {
    std::vector<Sample> samples;
    int64_t longest = 0;
    for (int64_t number = first; number < last; ++number) {
      const int64_t prompt = number / wanted_.samples;
      const auto length = static_cast<int64_t>(wanted_.prompts[static_cast<size_t>(prompt)].size());
      longest = std::max(longest, length);
      samples.push_back({number,
                         length,
                         0,
                         model::sample_stream(wanted_.seed, prompt, number % wanted_.samples),
                         model::TextStream(wanted_.stop)});
    }
    Decoder decoder(
        model_, wanted_.cache, std::min(wanted_.context, longest + wanted_.max_tokens - 1));
    at::Tensor logits = begin(decoder, samples);
    timer_.resume();
    while (!stopped_()) {
      std::vector<int64_t> kept;
      TokenIds tokens;
      const size_t before = samples.size();
      draw(logits, samples, kept, tokens);
      if (samples.empty()) break;
      if (samples.size() < before) decoder.select(kept);
      logits = decoder.next(tokens);
      timing_.decode_tokens += static_cast<int64_t>(samples.size());
    }
    timing_.decode_seconds += timer_.pause();
  }
  const GenerationTiming& timing() const { return timing_; }

 private:
  /// Reads the prompts of the samples, each once. Returns logits [samples, V].
  at::Tensor begin(Decoder& decoder, const std::vector<Sample>& samples) {
    std::vector<TokenIds> prompts;
    std::vector<int64_t> prompt_of;  // of each sample, its place in `prompts`
    int64_t last = -1;
    for (const Sample& sample : samples) {
      const int64_t prompt = sample.number / wanted_.samples;
      if (prompt != last) prompts.push_back(wanted_.prompts[static_cast<size_t>(prompt)]);
      last = prompt;
      prompt_of.push_back(static_cast<int64_t>(prompts.size()) - 1);
    }
    for (const TokenIds& prompt : prompts) {
      timing_.prefill_tokens += static_cast<int64_t>(prompt.size());
    }
    timer_.resume();
    const at::Tensor logits = decoder.begin(std::move(prompts));
    timing_.prefill_seconds += timer_.pause();
    if (wanted_.samples == 1) return logits;
    decoder.select(prompt_of);
    return logits.index_select(0, at::tensor(prompt_of, at::kLong).to(logits.device()));
  }

  /// Draws a token for each sample and says so. Drops the samples that ended; `kept` are the places
  /// where the others were, `tokens` theirs.
  void draw(const at::Tensor& logits,
            std::vector<Sample>& samples,
            std::vector<int64_t>& kept,
            TokenIds& tokens) {
    const at::Tensor numbers = logits.to(at::kCPU, at::kDouble).contiguous();
    const int64_t vocab_size = numbers.size(1);
    worker::Tokens drawn;
    std::vector<Sample> going_on;
    for (size_t place = 0; place < samples.size(); ++place) {
      Sample& sample = samples[place];
      const double* row = numbers.data_ptr<double>() + static_cast<int64_t>(place) * vocab_size;
      const int32_t token = sampler_.choose(row, vocab_size, sample.random);
      const FinishReason ending = ending_of(sample, token);
      drawn.samples.push_back(sample.number);
      drawn.ids.push_back(token);
      drawn.ended.push_back(ending);
      if (ending != FinishReason::none) continue;
      ++sample.read;
      kept.push_back(static_cast<int64_t>(place));
      tokens.push_back(token);
      going_on.push_back(std::move(sample));
    }
    samples = std::move(going_on);
    on_tokens_(drawn);
  }

  FinishReason ending_of(Sample& sample, int32_t token) const {
    const std::vector<int32_t>& ends = wanted_.end_ids;
    if (std::find(ends.begin(), ends.end(), token) != ends.end())
      return FinishReason::end_of_sequence;
    if (tokenizer_ && token < tokenizer_->vocab_size()) {
      sample.text.push(tokenizer_->decode_continuation({token}));
      if (sample.text.stopped()) return FinishReason::stop_text;
    }
    if (++sample.tokens >= wanted_.max_tokens) return FinishReason::length;
    return sample.read >= wanted_.context ? FinishReason::context : FinishReason::none;
  }

  const Model& model_;
  const Generation& wanted_;
  const OnTokens& on_tokens_;
  const Stopped& stopped_;
  Timer timer_;
  model::Sampler sampler_;
  std::optional<data::Tokenizer> tokenizer_;  ///< where there are stop texts to find
  GenerationTiming timing_;
};

void check(const Generation& wanted, const model::ModelConfig& model) {
  if (wanted.prompts.empty() || wanted.samples < 1 || wanted.max_tokens < 1 ||
      wanted.batch_size < 1) {
    throw Error("there is nothing to generate",
                "prompts, samples, max_tokens and batch_size are at least 1");
  }
  model::check_stop_texts(wanted.stop);
  for (const TokenIds& prompt : wanted.prompts) {
    const auto length = static_cast<int64_t>(prompt.size());
    if (length < 1 || length > wanted.context) {
      throw Error("a prompt has " + std::to_string(length) + " tokens",
                  "at least one, at most the context of " + std::to_string(wanted.context));
    }
    for (const int32_t id : prompt) {
      if (id >= 0 && id < model.vocab_size) continue;
      throw Error("a prompt has the token id " + std::to_string(id),
                  "the model's vocabulary has " + std::to_string(model.vocab_size));
    }
  }
}

}  // namespace

GenerationTiming generate_tokens(const Model& model,
                                 const Generation& wanted,
                                 const OnTokens& on_tokens,
                                 const Stopped& stopped) {
  check(wanted, model.config());
  Generator generator(model, wanted, on_tokens, stopped);
  const int64_t count = static_cast<int64_t>(wanted.prompts.size()) * wanted.samples;
  for (int64_t first = 0; first < count && !stopped(); first += wanted.batch_size) {
    generator.run_batch(first, std::min(count, first + wanted.batch_size));
  }
  return generator.timing();
}

worker::Result generate(const worker::Request& request,
                        const at::Device& device,
                        const EventWriter& events) {
  if (!request.generation) throw Error("generate needs 'generation', what to generate");
  const config::Experiment experiment = config::experiment_from_json(request.experiment);
  check(*request.generation, experiment.model);  // before the weights are read
  const c10::InferenceMode inference_mode;
  const Model model = load_model(request, experiment, device);
  const GenerationTiming timing = generate_tokens(
      model,
      *request.generation,
      [&](const worker::Tokens& tokens) { events.send(tokens); },
      stop_requested);
  return {{{"prefill_tokens", timing.prefill_tokens},
           {"prefill_seconds", timing.prefill_seconds},
           {"decode_tokens", timing.decode_tokens},
           {"decode_seconds", timing.decode_seconds}}};
}

}  // namespace forge::libtorch
