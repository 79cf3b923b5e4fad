#include "core/config/explain.h"
#include "core/config/document.h"
#include "core/config/leaves.h"
#include "core/yaml/yaml.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using Lines = std::vector<std::string>;

std::vector<Leaf> document(const std::string& text) {
  const auto source = std::make_shared<SourceText>(SourceText{"c.yaml", "", text, 1});
  return leaves_of(
      *yaml::parse(text, [&](int line, int column) { return make_span(source, line, column); }));
}

/// "path left -> right" of each change, "-" where a side has nothing.
Lines lines_of(const std::vector<Change>& changes) {
  const auto text = [](const std::optional<Leaf>& leaf) {
    return leaf ? shown_value(leaf->value) : "-";
  };
  Lines lines;
  for (const Change& change : changes) {
    lines.push_back(change.path + " " + text(change.left) + " -> " + text(change.right));
  }
  return lines;
}

TEST_CASE("two configs differ in the leaves that were changed and what follows from them") {
  const ConfigFixture fixture;
  const auto left = leaves_of(fixture.small(""));
  const auto right = leaves_of(fixture.small("model.attention.num_heads: 2\n", {"seed=7"}));
  const auto changes = diff(left, right);
  CHECK(lines_of(changes) == Lines{"model.attention.head_dim 16 -> 32",
                                   "model.attention.num_heads 4 -> 2",
                                   "model.attention.num_kv_heads 4 -> 2",
                                   "seed 42 -> 7"});
  CHECK(changes[1].right->origin.set_by.origin.line == 8);
  CHECK(changes[3].right->origin.set_by.layer == command_line_layer);
  CHECK(diff(left, left).empty());
}

TEST_CASE("what a config leaves to the device is no difference from a run that says it") {
  const ConfigFixture fixture;
  ResolvedConfig run = fixture.small("");
  settle_for_device(run, "cuda");
  const auto config = leaves_of(fixture.small(""));
  const auto of_run = leaves_of_run(run.json, to_json(run.origins));
  CHECK(diff(config, of_run).empty());
  CHECK(diff(of_run, config).empty());
  const auto asked = leaves_of(fixture.small("", {"train.deterministic=true"}));
  CHECK(lines_of(diff(asked, of_run)) == Lines{"train.deterministic true -> false"});
  CHECK(lines_of(diff(config, asked)) == Lines{"train.deterministic null -> true"});
}

TEST_CASE("an optional key that came later is written only where it is set, and explained always") {
  const ConfigFixture fixture;
  const ResolvedConfig unset = fixture.small(""),
                       set = fixture.small("model.attention.window: 7\n");
  CHECK_FALSE(unset.json.at("model").at("attention").contains("window"));
  CHECK(set.json.at("model").at("attention").at("window") == 7);
  CHECK(lines_of(diff(leaves_of(unset), leaves_of(set))) == Lines{"model.attention.window - -> 7"});
  const std::string key = "model.attention.window";
  CHECK(explain(unset, key).at(0).value.is_null());
  CHECK(explain(unset, key).at(0).history.at(0).layer == default_layer);
  CHECK(explain(set, key).at(0).value == 7);
  CHECK(find_key(key)->default_value == "null");
}

TEST_CASE("documents differ by path and tag and order does not count") {
  const auto left = document("a: !call:f:g {x: 1, y: [1, 2]}\nb: 1\n");
  const auto right = document("c: ~\na: !call:f:h {y: [1, 3, 4], x: 1}\n");
  CHECK(
      lines_of(diff(left, right)) ==
      Lines{
          "a !call:f:g -> !call:f:h", "a.y[1] 2 -> 3", "b 1 -> -", "c - -> null", "a.y[2] - -> 4"});
  CHECK(diff(document("a: {x: 1, y: 2}\n"), document("a: {y: 2, x: 1}\n")).empty());
}

TEST_CASE("text and number of the same spelling differ") {
  CHECK(lines_of(diff(document("a: '1'\n"), document("a: 1\n"))) == Lines{"a \"1\" -> 1"});
  CHECK(lines_of(diff(document("a: ''\n"), document("a: ~\n"))) == Lines{"a \"\" -> null"});
}

TEST_CASE("a run has the values and origins that were stored") {
  const ResolvedConfig resolved = ConfigFixture().small("");
  const auto stored = leaves_of_run(resolved.json, to_json(resolved.origins));
  CHECK(diff(leaves_of(resolved), stored).empty());
  for (const Leaf& leaf : stored) {
    if (leaf.path != "train.max_steps") continue;
    CHECK(leaf.origin.set_by.layer == "profile quick");
    CHECK(leaf.origin.set_by.origin.line == 6);
    CHECK(leaf.origin.set_by.origin.column == 30);
    CHECK(leaf.origin.overrode.size() == 1);
  }
}

TEST_CASE("a run without origins or with damaged ones still has its values") {
  const nlohmann::json config = {{"a", 1}, {"b", {{"c", {1, 2}}, {"d", nlohmann::json::object()}}}};
  for (const nlohmann::json& origins : {nlohmann::json(nullptr),
                                        nlohmann::json(3),
                                        nlohmann::json{{"a", 3}},
                                        nlohmann::json{{"a", {{"at", "::"}, {"overrode", 3}}}}}) {
    const auto leaves = leaves_of_run(config, origins);
    REQUIRE(leaves.size() == 3);
    CHECK(leaves[1].path == "b.c");
  }
}

TEST_CASE("a stored place is read back as it was described") {
  const auto place = [](const std::string& at) {
    const auto leaves = leaves_of_run({{"a", 1}}, {{"a", {{"at", at}}}});
    return leaves[0].origin.set_by.origin.describe();
  };
  for (const char* at : {"x/y.yaml:3:4", "x.yaml:3", "x.yaml", "a:b.yaml:1:2 (inline c.d)"}) {
    CHECK(place(at) == at);
  }
}

TEST_CASE("what an alias names is listed once") {
  const auto changes = diff(document("args: &a {lr: 1}\nuse: {args: *a}\n"),
                            document("args: &a {lr: 2}\nuse: {args: *a}\n"));
  CHECK(lines_of(changes) == Lines{"args.lr 1 -> 2"});
  CHECK(lines_of(diff(document("args: &a {lr: 1}\nuse: *a\n"), document("args: &a {lr: 1}\n"))) ==
        Lines{"use *args -> -"});
}

TEST_CASE("aliases of aliases do not unfold") {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 5; ++i) {
    const std::string name = "a" + std::to_string(i);
    const std::string below = "*a" + std::to_string(i - 1);
    text += name + ": &" + name + " [" + below;
    for (int k = 1; k < 10; ++k) text += ", " + below;
    text += "]\n";
  }
  CHECK(document(text).size() == 50);
}

TEST_CASE("a diff as JSON has both sides of each change") {
  const auto changes = diff(document("a: 1\n"), document("b: 2\n"));
  const auto json = to_json("left", "right", changes);
  CHECK(json["left"] == "left");
  REQUIRE(json["changes"].size() == 2);
  CHECK(json["changes"][0]["left"]["value"] == 1);
  CHECK(json["changes"][0]["left"]["set_by"]["at"]["column"] == 4);
  CHECK(json["changes"][0]["right"].is_null());
}

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
  const auto explanations = explain(ConfigFixture().small(""), "model.attention.head_dim");
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

bool is_experiment(const std::string& text) {
  return config::is_experiment(*yaml::parse(text, [](int, int) { return SourceSpan{}; }));
}

TEST_CASE("a config of forge is told from a graph of calls by its keys and tags") {
  CHECK(is_experiment("model: {num_layers: 1}\n"));
  CHECK(is_experiment("train: {}\nmistake: 1\n"));
  CHECK(is_experiment("model.canon.set: AC\n"));
  CHECK(is_experiment("model: !call:forge:from_project {}\n"));
  CHECK_FALSE(is_experiment("main: !call:f:g\nname: x\n"));
  CHECK_FALSE(is_experiment("meta: {config_name: x}\nname: x\n"));
  CHECK_FALSE(is_experiment("optimizer: !partial:torch:AdamW {lr: 1}\n"));
  CHECK_FALSE(is_experiment("[1, 2]\n"));
  CHECK_FALSE(is_experiment("other: 1\n"));
}

TEST_CASE("overrides are for configs of forge alone") {
  const tests::ConfigFixture fixture;
  fixture.files.add_config("p", "graph", "main: !call:f:g {lr: 1}\n");
  fixture.files.add_config("p", "small", tests::small_config);
  const project::Project project = fixture.files.project("p");
  const auto open = [&](const char* name, std::vector<std::string> overrides) {
    const ResolveOptions options = tests::fixed_options(std::move(overrides));
    return open_config(read_document(project, name, options.host_environment), options);
  };
  CHECK(leaves_of(open("graph", {})).size() == 2);
  CHECK(explain(open("graph", {}), "main.lr").front().value == 1);
  CHECK(explain(open("small", {"seed=3"}), "seed").front().value == 3);
  const std::string error = tests::error_of([&] { open("graph", {"seed=3"}); });
  CHECK(error.find("'graph' is none") != std::string::npos);
}

}  // namespace
}  // namespace forge::config
