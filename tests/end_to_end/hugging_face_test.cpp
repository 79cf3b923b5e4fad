#include "core/base/fs.h"
#include "tests/end_to_end/trained.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::tests {
namespace {

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
