#include "core/run/generate.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/model/generation.h"
#include "core/worker/job.h"
#include "core/worker/json_fields.h"

namespace forge::run {
namespace {

constexpr int64_t max_samples = 65'536;

std::vector<int32_t> end_ids(const data::Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  if (tokenizer.eos_id() >= 0) {
    ids.push_back(tokenizer.eos_id());
    if (tokenizer.bos_id() >= 0) ids.push_back(tokenizer.bos_id());
    return ids;
  }
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.vocabulary().special[static_cast<size_t>(id)]) ids.push_back(id);
  }
  return ids;
}

/// What a document of that beginning begins with, and not what ends one. Of an empty one that is
/// the end of the document before, where nothing else is put in front of texts.
std::vector<int32_t> encode_prompt(const std::string& prompt, const data::Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  tokenizer.append_beginning(prompt, ids);
  return ids.empty() ? tokenizer.encode_document(prompt) : ids;
}

std::vector<std::vector<int32_t>> encode_prompts(const GenerationQuestion& question,
                                                 const data::Tokenizer& tokenizer,
                                                 int64_t context) {
  std::vector<std::vector<int32_t>> prompts;
  for (size_t i = 0; i < question.prompts.size(); ++i) {
    prompts.push_back(encode_prompt(question.prompts[i], tokenizer));
    const auto length = static_cast<int64_t>(prompts.back().size());
    if (length <= context) continue;
    const bool alone = question.prompts.size() == 1;
    throw Error((alone ? "the prompt" : "prompt " + std::to_string(i + 1)) + " has " +
                    with_thousands(length) + " tokens, the model reads no more than " +
                    with_thousands(context),
                "its rows were as long in training (train.seq_len); shorten the prompt");
  }
  return prompts;
}

worker::Request request_for(const RunModel& model,
                            const GenerationQuestion& question,
                            const data::Tokenizer& tokenizer) {
  worker::Generation generation;
  generation.context = model.experiment.train.seq_len;
  generation.prompts = encode_prompts(question, tokenizer, generation.context);
  generation.samples = question.samples;
  generation.max_tokens = question.max_tokens;
  generation.temperature = question.sampling.temperature;
  generation.top_k = question.sampling.top_k;
  generation.top_p = question.sampling.top_p;
  generation.seed = question.seed;
  generation.end_ids = end_ids(tokenizer);
  generation.stop = question.stop;
  generation.tokenizer = fs::absolute(model.tokenizer).string();
  generation.cache = question.cache;
  generation.batch_size = question.batch_size;
  worker::Request request =
      model_request(worker::Job::generate, model, question.device, question.threads);
  request.generation = std::move(generation);
  const size_t bytes = worker::to_line(request).size();
  if (bytes > worker::max_line_bytes) {
    throw Error(
        "the prompts are too long together: a request of " + human_bytes(double(bytes)),
        "a worker takes one of " + human_bytes(worker::max_line_bytes) + "; ask in several calls");
  }
  return request;
}

/// The samples while their tokens come in.
class Samples {
 public:
  Samples(const GenerationQuestion& question, const data::Tokenizer& tokenizer, int vocab_size)
      : tokenizer_(tokenizer), vocab_size_(vocab_size), max_tokens_(question.max_tokens) {
    for (size_t prompt = 0; prompt < question.prompts.size(); ++prompt) {
      for (int sample = 0; sample < question.samples; ++sample) {
        samples_.push_back({prompt, sample, "", {}, worker::FinishReason::none});
        streams_.emplace_back(question.stop);
      }
    }
  }

  template <class OnText>
  void add(const worker::Tokens& tokens, const OnText& on_text) {
    if (tokens.ids.size() != tokens.samples.size() || tokens.ended.size() != tokens.ids.size()) {
      refuse_answer("the worker's tokens do not fit its samples");
    }
    for (size_t i = 0; i < tokens.ids.size(); ++i) {
      const auto number = static_cast<size_t>(tokens.samples[i]);
      if (number >= samples_.size()) {
        refuse_answer("the worker speaks of a sample " + std::to_string(number));
      }
      GeneratedSample& sample = samples_[number];
      // A worker may leave the search for stop texts to forge, and goes on behind one then.
      if (sample.ended != worker::FinishReason::none) continue;
      require_sound(tokens.ids[i], sample);
      const std::string piece = add(tokens.ids[i], tokens.ended[i], sample, streams_[number]);
      sample.text += piece;
      if (!piece.empty()) on_text(sample, piece);
    }
  }

  std::vector<GeneratedSample> finish() {
    for (size_t i = 0; i < samples_.size(); ++i) samples_[i].text += streams_[i].finish();
    return std::move(samples_);
  }

 private:
  void require_sound(int32_t id, const GeneratedSample& sample) const {
    if (id < 0 || id >= vocab_size_) {
      refuse_answer("the worker gave token " + std::to_string(id) + " of a model that has " +
                    with_thousands(vocab_size_));
    }
    if (static_cast<int64_t>(sample.ids.size()) < max_tokens_) return;
    refuse_answer("the worker gave a sample more than " + with_thousands(max_tokens_) + " tokens");
  }

  std::string add(int32_t id,
                  worker::FinishReason ended,
                  GeneratedSample& sample,
                  model::TextStream& stream) const {
    sample.ended = ended;
    if (ended == worker::FinishReason::end_of_sequence) return stream.finish();
    sample.ids.push_back(id);
    std::string piece = stream.push(text_of(id));
    if (stream.stopped()) sample.ended = worker::FinishReason::stop_text;
    if (sample.ended != worker::FinishReason::none) piece += stream.finish();
    return piece;
  }

  /// A model's vocabulary may be larger than its tokenizer's.
  std::string text_of(int32_t id) const {
    return id < tokenizer_.vocab_size() ? tokenizer_.decode_continuation({id}) : "\xef\xbf\xbd";
  }

  const data::Tokenizer& tokenizer_;
  int vocab_size_;
  int64_t max_tokens_;
  std::vector<GeneratedSample> samples_;
  std::vector<model::TextStream> streams_;
};

/// What a worker's result must hold.
struct Throughputs {
  int64_t prefill_tokens = 0;
  double prefill_seconds = 0;
  int64_t decode_tokens = 0;
  double decode_seconds = 0;
};

template <class Visitor>
void fields(Visitor& visit, Throughputs& answer) {
  visit.field("prefill_tokens", answer.prefill_tokens);
  visit.field("prefill_seconds", answer.prefill_seconds);
  visit.field("decode_tokens", answer.decode_tokens);
  visit.field("decode_seconds", answer.decode_seconds);
}

Throughput throughput_of(int64_t tokens, double seconds) {
  if (std::isfinite(seconds) && seconds >= 0) return {tokens, seconds};
  refuse_answer("the worker measured " + shortest(seconds) + " seconds");
}

}  // namespace

void check_generation(const GenerationQuestion& question) {
  model::check(question.sampling);
  model::check_stop_texts(question.stop);
  if (question.prompts.empty())
    throw Error("there is no prompt", "give one with --prompt or --prompt-file");
  for (size_t i = 0; i < question.prompts.size(); ++i) {
    if (!question.prompts[i].empty()) continue;
    const bool alone = question.prompts.size() == 1;
    throw Error(alone ? "the prompt is empty" : "prompt " + std::to_string(i + 1) + " is empty",
                "give a non-empty prompt");
  }
  const auto at_least_one = [](const std::string& what, int64_t number) {
    if (number < 1)
      throw Error(what + " " + std::to_string(number) + " makes no sense", "1 at least");
  };
  at_least_one("max-tokens", question.max_tokens);
  at_least_one("samples", question.samples);
  at_least_one("batch-size", question.batch_size);
  const int64_t count = int64_t{question.samples} * static_cast<int64_t>(question.prompts.size());
  if (count > max_samples) {
    throw Error(with_thousands(count) + " samples were asked for",
                "at most " + with_thousands(max_samples) + " at a time");
  }
}

Generated generate(
    const RunModel& model,
    const GenerationQuestion& question,
    const worker::Backend& backend,
    worker::Launcher& launcher,
    const std::function<void(const GeneratedSample& sample, const std::string& piece)>& on_text) {
  check_generation(question);
  const data::Tokenizer tokenizer = model_tokenizer(model);
  const worker::Request request = request_for(model, question, tokenizer);
  Samples samples(question, tokenizer, model.experiment.model.vocab_size);
  Generated generated;
  for (const auto& prompt : request.generation->prompts) {
    generated.prompt_tokens.push_back(static_cast<int64_t>(prompt.size()));
  }
  const auto on_event = [&](const worker::Event& event) {
    if (const auto* tokens = std::get_if<worker::Tokens>(&event)) samples.add(*tokens, on_text);
    if (const auto* said = std::get_if<worker::Environment>(&event)) generated.environment = *said;
  };
  const nlohmann::json values =
      worker::job_result(launcher, backend.command(request), request, on_event);
  generated.samples = samples.finish();
  const auto answer = worker::read_fields<Throughputs>(values, "the worker's result");
  generated.prefill = throughput_of(answer.prefill_tokens, answer.prefill_seconds);
  generated.decode = throughput_of(answer.decode_tokens, answer.decode_seconds);
  return generated;
}

std::string describe(worker::FinishReason ending) {
  switch (ending) {
    case worker::FinishReason::none: return "stopped";
    case worker::FinishReason::stop_text: return "stop text";
    case worker::FinishReason::end_of_sequence: return "end of sequence";
    case worker::FinishReason::length: return "length";
    case worker::FinishReason::context: return "context";
  }
  return "";
}

}  // namespace forge::run
