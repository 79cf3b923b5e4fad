// forge generate on a tiny trained run, from the command line to the worker and back.

#include <cmath>

#include "core/base/files.h"
#include "tests/core/run/fixture.h"
#include "tests/end_to_end/program.h"
#include "tests/support/catch.h"

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

using nlohmann::json;

double number(const json& values, const char* key) { return values.at(key).get<double>(); }

TEST_CASE("forge eval gives what training reported, at any batch size") {
  const Trained trained("train_canon_ac");
  const json run = trained.call({"runs"}).at(0);
  // With the threads of the run: which library multiplies depends on their number.
  const json own = trained.call({"eval", trained.run, "--threads", "1"});
  CHECK(number(own, "loss") == number(run, "eval_loss"));
  CHECK(number(own, "perplexity") == Approx(std::exp(number(own, "loss"))));
  CHECK(own.at("step") == 4);
  CHECK(own.at("tokens") == own.at("rows").get<int64_t>() * own.at("seq_len").get<int64_t>());
  const double bits = number(own, "loss") * number(own, "tokens") / std::log(2.0);
  CHECK(number(own, "bits_per_byte") == Approx(bits / number(own, "bytes")));
  for (const char* size : {"1", "3", "64"}) {
    const json other = trained.call({"eval", trained.run, "--batch-size", size});
    CHECK(std::abs(number(other, "loss") - number(own, "loss")) < 1e-6);
    CHECK(other.at("tokens") == own.at("tokens"));
  }
  const json exact = trained.call({"eval", trained.run, "--precision", "float64"});
  CHECK(std::abs(number(exact, "loss") - number(own, "loss")) < 1e-4);
  CHECK(exact.at("precision") == "float64");
}

TEST_CASE("a run and its export are the same on text, on tokens and on a config's rows") {
  const Trained trained("train_llama");
  const TemporaryFolder& folder = trained.forge.folder();
  folder.write("text.txt", "Once there was a cat. " + std::string(500, 'z') + "é\n");
  trained.call({"export-hf", trained.run, trained.path("model")});
  const json text = trained.call({"eval", trained.run, "--data", trained.path("text.txt")});
  CHECK(text.at("bytes") == 22 + 500 + 2 + 1);
  const json exported = trained.call({"eval",
                                      trained.path("model"),
                                      "--data",
                                      trained.path("text.txt"),
                                      "--seq-len",
                                      std::to_string(text.at("seq_len").get<int>())});
  CHECK(std::abs(number(exported, "loss") - number(text, "loss")) < 1e-6);
  CHECK(exported.at("tokens") == text.at("tokens"));
  // Rows of other lengths see other contexts, but score every token once.
  const json shorter =
      trained.call({"eval", trained.run, "--data", trained.path("text.txt"), "--seq-len", "5"});
  CHECK(shorter.at("tokens") == text.at("tokens"));
  CHECK(shorter.at("bytes") == text.at("bytes"));
}

TEST_CASE("forge eval says what it cannot use") {
  const Trained trained("train_llama");
  const auto error = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "eval");
    const Outcome outcome = trained.forge.call(arguments);
    CHECK(outcome.exit_code != 0);
    CHECK(outcome.out.empty());
    return outcome.err;
  };
  trained.call({"export-hf", trained.run, trained.path("model")});
  CHECK(contains(error({trained.path("model")}), "--data FILE"));
  CHECK(contains(error({trained.path("model"), "--step", "4"}), "holds one model and no step 4"));
  CHECK(contains(error({trained.run, "--step", "3"}), "has no checkpoint of step 3"));
  CHECK(contains(error({trained.run, "--data", "no/such.txt"}), "no file or folder"));
  CHECK(contains(error({trained.run, "--data", "nothere.txt"}), "no file or folder 'nothere.txt'"));
  CHECK(contains(error({trained.run, "--data", "train_lama"}), "train_llama"));
  CHECK(contains(error({trained.run, "--data", "canon_ac"}), "has no data"));
  // Arguments of the config's templates are heard.
  const std::vector<std::string> with_text = {trained.run, "--data", "train_llama", "--text"};
  const auto text_error = [&](const std::string& text) {
    std::vector<std::string> arguments = with_text;
    arguments.push_back(text);
    return error(arguments);
  };
  CHECK(contains(text_error("novels"), "tiny_stories"));
  CHECK(contains(text_error("tiny_stories"), "TinyStories"));
  CHECK(contains(error({trained.run, "--bach-size", "4"}), "did you mean '--batch-size'"));
  CHECK(contains(error({"nothing"}), "'forge runs' lists them"));

  // A run that another version of forge left.
  const std::filesystem::path old = trained.forge.runs_dir() / "old-1";
  std::filesystem::copy(
      trained.forge.runs_dir() / trained.run, old, std::filesystem::copy_options::recursive);
  json config = run::RunFolder(old).config();
  config["model"]["family"] = "llama";
  rewrite_config(run::RunFolder(old), config);
  CHECK(contains(error({"old-1"}),
                 "run 'old-1' cannot be used: another version of forge wrote the config: unknown "
                 "key 'model.family'\nhint: 'forge run train_llama' trains its config again"));
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"runs"},
        {"compare", "--rows", "seed", "--cols", "config", "-p", "canon"}}) {
    INFO(command[0]);
    const Outcome outcome = trained.forge.call(command);
    CHECK(outcome.exit_code == 0);
    CHECK(contains(outcome.err, "warning: run 'old-1' is left out: another version of forge"));
    CHECK(outcome.err.find("old-1") == outcome.err.rfind("old-1"));
  }
  CHECK(contains(trained.forge.call({"runs"}).out, trained.run));
  CHECK(trained.forge.call({"runs", "rm", "old-1"}).exit_code == 0);
}

TEST_CASE("a table from options alone takes no option of declared tables and only its profile") {
  const TrainedCanon trained;
  const auto error = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command = {"compare", "--rows", "seed", "-p", "canon"};
    command.insert(command.end(), options.begin(), options.end());
    const Outcome outcome = trained.forge.call(command);
    CHECK(outcome.exit_code == 2);
    return outcome.err;
  };
  CHECK(contains(error({"--profile", "nowhere"}), "no run has profile 'nowhere'"));
  CHECK(contains(error({"--table", "positions"}), "--table belongs to declared tables"));
  CHECK(contains(error({"--curves"}), "--curves belongs to declared tables"));
}

using nlohmann::json;

/// Every file of a folder but what names the run.
std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files[entry.path().filename().string()] = read_file(entry.path());
  }
  return files;
}

TEST_CASE("a run leaves and comes back and leaves the same") {
  for (const auto& [config, architecture] :
       {std::pair("train_llama", "LlamaForCausalLM"),
        std::pair("train_canon_ac", "LlamaCanonForCausalLM"),
        std::pair("train_nope", "ForgeLlamaCanonForCausalLM")}) {
    INFO(config);
    const Trained trained(config);
    const json exported = trained.call({"export-hf", trained.run, trained.path("model")});
    REQUIRE(exported.at("run") == trained.run);
    REQUIRE(exported.at("step") == 4);
    REQUIRE(exported.at("architecture") == architecture);
    const json imported = trained.call({"import-hf", trained.path("model"), "--name", "back"});
    REQUIRE(imported.at("made") == true);
    REQUIRE(imported.at("tokenizer") == true);
    REQUIRE(imported.at("notes").empty());
    trained.call({"export-hf", "back", trained.path("again")});
    REQUIRE(files_of(trained.path("again")) == files_of(trained.path("model")));
    // The logits of the run and of the folder, bit for bit.
    trained.call({"logits", trained.run, trained.path("a.safetensors"), "--length", "16"});
    trained.call(
        {"logits", trained.path("model"), trained.path("b.safetensors"), "--length", "16"});
    REQUIRE(read_file(trained.path("a.safetensors")) == read_file(trained.path("b.safetensors")));
    const json runs = trained.call({"runs"});
    REQUIRE(runs.size() == 2);
  }
}

TEST_CASE("a run begins from given weights and is another run for it") {
  const Trained trained("train_llama");
  const auto run_from = [&](const std::string& name) {
    const Outcome outcome = trained.forge.call(
        tiny({"run", "train_llama", "--json", "--set", "train.initial_weights=" + name}, 4));
    INFO(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(outcome.out).at(0);
  };
  const json drawn = trained.call({"runs"}).at(0);
  const json first = run_from(trained.run);
  REQUIRE(first.at("id") != drawn.at("id"));
  REQUIRE(first.at("train_loss").get<double>() < drawn.at("train_loss").get<double>());
  // The same weights elsewhere make the same run: it is done already.
  trained.call({"export-hf", trained.run, trained.path("model")});
  REQUIRE(run_from(trained.path("model")).at("id") == first.at("id"));
  REQUIRE(trained.call({"runs"}).size() == 2);

  const Outcome misfit = trained.forge.call(tiny(
      {"run", "train_canon_ac", "--set", "train.initial_weights=" + trained.path("model")}, 4));
  REQUIRE(misfit.exit_code == 2);
  REQUIRE(contains(misfit.err, "missing 2: 'model.layers.0.canonA.weight'"));
  REQUIRE(trained.call({"runs"}).size() == 2);
}

TEST_CASE("what cannot leave or come back is refused before anything is written") {
  const Trained trained("train_llama");
  const auto fault = [&](const std::vector<std::string>& arguments) {
    const Outcome outcome = trained.forge.call(arguments);
    REQUIRE(outcome.exit_code == 2);
    return outcome.err;
  };
  REQUIRE(contains(fault({"export-hf", "nothing", trained.path("x")}), "no run 'nothing'"));
  REQUIRE(contains(fault({"export-hf", trained.run, trained.path("x"), "--step", "3"}),
                   "it has those of 4"));
  REQUIRE(contains(fault({"export-hf", trained.run, trained.path("x"), "--dtype", "int8"}),
                   "'int8' is not one of"));
  REQUIRE(contains(fault({"export-hf", trained.run, trained.path("runs")}), "is not empty"));
  REQUIRE(contains(fault({"import-hf", trained.path("x")}), "there is no folder"));
  REQUIRE(contains(fault({"import-hf", trained.path("runs")}), "config.json"));
  REQUIRE_FALSE(std::filesystem::exists(trained.path("x")));
}

}  // namespace
}  // namespace forge::tests
