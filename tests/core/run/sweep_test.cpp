#include "core/run/sweep.h"
#include "core/yaml/yaml.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::run {
namespace {

using tests::error_of;
using Texts = std::vector<std::string>;

TEST_CASE("a sweep's values are parted by commas outside of brackets and quotes") {
  const Sweep sweep = parse_sweep("optimizer.lr=3e-4,1e-3,3e-3");
  REQUIRE(sweep.path == "optimizer.lr");
  REQUIRE(sweep.values == Texts{"3e-4", "1e-3", "3e-3"});
  REQUIRE(parse_sweep("optimizer.betas=[0.9,0.98],[0.9,0.999]").values ==
          Texts{"[0.9,0.98]", "[0.9,0.999]"});
  REQUIRE(parse_sweep("description=\"a,b\",'c,d'").values == Texts{"\"a,b\"", "'c,d'"});
  REQUIRE(parse_sweep("model.canon.set=A").values == Texts{"A"});
  REQUIRE(parse_sweep("data.path=a=b").values == Texts{"a=b"});
}

TEST_CASE("a sweep without a key, with an empty value or one twice is refused") {
  for (const char* text : {"optimizer.lr", "=1,2", ""})
    REQUIRE(error_of([&] { parse_sweep(text); }).find("is no sweep") != std::string::npos);
  for (const char* text : {"a=", "a=1,", "a=,1", "a=1,,2"})
    REQUIRE(error_of([&] { parse_sweep(text); }).find("empty value") != std::string::npos);
  REQUIRE(error_of([] { parse_sweep("a=1,2,1"); }).find("the value 1 twice") != std::string::npos);
}

TEST_CASE("seeds are a list or a range") {
  REQUIRE(parse_seeds("1,2,7").values == Texts{"1", "2", "7"});
  REQUIRE(parse_seeds("42").values == Texts{"42"});
  REQUIRE(parse_seeds("3..5").values == Texts{"3", "4", "5"});
  REQUIRE(parse_seeds("5..5").path == "seed");
  REQUIRE(seeds_from(42, 3).values == Texts{"42", "43", "44"});
  for (const char* text :
       {"", "a", "-1", "1.5", "1,,2", "1..", "..3", "1,2x", "99999999999999999999"})
    REQUIRE(error_of([&] { parse_seeds(text); }).find("is no seed") != std::string::npos);
  REQUIRE(error_of([] { parse_seeds("5..3"); }).find("are none") != std::string::npos);
  REQUIRE(error_of([] { parse_seeds("0..1000000"); }).find("more than") != std::string::npos);
  REQUIRE(error_of([] { parse_seeds("1,01"); }).find("twice") != std::string::npos);
}

TEST_CASE("several sweeps make their product, the last changing fastest") {
  REQUIRE(sweep_points({}) == std::vector<Overrides>{{}});
  const auto product = sweep_points({parse_seeds("1,2"), parse_sweep("optimizer.lr=0.1,0.2")});
  REQUIRE(product == std::vector<Overrides>{{"seed=1", "optimizer.lr=0.1"},
                                            {"seed=1", "optimizer.lr=0.2"},
                                            {"seed=2", "optimizer.lr=0.1"},
                                            {"seed=2", "optimizer.lr=0.2"}});
  REQUIRE(error_of([] {
            sweep_points({parse_seeds("1"), parse_sweep("seed=2")});
          }).find("two sweeps change 'seed'") != std::string::npos);
}

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
  REQUIRE(sweep_points(file.sweeps).size() == 24);
  // A file's numbers are YAML's, which --set would refuse to guess.
  REQUIRE(read("values: {train.max_steps: [010, 0x10]}\n").sweeps[0].values == Texts{"8", "16"});
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
