// forge generate on a tiny trained run, from the command line to the worker and back.
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// forge with one tiny run of Canon-AC, of rows of 16 tokens.
class TrainedCanon {
 public:
  TrainedCanon() {
    const Outcome trained = forge.call(tiny({"run", "train_canon_ac"}, 4));
    INFO(trained.err);
    REQUIRE(trained.exit_code == 0);
    run = forge.only_run().filename().string();
  }

  Outcome generate(std::vector<std::string> options, const std::string& model = "") const {
    std::vector<std::string> arguments = {
        "generate", model.empty() ? run : model, "--threads", "1"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return forge.call(arguments);
  }
  /// What --json prints but for what was measured.
  json result(std::vector<std::string> options, const std::string& model = "") const {
    options.push_back("--json");
    const Outcome outcome = generate(std::move(options), model);
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out);
  }
  json samples(std::vector<std::string> options, const std::string& model = "") const {
    return result(std::move(options), model).at("samples");
  }

  Program forge;
  std::string run;
};

TEST_CASE("a run generates the same greedy tokens with and without caches and when exported") {
  const TrainedCanon trained;
  std::vector<std::string> options = {
      "--prompt", "One", "--prompt", "The dog was", "--temperature", "0", "--max-tokens", "9"};
  const json result = trained.result(options);
  const json& samples = result.at("samples");
  REQUIRE(samples.size() == 2);
  REQUIRE(samples[0].at("tokens") == samples[0].at("ids").size());
  REQUIRE(result.at("prompts").at(1).at("text") == "The dog was");
  REQUIRE(result.at("step") == 4);
  REQUIRE(result.at("cache") == true);
  REQUIRE(result.at("prefill").at("tokens_per_second").get<double>() > 0);
  REQUIRE(result.at("decode").at("tokens").get<int>() > 0);

  std::vector<std::string> uncached = options;
  uncached.push_back("--no-cache");
  REQUIRE(trained.result(uncached).at("cache") == false);
  REQUIRE(trained.samples(uncached) == samples);
  std::vector<std::string> one_by_one = options;
  one_by_one.insert(one_by_one.end(), {"--batch-size", "1", "--step", "4"});
  REQUIRE(trained.samples(one_by_one) == samples);

  const std::string folder = (trained.forge.folder() / "model").string();
  REQUIRE(trained.forge.call({"export-hf", trained.run, folder}).exit_code == 0);
  REQUIRE(trained.samples(options, folder) == samples);

  for (std::vector<std::string>* wide : {&options, &uncached}) {
    wide->insert(wide->end(), {"--precision", "float64"});
  }
  const json in_double = trained.result(options);
  REQUIRE(in_double.at("precision") == "float64");
  REQUIRE(trained.samples(uncached) == in_double.at("samples"));
}

TEST_CASE("text is printed alone and figures beside it") {
  const TrainedCanon trained;
  const std::vector<std::string> options = {"--prompt", "One", "--max-tokens", "6", "--seed", "3"};
  const json sample = trained.samples(options).at(0);
  const Outcome outcome = trained.generate(options);
  REQUIRE(outcome.exit_code == 0);
  std::string text = sample.at("text");
  if (text.empty() || text.back() != '\n') text += '\n';
  REQUIRE(outcome.out == text);
  REQUIRE(contains(outcome.err, "ended by"));
  REQUIRE(contains(outcome.err, "prefill"));
  REQUIRE(contains(outcome.err, "tok/s"));

  const Outcome several =
      trained.generate({"--prompt", "One", "--prompt", "Two", "--samples", "2"});
  for (const char* heading : {"== prompt 1, sample 1: One (", "== prompt 2, sample 2: Two ("}) {
    REQUIRE(contains(several.out, heading));
  }
}

TEST_CASE("a seed gives its text again and another one another text") {
  const TrainedCanon trained;
  const auto text = [&](const std::string& seed) {
    return trained.samples(
        {"--prompt", "One", "--samples", "2", "--seed", seed, "--temperature", "1"});
  };
  const json first = text("1");
  REQUIRE(text("1") == first);
  REQUIRE(text("2") != first);
  REQUIRE(first.at(0).at("ids") != first.at(1).at("ids"));
}

TEST_CASE("generation ends at its limit and at a stop text and where the context is full") {
  const TrainedCanon trained;
  const std::vector<std::string> greedy = {"--prompt", "One", "--temperature", "0"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> options = greedy;
    options.insert(options.end(), more.begin(), more.end());
    const json result = trained.result(options);
    json sample = result.at("samples").at(0);
    sample["prompt_tokens"] = result.at("prompts").at(0).at("tokens");
    return sample;
  };
  const json shorter = with({"--max-tokens", "3"});
  REQUIRE(shorter.at("tokens") == 3);
  REQUIRE(shorter.at("ended") == "length");
  const json whole = with({});
  if (whole.at("ended") == "context") {
    REQUIRE(whole.at("tokens").get<int>() + whole.at("prompt_tokens").get<int>() == 17);
  }
  const std::string text = whole.at("text");
  // Two letters that a byte that is no text does not stand between.
  size_t at = 1;
  const auto is_ascii = [&](size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  while (at + 2 < text.size() && !(is_ascii(at) && is_ascii(at + 1))) ++at;
  REQUIRE(at + 2 < text.size());
  const std::string stop = text.substr(at, 2);
  const json stopped = with({"--stop", "never said", "--stop", stop});
  REQUIRE(stopped.at("ended") == "stop_text");
  REQUIRE(stopped.at("text") == text.substr(0, text.find(stop)));
}

TEST_CASE("a prompt is read from a file or from stdin without its last line end") {
  TrainedCanon trained;
  const std::vector<std::string> greedy = {"--temperature", "0", "--max-tokens", "4"};
  std::vector<std::string> given = greedy;
  given.insert(given.end(), {"--prompt", "One\nday"});
  const json expected = trained.samples(given);
  const std::string file = trained.forge.folder().write("prompt.txt", "One\nday\n").string();
  std::vector<std::string> from_file = greedy;
  from_file.insert(from_file.end(), {"--prompt-file", file});
  REQUIRE(trained.samples(from_file) == expected);
  const std::string call = trained.forge.binary.string() + " generate " + trained.run +
                           " --prompt-file - --temperature 0 --max-tokens 4 --json < " + file;
  trained.forge.binary = "/bin/bash";
  const Outcome outcome = trained.forge.call({"-c", call});
  INFO(outcome.err);
  REQUIRE(json::parse(outcome.out).at("samples") == expected);
}

TEST_CASE("what cannot be generated is refused with the reason and what would be right") {
  const TrainedCanon trained;
  const auto fault = [&](const std::vector<std::string>& options, const std::string& model = "") {
    const Outcome outcome = trained.generate(options, model);
    REQUIRE(outcome.exit_code == 2);
    REQUIRE(outcome.out.empty());
    return outcome.err;
  };
  REQUIRE(contains(fault({"--prompt", "a"}, "nothing"), "no run 'nothing'"));
  REQUIRE(contains(fault({"--prompt", "a"}, "train_cannon_ac"), "no run 'train_cannon_ac'"));
  REQUIRE(contains(fault({}), "there is no prompt"));
  REQUIRE(contains(fault({"--prompt", ""}), "the prompt is empty"));
  REQUIRE(contains(fault({"--prompt", "a", "--temperature", "-1"}), "temperature -1"));
  for (const char* top_p : {"0", "-0.5", "1.5"}) {
    const std::string message = fault({"--prompt", "a", "--top-p", top_p});
    REQUIRE(contains(message, "top-p " + std::string(top_p)));
    REQUIRE(contains(message, "hint: a probability above 0 and at most 1"));
  }
  REQUIRE(contains(fault({"--prompt", "a", "--top-k", "-1"}), "top-k -1"));
  REQUIRE(contains(fault({"--prompt", "a", "--stop", ""}), "a stop text is empty"));
  REQUIRE(contains(fault({"--prompt", "a", "--step", "3"}), "it has those of 4"));
  REQUIRE(
      contains(fault({"--prompt", "a", "--device", "cuda:99"}), "there is no device 'cuda:99'"));
  REQUIRE(contains(fault({"--prompt", std::string(200, 'x')}), "the model reads no more than 16"));
  const std::string folder = (trained.forge.folder() / "model").string();
  REQUIRE(trained.forge.call({"export-hf", trained.run, folder}).exit_code == 0);
  REQUIRE(contains(fault({"--prompt", "a", "--step", "4"}, folder),
                   "it holds one model and no step 4"));
  std::filesystem::remove(std::filesystem::path(folder) / "tokenizer.json");
  REQUIRE(contains(fault({"--prompt", "a"}, folder), "has no tokenizer that forge can use"));
}

TEST_CASE("the shell is offered the names of runs") {
  const TrainedCanon trained;
  const Outcome outcome = trained.forge.call({"__complete", "--", "generate", "train_"});
  REQUIRE(contains(outcome.out, trained.run));
  REQUIRE(contains(trained.forge.call({"__complete", "--", "export-hf", ""}).out, trained.run));
}

}  // namespace
}  // namespace forge::tests
