#include "tests/core/lint/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

const std::string model =
    "model:\n  vocab_size: 300\n  hidden_size: 64\n  intermediate_size: 128\n  num_layers: 2\n"
    "  num_heads: 4\n";
const std::string small = model + "tokenizer: {vocab_size: 300}\ntrain: {max_steps: 10}\n";

Lines found_in(const std::string& text) {
  return CheckFixture().config("c", text).found({"unknown-key",
                                                 "wrong-value",
                                                 "missing-key",
                                                 "disagreement",
                                                 "missing-file",
                                                 "does-not-resolve",
                                                 "unusable-tokenizer"});
}

TEST_CASE("a whole config has no errors") { CHECK(found_in(small).empty()); }

TEST_CASE("all unknown keys of a config are found") {
  CheckFixture check;
  check.config("c", small + "seeed: 1\noptimizer: {lrr: 1, weight_decy: 0}\ndata.sede: 3\n");
  CHECK(check.found({"unknown-key"}) == Lines{"error unknown-key c.yaml:9:1",
                                              "error unknown-key c.yaml:10:13",
                                              "error unknown-key c.yaml:10:21",
                                              "error unknown-key c.yaml:11:1"});
  for (const auto& reported : check.report().findings) {
    if (reported.finding.rule == "unknown-key") CHECK(!reported.finding.hint.empty());
  }
}

TEST_CASE("wrong values do not hide each other") {
  CHECK(found_in(small + "seed: red\nbackend: [1]\noptimizer: {lr: -1}\n") ==
        Lines{"error wrong-value c.yaml:9:7",
              "error wrong-value c.yaml:10:10",
              "error wrong-value c.yaml:11:17"});
}

TEST_CASE("a misspelt key is not said to be missing as well") {
  CHECK(found_in("model: {vocab_size: 300, hiden_size: 64}\n") ==
        Lines{"error unknown-key c.yaml:1:26"});
}

TEST_CASE("a key that is missing is found") {
  CHECK(found_in("model: {vocab_size: 300}\n") == Lines{"error missing-key c.yaml:1:1"});
}

TEST_CASE("arithmetic of the model is checked together with the rest") {
  const Lines found = found_in(
      "model:\n  vocab_size: 300\n  hidden_size: 64\n  intermediate_size: 128\n  num_layers: 2\n"
      "  num_heads: 5\n  canon: {set: AXA}\n"
      "tokenizer: {vocab_size: 301}\ntrain: {max_steps: 0}\n");
  CHECK(found == Lines{"error disagreement c.yaml:2:15",
                       "error disagreement c.yaml:6:14",
                       "error wrong-value c.yaml:7:16",
                       "error disagreement c.yaml:9:20"});
}

TEST_CASE("rope needs an even part of a head") {
  CHECK(found_in(model + "  position: {rope_dim: 32}\n") ==
        Lines{"error disagreement c.yaml:7:24"});
}

TEST_CASE("mistakes in every profile are found once") {
  CHECK(found_in(small + "profiles:\n  quick: {train: {max_stps: 1}}\n  full: {sede: 1}\n") ==
        Lines{"error unknown-key c.yaml:10:19", "error unknown-key c.yaml:11:10"});
}

TEST_CASE("files that a config names must be there and hold what they should") {
  CheckFixture check;
  check.workspace.folder.write("projects/p/empty/readme", "x");
  check.workspace.folder.write("projects/p/tokenizer.json", "{}");
  check.config("a", small + "data: {source: text, path: nowhere.txt}\n")
      .config("b", small + "data: {source: text, path: empty}\n")
      .config("c",
              model +
                  "tokenizer: {vocab_size: 300, path: tokenizer.json}\n"
                  "train: {max_steps: 10}\n");
  CHECK(check.found({"missing-file", "unusable-tokenizer"}) ==
        Lines{"warning missing-file a.yaml:9:28",
              "error missing-file b.yaml:9:28 data.path",
              "error unusable-tokenizer c.yaml:7:36 tokenizer.path"});
}

TEST_CASE("a config that does not render or parse is an error and the others are checked") {
  CheckFixture check;
  check.config("a", "-- extends 'none.yaml'\n")
      .config("b", "k: *none\n")
      .config("c", small + "seeed: 1\n");
  CHECK(check.found({"does-not-render", "invalid-yaml", "unknown-key"}) ==
        Lines{"error does-not-render a.yaml:1:4",
              "error invalid-yaml b.yaml:1:4",
              "error unknown-key c.yaml:9:1"});
}

TEST_CASE("a config that cannot be resolved at all is an error") {
  CHECK(found_in("model: !call:forge:from_project {project_dir: nowhere, config_template: x}\n") ==
        Lines{"error does-not-resolve c.yaml:1:47"});
}

}  // namespace
}  // namespace forge::tests
