#include "core/run/sweep_file.h"
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
      "  optimizer.betas: [[0.9, 0.98], [0.9, 1e-3]]\n"
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
  REQUIRE(file.sweeps[2].values == Texts{"[0.9,0.98]", "[0.9,1e-3]"});
  REQUIRE(file.sweeps[3].values == Texts{"\"\"", "AC"});
  REQUIRE(sweep_points(file.sweeps).size() == 24);
  // A file's numbers are YAML's, which --set would refuse to guess.
  REQUIRE(read("values: {train.max_steps: [010, 0x10]}\n").sweeps[0].values == Texts{"8", "16"});
}

TEST_CASE("a sweep file may leave the configs to the command line", "[run][sweep]") {
  REQUIRE(read("seeds: [1, 2, 3]\n").configs.empty());
}

TEST_CASE("a sweep file has ranges, drawn keys and halving", "[run][sweep]") {
  const SweepFile file = read(
      "values:\n"
      "  optimizer.lr: {log: [1e-4, 1e-2], count: 3}\n"
      "  optimizer.weight_decay: {uniform: [0.0, 0.2]}\n"
      "  model.canon.set: {choice: [A, AC]}\n"
      "samples: {count: 8, seed: 5}\n"
      "halving: {first: 200, eta: 4}\n");
  REQUIRE(file.sweeps.size() == 1);
  REQUIRE(file.sweeps[0].values == Texts{"0.0001", "0.001", "0.01"});
  REQUIRE(file.random_keys.size() == 2);
  REQUIRE(file.random_keys[0].path == "optimizer.weight_decay");
  REQUIRE(file.random_keys[1].distribution.choices == Texts{"A", "AC"});
  REQUIRE(file.samples.count == 8);
  REQUIRE(file.samples.seed == 5);
  REQUIRE(file.halving->first == 200);
  REQUIRE(file.halving->eta == 4);
  REQUIRE(file.halving->by.empty());
  REQUIRE(!file.halving->take_highest);
  REQUIRE(read("samples: 3\nvalues: {optimizer.lr: {uniform: [0, 1]}}\n").samples.count == 3);
  const SweepFile scored = read("seeds: [1]\nhalving: {first: 9, by: accuracy, take: highest}\n");
  REQUIRE(scored.halving->by == "accuracy");
  REQUIRE(scored.halving->takes_highest());
}

TEST_CASE("a key that a sweep file has twice is refused", "[run][sweep]") {
  const std::string twice = "values: {optimizer.lr: [1, 2]}\nvalues: {seed: [1, 2]}\n";
  const std::string error = error_of([&] { read(twice); });
  REQUIRE(error.find("'values' is given twice") != std::string::npos);
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
  const std::string rate = "values: {optimizer.lr: ";
  says(rate + "{log: [1e-4, 1e-2]}}\n", "1:25", "'log' needs a 'count'");
  says(rate + "{logg: [1e-4, 1e-2], count: 5}}\n", "1:25", "did you mean 'log'");
  says(rate + "{log: [1e-2, 1e-4], count: 5}}\n", "1:24", "the smaller end comes first");
  says(rate + "{log: [0, 1], count: 5}}\n", "1:24", "needs numbers above 0");
  says(rate + "{log: [1, 2, 3], count: 5}}\n", "1:30", "a range has two ends");
  says(rate + "{uniform: [0, 1], count: 5}}\n", "1:25", "is drawn");
  says(rate + "{uniform: [0, 1], log: [1, 2]}}\n", "1:42", "said twice: 'uniform' and 'log'");
  says(rate + "{uniform: [0, 1], samples: 5}}\n", "1:42", "said once for all keys");
  says("values: {model.canon.set: {linear: [0, 1], count: 5}}\n", "1:27", "the key takes text");
  says("values: {train.batch_size: {linear: [8, 9], count: 5}}\n", "1:28", "fewer different");
  says("samples: 8\nseeds: [1]\n", "1:1", "there are none");
  says("samples: 0\nseeds: [1]\n", "1:10", "'0' is no number for the number of samples");
  says("halving: 200\nseeds: [1]\n", "1:10", "'halving' is a mapping");
  says("halving: {eta: 3}\nseeds: [1]\n", "1:10", "'halving' needs 'first'");
  says("halving: {first: 0}\nseeds: [1]\n", "1:18", "from 1 on");
  says("halving: {first: 9, eta: 1}\nseeds: [1]\n", "1:26", "from 2 on");
  says("halving: {frist: 9}\nseeds: [1]\n", "1:11", "did you mean 'first'");
  says("halving: {first: 9, take: best}\nseeds: [1]\n", "1:27", "lowest or highest");
}

}  // namespace
}  // namespace forge::run
