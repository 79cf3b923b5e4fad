#include "core/config/resolve.h"
#include "core/config/tree.h"
#include "core/yaml/yaml.h"
#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::config {
namespace {

yaml::NodePtr parse(const std::string& text) {
  return yaml::parse(text, [](int line, int column) {
    return make_span(std::make_shared<SourceText>(), line, column);
  });
}

/// The tree in flow style, mappings in their order.
std::string flow(const yaml::Node& node) {
  if (!node.is_mapping()) return short_text(node);
  std::string text;
  for (const yaml::Entry& entry : node.entries) {
    text += (text.empty() ? "" : ", ") + entry.key + ": " + flow(*entry.value);
  }
  return "{" + text + "}";
}

TEST_CASE("a dotted path becomes nested mappings with a place for each part") {
  const SourceSpan start = make_span(std::make_shared<SourceText>(), 3, 7);
  const yaml::NodePtr tree = nest("model.canon.set", start, parse("AC"));
  REQUIRE(flow(*tree) == "{model: {canon: {set: AC}}}");
  const yaml::Entry* canon = tree->find("model")->find_entry("canon");
  REQUIRE(canon->key_origin.column == 7 + 6);
  REQUIRE(canon->value->find_entry("set")->key_origin.column == 7 + 12);
}

TEST_CASE("merging replaces leaves and lists and keeps the rest in order") {
  const yaml::NodePtr merged =
      merge(parse("a: 1\nb: {c: 2, d: [1, 2]}\n"), parse("b: {d: [3], e: 4}\na: {x: 1}\nf: 5\n"));
  REQUIRE(flow(*merged) == "{a: {x: 1}, b: {c: 2, d: [3], e: 4}, f: 5}");
}

TEST_CASE("merging keeps what was replaced nearest first") {
  const yaml::NodePtr merged = merge(merge(parse("a: 1\n"), parse("a: 2\n")), parse("a: 3\n"));
  const yaml::Entry* a = merged->find_entry("a");
  REQUIRE(a->value->text == "3");
  REQUIRE(a->overridden.size() == 2);
  REQUIRE(a->overridden[0]->text == "2");
  REQUIRE(a->overridden[1]->text == "1");
}

TEST_CASE("a value is shown on one short line") {
  REQUIRE(short_text(*parse("[0.9, 0.999]")) == "[0.9, 0.999]");
  REQUIRE(short_text(*parse("[1, {a: b}]")) == "[1, a mapping]");
  REQUIRE(short_text(*parse("[1,2,3,4,5,6,7,8,9,10]")) == "[1, 2, 3, 4, 5, 6, 7, 8, …]");
  REQUIRE(short_text(*parse("~")) == "null");
}

std::string error_for(const std::string& argument) {
  return tests::error_of([&] { parse_override(argument); });
}

TEST_CASE("an override is a path and a YAML value with places on the command line") {
  const Assignment assignment = parse_override("optimizer.betas=[0.9, 0.95]");
  REQUIRE(assignment.path == "optimizer.betas");
  REQUIRE(assignment.value->is_sequence());
  REQUIRE(assignment.value->items[1]->origin.describe() == "command line:1:29");
  REQUIRE(parse_override("data.path=a=b").value->text == "a=b");
  REQUIRE(parse_override("data.path=").value->is_null());
  REQUIRE(parse_override("model.canon={set: A}").value->is_mapping());
}

TEST_CASE("an override that YAML would cut at a comment is refused and quoted") {
  REQUIRE(error_for("data.path=/a #2") ==
          "command line:1:20: error: a comment in YAML begins at the '#': the value would be '/a'\n"
          "    --set data.path=/a #2\n"
          "                       ^\n"
          "hint: quote a text that has a '#': --set 'data.path=\"/a #2\"'");
  CHECK(tests::contains(error_for("description=#2"), "the value would be ''"));
  CHECK(tests::contains(error_for("description=it's #2"), "the value would be 'it's'"));
  CHECK(tests::contains(error_for("description=\"a\" # b"), "begins at the '#'"));
  CHECK(tests::contains(error_for("optimizer.betas=[0.9, 0.95]\t# two"), "begins at the '#'"));
  CHECK(parse_override("data.path=\"/a #2\"").value->text == "/a #2");
  CHECK(parse_override("data.path='/it''s #2'").value->text == "/it's #2");
  CHECK(parse_override("description=\"a \\\" #2\"").value->text == "a \" #2");
  CHECK(parse_override("data.path=/a#2").value->text == "/a#2");
  CHECK(parse_override("model.canon={set: \"A #\"}").value->is_mapping());
}

TEST_CASE("an override of an unknown key shows a caret and the nearest key of all") {
  REQUIRE(error_for("train.max_step=4") ==
          "command line:1:7: error: unknown key 'train.max_step'\n"
          "    --set train.max_step=4\n"
          "          ^\n"
          "hint: did you mean 'train.max_steps'?");
  REQUIRE(error_for("batch_size=4").find("did you mean 'train.batch_size'?") != std::string::npos);
  REQUIRE(error_for("seed.x=4").find("unknown key 'seed.x'") != std::string::npos);
  REQUIRE(error_for("optimizer.learning_rate=1").find("the keys of optimizer are type, lr, ") !=
          std::string::npos);
  REQUIRE(error_for("zzzzzz=4").find("forge keys") != std::string::npos);
}

TEST_CASE("an override without a value is refused") {
  REQUIRE(error_for("train.max_steps").find("must be KEY=VALUE") != std::string::npos);
  REQUIRE(error_for("=4").find("must be KEY=VALUE") != std::string::npos);
  REQUIRE(error_for("").find("must be KEY=VALUE") != std::string::npos);
}

TEST_CASE("a number that YAML reads as another one is refused with both readings") {
  const auto error = [](const std::string& override) { return tests::small_refusal({override}); };
  const std::string octal = error("train.max_steps=010");
  INFO(octal);
  REQUIRE(octal.find("'010' is 8 in YAML, an octal number") != std::string::npos);
  REQUIRE(octal.find("write 8 or 10") != std::string::npos);
  REQUIRE(octal.find("command line:1:23") != std::string::npos);
  REQUIRE(error("train.max_steps=1:30").find("'1:30' is 90 in YAML") != std::string::npos);
  REQUIRE(error("optimizer.lr=0:00.5").find("in YAML, to the base 60") != std::string::npos);
  REQUIRE(error("optimizer.betas=[0, 010]").find("write 8 or 10") != std::string::npos);
  REQUIRE(error("train.max_steps=0o10").find("must be an integer") != std::string::npos);
  REQUIRE(tests::small_accepted({"train.max_steps=1_000"}).train.max_steps == 1000);
  REQUIRE(tests::small_accepted({"train.max_steps=0x10"}).train.max_steps == 16);
  REQUIRE(tests::small_accepted({"train.max_steps=07"}).train.max_steps == 7);
  REQUIRE(tests::small_accepted({"train.max_steps=+10"}).train.max_steps == 10);
  REQUIRE(tests::small_accepted({"name=010"}).name == "010");
}

TEST_CASE("an override whose value is no YAML is refused on the command line") {
  REQUIRE(error_for("optimizer.betas=[0.9").find("command line:1:") == 0);
}

using tests::ConfigFixture;
using tests::contains;
using tests::small_config;

TEST_CASE("a config is complete with defaults") {
  const ResolvedConfig resolved = ConfigFixture().small("");
  REQUIRE(resolved.trains);
  REQUIRE(resolved.project == "projects/p");
  REQUIRE(resolved.config_name == "c");
  REQUIRE(resolved.experiment.name == "Small");
  REQUIRE(resolved.experiment.optimizer.lr == 1e-3);
  REQUIRE(resolved.json["model"]["attention"]["head_dim"] == 16);
  REQUIRE(resolved.json["train"]["seq_len"] == 512);
}

TEST_CASE("profile auto is full on a GPU and quick elsewhere") {
  const ConfigFixture fixture;
  const ResolvedConfig quick = fixture.resolve(small_config);
  REQUIRE(quick.experiment.profile == "quick");
  REQUIRE(quick.json["profile"] == "quick");
  REQUIRE(quick.experiment.train.max_steps == 3);
  const ResolvedConfig full = fixture.resolve(small_config, {}, true);
  REQUIRE(full.experiment.profile == "full");
  REQUIRE(full.experiment.train.max_steps == 10);
}

TEST_CASE("what nobody said of determinism follows from the device") {
  const ConfigFixture fixture;
  const auto settled = [&](std::vector<std::string> overrides, const std::string& device_type) {
    ResolvedConfig resolved = fixture.small("", std::move(overrides));
    settle_for_device(resolved, device_type);
    REQUIRE(resolved.json["train"]["deterministic"] == *resolved.experiment.train.deterministic);
    REQUIRE(resolved.origins.at("train.deterministic").set_by.text ==
            (*resolved.experiment.train.deterministic ? "true" : "false"));
    return *resolved.experiment.train.deterministic;
  };
  REQUIRE(fixture.small("").json["train"]["deterministic"].is_null());
  REQUIRE(settled({}, "cpu"));
  REQUIRE_FALSE(settled({}, "cuda"));
  REQUIRE(settled({"train.deterministic=true"}, "cuda"));
  REQUIRE_FALSE(settled({"train.deterministic=false"}, "cpu"));
  REQUIRE(settled({"train.deterministic=null"}, "cpu"));
}

TEST_CASE("a profile is named by the config or on the command line") {
  const ConfigFixture fixture;
  REQUIRE(fixture.small("profile: long\n").experiment.train.max_steps == 99);
  REQUIRE(fixture.small("profile: long\n", {"profile=quick"}).experiment.train.max_steps == 3);
  REQUIRE(fixture.small("", {"profile=full"}).experiment.train.max_steps == 10);
}

TEST_CASE("a config without profiles is its own full profile") {
  const std::string text =
      "model: {vocab_size: 300, hidden_size: 8, num_layers: 1, "
      "attention: {num_heads: 1}, mlp: {intermediate_size: 8}}\n"
      "tokenizer: {vocab_size: 300}\ntrain: {max_steps: 10}\n";
  REQUIRE(ConfigFixture().resolve(text).experiment.profile == "full");
  REQUIRE(contains(ConfigFixture().error(text, {"profile=quick"}), "the config has full, auto"));
}

TEST_CASE("an unknown profile is refused where it is named with the list") {
  const ConfigFixture fixture;
  const std::string error = fixture.small_error("profile: quik\n");
  REQUIRE(contains(error, "c.yaml:8:10: error: unknown profile 'quik'"));
  REQUIRE(contains(error, "the config has quick, long, full, auto"));
  REQUIRE(contains(fixture.small_error("", {"profile=x"}), "--set profile=x"));
}

TEST_CASE("a mistake in a profile that is not used is found") {
  const ConfigFixture fixture;
  REQUIRE(contains(fixture.small_error("profiles.long.train.max_stepps: 1\n"),
                   "unknown key 'train.max_stepps'"));
  REQUIRE(
      contains(fixture.small_error("profiles.long.profile: full\n"), "cannot choose a profile"));
  REQUIRE(contains(fixture.small_error("profiles: {long: {train.max_steps: 1}}\n"),
                   "here it is 'train: {max_steps: …}'"));
  REQUIRE(contains(fixture.small_error("profiles: [a]\n"), "'profiles' is a sequence"));
  REQUIRE(contains(fixture.small_error("profiles: {long: 3}\n"), "must be a mapping of keys"));
}

TEST_CASE("overrides win over dotted keys and those over the profile and that over the sections") {
  const ConfigFixture fixture;
  const auto steps = [&](const std::string& more, std::vector<std::string> overrides = {}) {
    return fixture.small(more, std::move(overrides)).experiment.train.max_steps;
  };
  REQUIRE(steps("") == 3);
  REQUIRE(steps("train.max_steps: 7\n") == 7);
  REQUIRE(steps("train.max_steps: 7\n", {"train.max_steps=8"}) == 8);
  REQUIRE(steps("", {"train.max_steps=8", "train.max_steps=9"}) == 9);
  REQUIRE(steps("profiles.quick.train.max_steps: 5\n") == 5);
}

TEST_CASE("a dotted key changes that value alone") {
  const ConfigFixture fixture;
  const Experiment e = fixture.small("model.canon.set: CA\nmodel.canon: {kernel: 3}\n").experiment;
  REQUIRE(e.model.canon.set == "AC");
  REQUIRE(e.model.canon.kernel == 3);
  REQUIRE(e.model.hidden_size == 64);
  REQUIRE(contains(fixture.small_error("model.cannon.set: A\n"),
                   "c.yaml:8:1: error: unknown key 'model.cannon.set'"));
  REQUIRE(
      contains(fixture.small_error("model.cannon.set: A\n"), "did you mean 'model.canon.set'?"));
}

TEST_CASE("every leaf knows who set it and what that replaced") {
  const ConfigFixture fixture;
  const ResolvedConfig resolved =
      fixture.small("train.log_every: 5\n", {"train.max_steps=4", "train.log_every=6"});
  const Origin& steps = resolved.origins.at("train.max_steps");
  REQUIRE(steps.set_by.layer == "command line");
  REQUIRE(steps.set_by.text == "4");
  REQUIRE(steps.set_by.origin.describe() == "command line:1:23");
  REQUIRE(steps.overrode.size() == 2);
  REQUIRE(steps.overrode[0].layer == "profile quick");
  REQUIRE(steps.overrode[0].text == "3");
  REQUIRE(steps.overrode[1].layer == "config");
  REQUIRE(steps.overrode[1].text == "10");
  REQUIRE(steps.overrode[1].origin.line == 4);
  REQUIRE(resolved.origins.at("train.log_every").overrode[0].origin.line == 8);
  REQUIRE(resolved.origins.at("optimizer.lr").set_by.layer == "default");
  REQUIRE(resolved.origins.at("model.attention.head_dim").set_by.derived_from ==
          "model.hidden_size");
}

TEST_CASE("a repeated key remembers the value it overrode") {
  const ResolvedConfig resolved = ConfigFixture().small("seed: 1\nseed: 2\n");
  const Origin& seed = resolved.origins.at("seed");
  REQUIRE(resolved.experiment.seed == 2);
  REQUIRE(seed.set_by.origin.line == 9);
  REQUIRE(seed.overrode.size() == 1);
  REQUIRE(seed.overrode[0].origin.line == 8);
}

TEST_CASE("origins become JSON with places") {
  const ResolvedConfig resolved = ConfigFixture().small("", {"train.max_steps=4"});
  const nlohmann::json json = to_json(resolved.origins);
  REQUIRE(json.size() == resolved.origins.size());
  REQUIRE(json["train.max_steps"]["from"] == "command line");
  REQUIRE(json["train.max_steps"]["at"] == "command line:1:23");
  REQUIRE(json["train.max_steps"]["overrode"][0]["from"] == "profile quick");
  REQUIRE(json["model.attention.num_kv_heads"]["derived_from"] == "model.attention.num_heads");
  REQUIRE(json["data.source"]["value"] == "toy_stories");
  REQUIRE_FALSE(json["optimizer.lr"].contains("at"));
}

TEST_CASE("a key of the config that the schema does not know is refused at its place") {
  const std::string error =
      ConfigFixture().small_error("optimizer:\n  learning_rate: 1\n  lr: 2\n");
  REQUIRE(contains(error, "c.yaml:9:3: error: unknown key 'optimizer.learning_rate'"));
  REQUIRE(
      contains(ConfigFixture().small_error("batch_size: 3\n"), "did you mean 'train.batch_size'?"));
}

TEST_CASE("text on the command line needs no quotes") {
  const Experiment e = ConfigFixture().small("", {"name=2024", "description="}).experiment;
  REQUIRE(e.name == "2024");
  REQUIRE(e.description.empty());
  REQUIRE(contains(ConfigFixture().small_error("name: 2024\n"), "'name' must be text"));
}

TEST_CASE("a config without training is a model alone") {
  const ResolvedConfig resolved = ConfigFixture().resolve(
      "name: M\nmodel: {vocab_size: 9, hidden_size: 8, num_layers: 1, "
      "attention: {num_heads: 2}, mlp: {intermediate_size: 8}}\n");
  REQUIRE_FALSE(resolved.trains);
  REQUIRE(resolved.json.size() == 3);
  REQUIRE(resolved.json["model"]["attention"]["head_dim"] == 4);
}

TEST_CASE("a config without a model says how to give one") {
  const std::string error = ConfigFixture().error("name: x\ntrain: {max_steps: 1}\n");
  REQUIRE(contains(error, "c.yaml:1:1: error: missing key 'model.vocab_size'"));
  REQUIRE(contains(error, "!call:forge:from_project"));
  REQUIRE(
      contains(ConfigFixture().error("- a\n"), "a config is a mapping of keys, not a sequence"));
  REQUIRE(contains(ConfigFixture().error(""), "a config is a mapping of keys, not null"));
}

TEST_CASE("of dotted keys that concern each other the one that was written last wins") {
  const ConfigFixture fixture;
  const Experiment last =
      fixture.small("train.max_steps: 100\ntrain.max_tokens: 2000000\ntrain.max_steps: 20\n")
          .experiment;
  CHECK(last.train.max_steps == 20);
  CHECK(last.train.max_tokens == 0);
  CHECK(fixture.small("model.canon.set: A\nmodel.canon: {set: AB}\nmodel.canon.set: AC\n")
            .experiment.model.canon.set == "AC");
}

TEST_CASE("the device chooses the profile of a config that has a quick one") {
  const ConfigFixture fixture;
  const auto depends = [&](const std::string& more, std::vector<std::string> overrides) {
    fixture.files.add_config("p", "c", small_config + more);
    const ResolveOptions options = tests::fixed_options(std::move(overrides));
    return chooses_profile_by_device(
        read_document(fixture.files.project("p"), "c", options.host_environment), options);
  };
  CHECK(depends("", {}));
  CHECK_FALSE(depends("", {"profile=full"}));
  CHECK_FALSE(depends("profile: long\n", {}));
}

}  // namespace
}  // namespace forge::config
