#include "tests/support/torch_catch.h"

#include "backends/libtorch/worker/jobs.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "core/config/experiment.h"
#include "core/data/tokenizer/tokenizer_json.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

using nlohmann::json;
using Ids = std::vector<int32_t>;

struct Sample {
  Ids ids;
  std::string ended = "none";
  bool operator==(const Sample& other) const { return ids == other.ids && ended == other.ended; }
};

std::ostream& operator<<(std::ostream& out, const Sample& sample) {
  return out << sample.ids.size() << " tokens, " << sample.ended;
}

/// A generating job on a small model of drawn weights over the 256 bytes.
class GenerationJob {
 public:
  GenerationJob() {
    experiment.model = small_model("ABCD", model::PositionKind::rope);
    experiment.model.vocab_size = tokenizer.vocab_size();
    experiment.train.precision = model::Precision::float64;
    generation.prompts = {{20, 30}, {40, 50, 60, 70, 80}, {90}, {21, 22, 23}};
    generation.max_tokens = 12;
    generation.context = 100;
    generation.batch_size = 8;
    data::save_tokenizer(tokenizer, folder_ / "tokenizer.json");
    generation.tokenizer = (folder_ / "tokenizer.json").string();
  }

  /// What comes of every sample; fails where one goes on behind its end.
  std::vector<Sample> run() {
    worker::Request request;
    request.job = worker::Job::generate;
    request.experiment = config::to_json(experiment);
    request.generation = generation;
    const std::string log = (folder_ / "lines").string();
    const int fd = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
    values = libtorch::generate(request, at::Device("cpu"), libtorch::EventWriter(fd)).values;
    ::close(fd);
    std::vector<Sample> samples(generation.prompts.size() *
                                static_cast<size_t>(generation.samples));
    std::ifstream file(log);
    events = 0;
    for (std::string line; std::getline(file, line); ++events) {
      const auto tokens = std::get<worker::Tokens>(worker::event_from_line(line));
      for (size_t i = 0; i < tokens.samples.size(); ++i) {
        Sample& sample = samples.at(static_cast<size_t>(tokens.samples[i]));
        REQUIRE(sample.ended == "none");
        sample.ids.push_back(tokens.ids.at(i));
        sample.ended = names_of(tokens.ended.at(i))[static_cast<size_t>(tokens.ended[i])];
      }
    }
    for (const Sample& sample : samples) REQUIRE(sample.ended != "none");
    return samples;
  }

  std::string text_of(const Ids& ids) const { return tokenizer.decode_continuation(ids); }

  const data::Tokenizer tokenizer{data::initial_vocabulary()};
  config::Experiment experiment;
  worker::Generation generation;
  json values;
  int events = 0;

 private:
  TemporaryFolder folder_;
};

TEST_CASE("a sample's tokens depend neither on its neighbours nor on caches", "[worker]") {
  for (const double temperature : {0.0, 1.0}) {
    GenerationJob job;
    job.generation.temperature = temperature;
    job.generation.samples = 3;
    job.generation.seed = 5;
    const std::vector<Sample> expected = job.run();
    REQUIRE(expected[0].ids.size() == 12);
    REQUIRE((expected[0] == expected[1]) == (temperature == 0));
    for (const int batch_size : {1, 2, 5, 100}) {
      job.generation.batch_size = batch_size;
      for (const bool cache : {true, false}) {
        job.generation.cache = cache;
        REQUIRE(job.run() == expected);
      }
    }
    job.generation.prompts.resize(1);
    REQUIRE(job.run() == std::vector<Sample>(expected.begin(), expected.begin() + 3));
    job.generation.seed = 6;
    REQUIRE((job.run()[0] == expected[0]) == (temperature == 0));
  }
}

TEST_CASE("a sample ends after its tokens and where the context is full", "[worker]") {
  GenerationJob job;
  job.generation.context = 7;
  const std::vector<Sample> samples = job.run();
  // The last token of a full context is drawn, too, but not read.
  for (const auto& [place, length] : std::map<size_t, size_t>{{0, 6}, {1, 3}, {2, 7}, {3, 5}}) {
    REQUIRE(samples[place].ids.size() == length);
    REQUIRE(samples[place].ended == "context");
  }
  REQUIRE(job.events == 7);
  REQUIRE(job.values.at("prefill_tokens") == 11);
  REQUIRE(job.values.at("decode_tokens") == 21 - 4);
  job.generation.max_tokens = 5;
  const std::vector<Sample> shorter = job.run();
  REQUIRE(shorter[0].ids == Ids(samples[0].ids.begin(), samples[0].ids.begin() + 5));
  REQUIRE(shorter[0].ended == "length");
  REQUIRE(shorter[1].ended == "context");
  REQUIRE(shorter[3].ended == "length");
}

TEST_CASE("a sample ends at a token that ends a sequence", "[worker]") {
  GenerationJob job;
  const std::vector<Sample> whole = job.run();
  const int32_t end = whole[1].ids[6];
  job.generation.end_ids = {1, end};
  const std::vector<Sample> samples = job.run();
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto found = std::find(whole[i].ids.begin(), whole[i].ids.end(), end);
    const bool ends = found != whole[i].ids.end();
    REQUIRE(samples[i].ids == Ids(whole[i].ids.begin(), ends ? found + 1 : found));
    REQUIRE(samples[i].ended == (ends ? "end_of_sequence" : "length"));
  }
}

TEST_CASE("a sample ends at the token that makes a stop text whole", "[worker]") {
  GenerationJob job;
  const std::vector<Sample> whole = job.run();
  // A token is a byte here, so this text goes over three of them.
  const std::string stop = job.text_of(whole[2].ids).substr(4, 3);
  REQUIRE(stop.size() == 3);
  job.generation.stop = {"no such text", stop};
  const std::vector<Sample> samples = job.run();
  REQUIRE(samples[2].ended == "stop_text");
  for (size_t i = 0; i < samples.size(); ++i) {
    Ids expected;
    for (const int32_t id : whole[i].ids) {
      if (contains(job.text_of(expected), stop)) break;
      expected.push_back(id);
    }
    const bool stops = contains(job.text_of(expected), stop);
    REQUIRE(samples[i] == Sample{expected, stops ? "stop_text" : "length"});
  }
}

TEST_CASE("a request to generate that cannot be done is refused", "[worker]") {
  const auto refusal = [](const std::function<void(worker::Generation&)>& spoil) {
    GenerationJob job;
    spoil(job.generation);
    return error_of([&] { job.run(); });
  };
  REQUIRE(contains(refusal([](auto& g) { g.prompts.clear(); }), "nothing to generate"));
  REQUIRE(contains(refusal([](auto& g) { g.samples = 0; }), "nothing to generate"));
  REQUIRE(contains(refusal([](auto& g) { g.prompts[1].clear(); }), "a prompt has 0 tokens"));
  REQUIRE(contains(refusal([](auto& g) { g.context = 4; }), "a prompt has 5 tokens"));
  REQUIRE(contains(refusal([](auto& g) { g.prompts[2] = {262}; }), "token id 262"));
  REQUIRE(contains(refusal([](auto& g) { g.prompts[2] = {-1}; }), "token id -1"));
  REQUIRE(contains(refusal([](auto& g) { g.temperature = -1; }), "temperature -1"));
  REQUIRE(contains(refusal([](auto& g) { g.top_p = 0; }), "top-p 0"));
  REQUIRE(contains(refusal([](auto& g) { g.stop = {""}; }), "a stop text is empty"));
  REQUIRE(contains(refusal([](auto& g) {
                     g.stop = {"x"};
                     g.tokenizer = "/nowhere";
                   }),
                   "/nowhere"));
}

}  // namespace
}  // namespace forge::tests
