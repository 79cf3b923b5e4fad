#include "core/run/sweep_file.h"

#include "core/yaml/parse.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::error_of;
using tests::TemporaryFolder;
using Texts = std::vector<std::string>;

SweepFile read(const std::string& text) {
  const TemporaryFolder folder;
  return read_sweep_file(folder.write("rates.yaml", text).string());
}

std::string error_in(const std::string& text) {
  return error_of([&] { read(text); });
}

TEST_CASE("a sweep file names configs, seeds and the values of keys", "[run][sweep]") {
  const SweepFile file = read(
      "title: Learning rates\n"
      "configs: [train_llama, \"train_canon_*\"]\n"
      "values:\n"
      "  optimizer.lr: [3e-4, 1e-3, 0.5]\n"
      "  optimizer.betas: [[0.9, 0.98], [0.9, 0.999]]\n"
      "  model.canon.set: [\"\", AC]\n"
      "seeds: [1, 2]\n");
  REQUIRE(file.name == "rates");
  REQUIRE(file.title == "Learning rates");
  REQUIRE(file.configs == Texts{"train_llama", "train_canon_*"});
  REQUIRE(file.sweeps.size() == 4);
  REQUIRE(file.sweeps[0].path == "seed");
  REQUIRE(file.sweeps[0].values == Texts{"1", "2"});
  REQUIRE(file.sweeps[1].path == "optimizer.lr");
  REQUIRE(file.sweeps[1].values == Texts{"3e-4", "1e-3", "0.5"});
  REQUIRE(file.sweeps[2].values == Texts{"[0.9,0.98]", "[0.9,0.999]"});
  REQUIRE(file.sweeps[3].values == Texts{"\"\"", "AC"});
  REQUIRE(variations_of(file.sweeps).size() == 24);
}

TEST_CASE("a sweep file may leave the configs to the command line", "[run][sweep]") {
  REQUIRE(read("seeds: [1, 2, 3]\n").configs.empty());
}

TEST_CASE("what is wrong in a sweep file is said with its place", "[run][sweep]") {
  const auto says = [](const std::string& text, const std::string& place, const std::string& what) {
    const std::string error = error_in(text);
    INFO(error);
    REQUIRE(error.find("rates.yaml:" + place) != std::string::npos);
    REQUIRE(error.find(what) != std::string::npos);
  };
  says("[1]\n", "1:1", "a sweep file is a mapping");
  says("title: x\n", "1:1", "changes nothing");
  says("seed: [1]\n", "1:1", "did you mean 'seeds'");
  says("seeds: 3\n", "1:8", "'seeds' is a list");
  says("seeds: []\n", "1:8", "is empty");
  says("seeds: [1, 1]\n", "1:8", "the value 1 twice");
  says("seeds: [a]\n", "1:8", "'a' is no seed");
  says("values: [1]\n", "1:9", "'values' has a list for each key");
  says("values: {optimizer.lrr: [1]}\n", "1:10", "did you mean 'optimizer.lr'");
  says("values: {optimizer.lr: 1}\n", "1:24", "what 'optimizer.lr' is to take is a list");
  says("values: {optimizer.lr: [1, 1]}\n", "1:24", "the value 1 twice");
  says("configs: [[a]]\nseeds: [1]\n", "1:11", "a config is named by a text");
}

}  // namespace
}  // namespace forge::run
