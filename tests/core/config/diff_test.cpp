#include "core/config/diff.h"

#include "core/yaml/parse.h"
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
  const auto right = leaves_of(fixture.small("model.num_heads: 2\n", {"seed=7"}));
  const auto changes = diff(left, right);
  CHECK(lines_of(changes) == Lines{"model.head_dim 16 -> 32",
                                   "model.num_heads 4 -> 2",
                                   "model.num_kv_heads 4 -> 2",
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

}  // namespace
}  // namespace forge::config
