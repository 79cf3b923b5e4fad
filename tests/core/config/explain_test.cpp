#include "core/config/explain.h"

#include "core/yaml/parse.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using Lines = std::vector<std::string>;

/// "layer value line:column" of each of a history.
Lines lines_of(const Explanation& explanation) {
  Lines lines;
  for (const Setting& setting : explanation.history) {
    std::string line = setting.layer + " " + setting.text;
    if (setting.origin) {
      line +=
          " " + std::to_string(setting.origin.line) + ":" + std::to_string(setting.origin.column);
    }
    if (!setting.derived_from.empty()) line += " <- " + setting.derived_from;
    lines.push_back(line);
  }
  return lines;
}

Lines paths_of(const std::vector<Explanation>& explanations) {
  Lines paths;
  for (const Explanation& explanation : explanations) paths.push_back(explanation.path);
  return paths;
}

yaml::NodePtr explained_document(const std::string& text) {
  const auto source = std::make_shared<SourceText>(SourceText{"c.yaml", "", text, 1});
  return yaml::parse(text, [&](int line, int column) { return make_span(source, line, column); });
}

TEST_CASE("a key is explained through command line and profile and config to its default") {
  const ResolvedConfig resolved =
      ConfigFixture().small("train.batch_size: 7\n", {"train.batch_size=9"});
  const auto explanations = explain(resolved, "train.batch_size");
  REQUIRE(explanations.size() == 1);
  CHECK(explanations[0].value == 9);
  REQUIRE(explanations[0].key);
  CHECK(explanations[0].key->help == "rows of a step");
  CHECK(lines_of(explanations[0]) == Lines{"command line 9 1:24",
                                           "config 7 8:19",
                                           "profile quick 2 6:45",
                                           "default " + explanations[0].key->default_value});
}

TEST_CASE("a value that nobody gave has the default alone") {
  const auto explanations = explain(ConfigFixture().small(""), "optimizer.eps");
  REQUIRE(explanations.size() == 1);
  CHECK(lines_of(explanations[0]).size() == 1);
  CHECK(explanations[0].history[0].layer == default_layer);
}

TEST_CASE("a value that follows from another names it") {
  const auto explanations = explain(ConfigFixture().small(""), "model.head_dim");
  CHECK(lines_of(explanations[0]).front() == "config 16 2:39 <- model.hidden_size");
}

TEST_CASE("a section is explained leaf by leaf") {
  CHECK(paths_of(explain(ConfigFixture().small(""), "model.canon")) ==
        Lines{"model.canon.activation",
              "model.canon.bias",
              "model.canon.kernel",
              "model.canon.residual",
              "model.canon.set"});
}

TEST_CASE("an unknown key is refused with those that were meant") {
  const ResolvedConfig resolved = ConfigFixture().small("");
  const auto error = [&](const std::string& key) {
    return tests::error_of([&] { explain(resolved, key); });
  };
  CHECK(error("train.bach_size").find("did you mean 'train.batch_size'?") != std::string::npos);
  CHECK(error("batch_size").find("did you mean 'train.batch_size'?") != std::string::npos);
  CHECK(error("model.cannon").find("did you mean 'model.canon'?") != std::string::npos);
  CHECK(error("train.batch").find("'train.batch'") != std::string::npos);
}

TEST_CASE("a path of a graph is explained by repeated keys and merges") {
  const yaml::NodePtr root = explained_document(
      "base: &base {lr: 1, eps: 3}\n"
      "trainer_args: !dict:@args\n"
      "    <<: *base\n"
      "    lr: 2\n"
      "    lr: 4\n");
  const auto explanations = explain(*root, "trainer_args.lr");
  REQUIRE(explanations.size() == 1);
  CHECK(explanations[0].value == 4);
  CHECK(explanations[0].key == nullptr);
  CHECK(lines_of(explanations[0]) == Lines{"config 4 5:9", "config 2 4:9", "config 1 1:18"});
}

TEST_CASE("what a whole section overrode counts for the paths in it") {
  const yaml::NodePtr root = explained_document("args: {lr: 1}\nargs: {lr: 2}\n");
  CHECK(lines_of(explain(*root, "args.lr").front()) == Lines{"config 2 2:12", "config 1 1:12"});
}

TEST_CASE("items of lists are found by either way of writing") {
  const yaml::NodePtr root =
      explained_document("callbacks:\n  - {every: 5}\n  - !call:f:g {every: 7}\n");
  CHECK(explain(*root, "callbacks[1].every").front().value == 7);
  CHECK(explain(*root, "callbacks.1.every").front().value == 7);
  CHECK(paths_of(explain(*root, "callbacks")) ==
        Lines{"callbacks[0].every", "callbacks[1]", "callbacks[1].every"});
  CHECK(explain(*root, "callbacks[1]").front().value == "!call:f:g");
  for (const char* path : {"callbacks[2]",
                           "callbacks[1",
                           "callbacks[]",
                           "callbacks[x]",
                           "callbacks[99999999999999]",
                           "",
                           ".",
                           "callbacks."}) {
    INFO(path);
    CHECK_THROWS_AS(explain(*root, path), Error);
  }
}

TEST_CASE("a key with a dot in its name is found") {
  const yaml::NodePtr root = explained_document("a.b: 1\na: {b: 2, b.c: 3}\n");
  CHECK(explain(*root, "a.b").front().value == 1);
  CHECK(explain(*root, "a.b.c").front().value == 3);
}

TEST_CASE("an explanation as JSON has the schema's words where there are some") {
  const auto json = to_json(explain(ConfigFixture().small(""), "train.max_steps"));
  REQUIRE(json.size() == 1);
  CHECK(json[0]["path"] == "train.max_steps");
  CHECK(json[0]["value"] == 3);
  CHECK(json[0]["help"].is_string());
  CHECK(json[0]["set_by"]["from"] == "profile quick");
  CHECK(json[0]["overrode"].size() == 2);
  CHECK(json[0]["overrode"][0]["value"] == "10");
}

}  // namespace
}  // namespace forge::config
