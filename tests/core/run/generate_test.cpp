#include "core/run/generate.h"

#include "core/base/error.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "core/run/open_model.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/fake_runs.h"

namespace forge::run {
namespace {

using namespace tests;
using worker::FinishReason;

/// Generation by a worker whose lines are written down.
class GenerationScene {
 public:
  GenerationScene() {
    data::save_tokenizer(tokenizer, folder_ / "tokenizer.json");
    model.tokenizer = folder_ / "tokenizer.json";
    model.checkpoint = folder_ / "checkpoints/000000010";
    model.experiment.model.vocab_size = tokenizer.vocab_size() + 10;
    model.experiment.train.seq_len = 16;
    question.prompts = {"a"};
  }

  /// Ids of a text, byte by byte.
  std::vector<int32_t> ids(const std::string& text) const {
    std::vector<int32_t> list;
    tokenizer.append_continuation(text, list);
    return list;
  }

  void says(const std::vector<int64_t>& samples,
            const std::vector<int32_t>& tokens,
            std::vector<FinishReason> ended = {}) {
    ended.resize(tokens.size(), FinishReason::none);
    tokens_.push_back(Says{worker::to_line(worker::Tokens{samples, tokens, ended})});
  }

  Generated run() {
    Script script = {Says{lines::hello}, Says{lines::environment}};
    script.insert(script.end(), tokens_.begin(), tokens_.end());
    script.push_back(Says{
        R"({"event":"result","values":{"prefill_tokens":3,"prefill_seconds":0.5,"decode_tokens":0,"decode_seconds":0}})"});
    script.push_back(Exits{});
    launcher_.add({script, {}});
    const CommandBackend backend({"worker"});
    pieces.clear();
    const auto on_text = [&](const GeneratedSample& sample, const std::string& piece) {
      pieces += std::to_string(sample.prompt) + "." + std::to_string(sample.sample) + piece + "|";
    };
    return generate(model, question, backend, launcher_, on_text);
  }

  std::string fault() {
    return error_of([&] { run(); });
  }

  bool has_started_a_worker() const { return !launcher_.launches.empty(); }
  worker::Request request() const {
    return worker::request_from_line(launcher_.launches.at(0).input);
  }

  const data::Tokenizer tokenizer{data::initial_vocabulary()};
  RunModel model;
  GenerationQuestion question;
  std::string pieces;

 private:
  TemporaryFolder folder_;
  FakeClock clock_;
  FakeLauncher launcher_{clock_, {}};
  Script tokens_;
};

TEST_CASE("a worker is told what to generate in token ids", "[run][generate]") {
  GenerationScene scene;
  scene.question.prompts = {"ab", "c"};
  scene.question.samples = 2;
  scene.question.sampling = {0.5, 7, 0.9};
  scene.question.seed = 3;
  scene.question.stop = {"end"};
  scene.question.cache = false;
  scene.run();
  const worker::Request request = scene.request();
  REQUIRE(request.job == worker::Job::generate);
  const worker::Generation& generation = request.generation.value();
  REQUIRE(generation.prompts ==
          std::vector<std::vector<int32_t>>{scene.tokenizer.encode_document("ab"),
                                            scene.tokenizer.encode_document("c")});
  REQUIRE(generation.prompts[0][0] == scene.tokenizer.bos_id());
  REQUIRE(generation.context == 16);
  REQUIRE(generation.samples == 2);
  REQUIRE(generation.top_k == 7);
  REQUIRE(generation.seed == 3);
  REQUIRE(generation.end_ids ==
          std::vector<int32_t>{scene.tokenizer.eos_id(), scene.tokenizer.bos_id()});
  REQUIRE(generation.stop == std::vector<std::string>{"end"});
  REQUIRE(generation.tokenizer == scene.model.tokenizer.string());
  REQUIRE_FALSE(generation.cache);
  REQUIRE(request.initial_weights == scene.model.checkpoint.string());
}

TEST_CASE("what ends a document does not stand behind a prompt", "[run][generate]") {
  GenerationScene scene;
  data::Vocabulary vocabulary = data::initial_vocabulary();
  vocabulary.after_text = {vocabulary.eos_id};
  data::save_tokenizer(data::Tokenizer(vocabulary), scene.model.tokenizer);
  scene.question.prompts = {"ab"};
  scene.run();
  CHECK(scene.request().generation.value().prompts[0] == scene.tokenizer.encode_document("ab"));
}

TEST_CASE("tokens become text as soon as it is certain", "[run][generate]") {
  GenerationScene scene;
  const std::vector<int32_t> euro = scene.ids("€");
  scene.says({0}, {scene.ids("x")[0]});
  for (const int32_t byte : euro) scene.says({0}, {byte});
  scene.says({0}, {265});  // the model's vocabulary is larger than the tokenizer's
  scene.says({0}, {scene.ids("y")[0]}, {FinishReason::length});
  const Generated generated = scene.run();
  REQUIRE(scene.pieces == "0.0x|0.0€|0.0\uFFFD|0.0y|");
  REQUIRE(generated.samples.at(0).text == "x€\uFFFDy");
  REQUIRE(generated.samples[0].ids.size() == 6);
  REQUIRE(generated.samples[0].ended == FinishReason::length);
  REQUIRE(generated.prompt_tokens == std::vector<int64_t>{3});
  REQUIRE(generated.prefill.tokens_per_second() == 6);
  REQUIRE(generated.decode.tokens_per_second() == 0);
  REQUIRE(generated.environment.device_name == "test");
}

TEST_CASE("tokens that cannot be the model's are refused", "[run][generate]") {
  GenerationScene beyond;
  beyond.says({0}, {beyond.model.experiment.model.vocab_size});
  REQUIRE(contains(beyond.fault(), "of a model that has"));
  GenerationScene endless;
  endless.question.max_tokens = 2;
  endless.says({0}, {5});
  endless.says({0}, {5});
  endless.says({0}, {5});
  REQUIRE(contains(endless.fault(), "more than 2 tokens"));
}

TEST_CASE("samples are kept apart and end each for its own reason", "[run][generate]") {
  GenerationScene scene;
  scene.question.prompts = {"a", "b"};
  scene.question.samples = 2;
  const auto id = [&](const std::string& letter) { return scene.ids(letter)[0]; };
  scene.says({0, 1}, {id("p"), id("q")}, {FinishReason::none, FinishReason::length});
  scene.says({0}, {scene.tokenizer.eos_id()}, {FinishReason::end_of_sequence});
  scene.says({2, 3}, {id("r"), id("s")}, {FinishReason::context, FinishReason::none});
  const Generated generated = scene.run();
  REQUIRE(scene.pieces == "0.0p|0.1q|1.0r|1.1s|");
  REQUIRE(generated.samples.at(0).ids == scene.ids("p"));  // the end is no part of it
  REQUIRE(generated.samples[0].ended == FinishReason::end_of_sequence);
  REQUIRE(generated.samples[1].ended == FinishReason::length);
  REQUIRE(generated.samples[2].ended == FinishReason::context);
  REQUIRE(generated.samples[3].ended == FinishReason::none);  // the worker was stopped
}

TEST_CASE("forge cuts at a stop text that its worker leaves to it", "[run][generate]") {
  GenerationScene scene;
  scene.question.stop = {"end"};
  for (const int32_t byte : scene.ids("so e")) scene.says({0}, {byte});
  scene.says({0}, {scene.ids("n")[0]});
  scene.says({0}, {scene.ids("d")[0]});
  scene.says({0}, {scene.ids("z")[0]}, {FinishReason::length});
  const Generated generated = scene.run();
  REQUIRE(generated.samples.at(0).text == "so ");
  REQUIRE(generated.samples[0].ended == FinishReason::stop_text);
  REQUIRE(generated.samples[0].ids.size() == 6);
  REQUIRE(scene.pieces == "0.0s|0.0o|0.0 |");
}

TEST_CASE("a beginning of a stop text is shown where the sample ends with it", "[run][generate]") {
  GenerationScene scene;
  scene.question.stop = {"end"};
  scene.says({0}, {scene.ids("e")[0]});
  scene.says({0}, {scene.ids("n")[0]}, {FinishReason::length});
  REQUIRE(scene.run().samples.at(0).text == "en");
  REQUIRE(scene.pieces == "0.0en|");
}

TEST_CASE("any special token ends a sample where the vocabulary names no EOS", "[run][generate]") {
  GenerationScene scene;
  data::Vocabulary vocabulary = data::initial_vocabulary();
  for (size_t id = 0; id < 6; ++id) vocabulary.tokens[id] = "<|" + std::to_string(id) + "|>";
  vocabulary.before_text.clear();
  vocabulary.bos_id = vocabulary.eos_id = vocabulary.pad_id = vocabulary.unk_id = -1;
  data::save_tokenizer(data::Tokenizer(vocabulary), scene.model.tokenizer);
  scene.run();
  REQUIRE(scene.request().generation->end_ids == std::vector<int32_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("what makes no sense to generate is refused with what would", "[run][generate]") {
  const auto fault = [](const std::function<void(GenerationScene&)>& spoil) {
    GenerationScene scene;
    spoil(scene);
    const std::string message = scene.fault();
    REQUIRE_FALSE(scene.has_started_a_worker());
    return message;
  };
  REQUIRE(contains(fault([](GenerationScene& s) { s.question.prompts.clear(); }),
                   "there is no prompt"));
  REQUIRE(contains(fault([](GenerationScene& s) { s.question.prompts = {""}; }),
                   "the prompt is empty"));
  REQUIRE(contains(fault([](GenerationScene& s) {
                     s.question.prompts = {"a", ""};
                   }),
                   "prompt 2 is empty"));
  const std::string too_long =
      fault([](GenerationScene& s) { s.question.prompts = {std::string(15, 'x')}; });
  REQUIRE(contains(too_long, "the prompt has 17 tokens, the model reads no more than 16"));
  REQUIRE(contains(too_long, "shorten the prompt"));
  REQUIRE(contains(fault([](GenerationScene& s) { s.question.max_tokens = 0; }), "max-tokens 0"));
  REQUIRE(contains(fault([](GenerationScene& s) { s.question.samples = -1; }), "samples -1"));
  REQUIRE(
      contains(fault([](GenerationScene& s) { s.question.samples = 70'000; }), "70,000 samples"));
  REQUIRE(contains(fault([](GenerationScene& s) { s.question.batch_size = 0; }), "batch-size 0"));
  REQUIRE(contains(fault([](GenerationScene& s) { s.question.sampling.temperature = -1; }),
                   "temperature -1"));
  REQUIRE(
      contains(fault([](GenerationScene& s) { s.question.sampling.top_p = 1.5; }), "top-p 1.5"));
  REQUIRE(
      contains(fault([](GenerationScene& s) { s.question.stop = {""}; }), "a stop text is empty"));
  REQUIRE(contains(fault([](GenerationScene& s) { s.model.tokenizer = ""; }), "has no tokenizer"));
  REQUIRE(contains(fault([](GenerationScene& s) {
                     s.model.experiment.train.seq_len = 1 << 24;
                     s.question.prompts = {std::string(400'000, 'x')};
                   }),
                   "the prompts are too long together"));
}

TEST_CASE("a worker that speaks of other samples than it was asked for is refused",
          "[run][generate]") {
  GenerationScene other;
  other.says({1}, {10});
  REQUIRE(contains(other.fault(), "the worker speaks of a sample 1"));
  GenerationScene uneven;
  uneven.says({0}, {10, 11});
  REQUIRE(contains(uneven.fault(), "do not fit"));
}

}  // namespace
}  // namespace forge::run
