#include <nlohmann/json.hpp>

#include "core/lint/check.h"
#include "core/lint/rules.h"
#include "core/project/names.h"
#include "tests/core/lint/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

struct SharedMistake : CheckFixture {
  SharedMistake() {
    file("base.yaml", "main: !call:f\n[body]\n");
    file("project.yaml", "-- extends 'base.yaml'\n[bodi]\nk: 2\n");
    for (const char* name : {"a", "b", "c", "d"}) config(name, "-- extends 'project.yaml'\n");
  }
};

TEST_CASE("a finding in a shared template is reported once with its configs") {
  const lint::Report report = SharedMistake().report();
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].configs ==
        Lines{"projects/p:a", "projects/p:b", "projects/p:c", "projects/p:d"});
  CHECK(report.configs == 4);
  CHECK(report.projects == 1);
  CHECK(report.count(lint::Severity::warning) == 1);
}

TEST_CASE("the text shows place and line and rule and configs and hint and a count") {
  const std::string text = lint::to_text(SharedMistake().report(), false);
  INFO(text);
  CHECK(text.find("project.yaml:2:1: warning: the block 'bodi' overrides nothing") !=
        std::string::npos);
  CHECK(text.find("[unknown-block]\n    [bodi]\n    ^\n") != std::string::npos);
  CHECK(text.find("  in 4 configs: projects/p:a, projects/p:b, projects/p:c, …\n"
                  "hint: did you mean 'body'?\n") != std::string::npos);
  CHECK(text.find("4 configs of 1 project: 0 errors, 1 warning, 0 notes\n") != std::string::npos);
}

TEST_CASE("colours frame the severity alone") {
  const std::string text = lint::to_text(SharedMistake().report(), true);
  CHECK(text.find("\033[1;33mwarning:\033[0m the block") != std::string::npos);
}

TEST_CASE("a report without findings says so") {
  CheckFixture check;
  check.file("base.yaml", "main: 1\n").config("c", "-- extends 'base.yaml'\n");
  CHECK(lint::to_text(check.report(), false) == "1 config of 1 project: no problems\n");
}

TEST_CASE("the JSON report holds every part of a finding") {
  const auto json = lint::to_json(SharedMistake().report());
  CHECK(json["configs"] == 4);
  CHECK(json["errors"] == 0);
  CHECK(json["warnings"] == 1);
  const auto& finding = json["findings"].at(0);
  CHECK(finding["severity"] == "warning");
  CHECK(finding["rule"] == "unknown-block");
  CHECK(finding.at("at").at("line") == 2);
  CHECK(finding.at("at").at("column") == 1);
  CHECK(finding.at("text") == "[bodi]");
  CHECK(finding.at("subject") == "bodi");
  CHECK(finding.at("configs").size() == 4);
}

TEST_CASE("a project that cannot be read is a finding of its own") {
  const lint::Report report = lint::check({}, {Error("meta.yaml is a list")}, fixed_surroundings());
  REQUIRE(report.findings.size() == 1);
  CHECK(report.findings[0].finding.rule == "invalid-meta");
  CHECK(lint::to_json(report)["findings"][0].at("at").is_null());
}

TEST_CASE("the shipped projects have no problems") {
  const project::ProjectList list =
      project::load_projects(project::projects_of(shipped_workspace()), fixed_surroundings());
  std::vector<lint::Selection> selections;
  for (const project::Project& project : list.projects) {
    selections.push_back({project, project.configs, {}});
  }
  const lint::Report report = lint::check(selections, list.problems, fixed_surroundings());
  INFO(lint::to_text(report, false));
  // The recipes name data and tokenizers that are on no machine of ours.
  for (const lint::Reported& reported : report.findings) {
    const std::string& rule = reported.finding.rule;
    CHECK((rule == "missing-file" || rule == "unsupported"));
    CHECK(reported.finding.severity != lint::Severity::error);
  }
  CHECK(report.configs >= 36);
}

const std::string model =
    "model:\n  vocab_size: 300\n  hidden_size: 64\n  num_layers: 2\n"
    "  mlp: {intermediate_size: 128}\n  attention:\n    num_heads: 4\n";
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
  CHECK(check.found({"unknown-key"}) == Lines{"error unknown-key c.yaml:10:1",
                                              "error unknown-key c.yaml:11:13",
                                              "error unknown-key c.yaml:11:21",
                                              "error unknown-key c.yaml:12:1"});
  for (const auto& reported : check.report().findings) {
    if (reported.finding.rule == "unknown-key") CHECK(!reported.finding.hint.empty());
  }
}

TEST_CASE("wrong values do not hide each other") {
  CHECK(found_in(small + "seed: red\nbackend: [1]\noptimizer: {lr: -1}\n") ==
        Lines{"error wrong-value c.yaml:10:7",
              "error wrong-value c.yaml:11:10",
              "error wrong-value c.yaml:12:17"});
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
      "model:\n  vocab_size: 300\n  hidden_size: 64\n  mlp: {intermediate_size: 128}\n  "
      "num_layers: 2\n"
      "  attention: {num_heads: 5}\n  canon: {set: AXA}\n"
      "tokenizer: {vocab_size: 301}\ntrain: {max_steps: 0}\n");
  CHECK(found == Lines{"error disagreement c.yaml:2:15",
                       "error disagreement c.yaml:6:26",
                       "error disagreement c.yaml:7:16",
                       "error disagreement c.yaml:9:20"});
}

TEST_CASE("rope needs an even part of a head") {
  CHECK(found_in(model + "    position: {rope_dim: 32}\n") ==
        Lines{"error disagreement c.yaml:8:26"});
}

TEST_CASE("mistakes in every profile are found once") {
  CHECK(found_in(small + "profiles:\n  quick: {train: {max_stps: 1}}\n  full: {sede: 1}\n") ==
        Lines{"error unknown-key c.yaml:11:19", "error unknown-key c.yaml:12:10"});
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
        Lines{"warning missing-file a.yaml:10:28",
              "error missing-file b.yaml:10:28 data.path",
              "error unusable-tokenizer c.yaml:8:36 tokenizer.path"});
}

TEST_CASE("a config that does not render or parse is an error and the others are checked") {
  CheckFixture check;
  check.config("a", "-- extends 'none.yaml'\n")
      .config("b", "k: *none\n")
      .config("c", small + "seeed: 1\n");
  CHECK(check.found({"does-not-render", "invalid-yaml", "unknown-key"}) ==
        Lines{"error does-not-render a.yaml:1:4",
              "error invalid-yaml b.yaml:1:4",
              "error unknown-key c.yaml:10:1"});
}

TEST_CASE("a config that cannot be resolved at all is an error") {
  CHECK(found_in("model: !call:forge:from_project {project_dir: nowhere, config_template: x}\n") ==
        Lines{"error does-not-resolve c.yaml:1:47"});
}

}  // namespace
}  // namespace forge::tests

// Rules about the YAML text: what two versions read differently, repeated keys, tags.

namespace forge::tests {
namespace {

using lint::yaml_version_difference;

/// "a | b" of what the two versions read, "" where they agree.
std::string readings(const std::string& plain) {
  const auto readings = yaml_version_difference(plain);
  return readings ? readings->in_1_1 + " | " + readings->in_1_2 : "";
}

TEST_CASE("scalars that YAML 1.1 and 1.2 read differently") {
  CHECK(readings("1e-3") == "text | the number 0.001");
  CHECK(readings("1e-05") == "text | the number 1e-05");
  CHECK(readings("1.0e5") == "text | the number 100000.0");
  CHECK(readings("+.5") == "text | the number 0.5");
  CHECK(readings("on") == "true | text");
  CHECK(readings("No") == "false | text");
  CHECK(readings("010") == "the number 8 | the number 10");
  CHECK(readings("0o10") == "text | the number 8");
  CHECK(readings("1_000") == "the number 1000 | text");
  CHECK(readings("0b11") == "the number 3 | text");
  CHECK(readings("1:30") == "the number 90 | text");
}

TEST_CASE("scalars that both versions read alike") {
  for (const char* plain : {"1",      "-3",     "1.5",  "1.",    ".5",
                            "1.0e-3", "1.0e+5", "0x1F", "true",  "False",
                            "null",   "~",      "word", "a: b",  "1e",
                            "e5",     "0o9",    ".inf", "-.inf", ".nan",
                            "12abc",  "1.2.3",  "-",    ".",     "99999999999999999999",
                            "0"}) {
    INFO(plain);
    CHECK(readings(plain).empty());
  }
}

TEST_CASE("the advice is read alike by both versions") {
  CHECK(yaml_version_difference("1e-3")->advice == "write 1.0e-3");
  CHECK(yaml_version_difference("1e5")->advice == "write 1.0e+5");
  CHECK(yaml_version_difference("2.5E3")->advice == "write 2.5E+3");
  CHECK(yaml_version_difference("off")->advice == "write false, or quote it as text");
  CHECK(yaml_version_difference("010")->advice == "write 8, or quote it as text");
  CHECK(yaml_version_difference("0o10")->advice == "write 8, or quote it as text");
  CHECK(yaml_version_difference("1:30")->advice == "write 90, or quote it as text");
}

TEST_CASE("in a graph of calls every such value and key is a warning at its place") {
  CheckFixture check;
  check.config("c",
               "main: !call:f\n"
               "    lr: 1e-3\n"
               "    quoted: '1e-3'\n"
               "    off: 1\n"
               "    'on': 2\n"
               "    y: n\n"
               "    list: [010]\n");
  CHECK(check.found({"yaml-versions"}) == Lines{"warning yaml-versions c.yaml:2:9 1e-3",
                                                "warning yaml-versions c.yaml:4:5 off",
                                                "note yaml-versions c.yaml:6:5 y",
                                                "note yaml-versions c.yaml:6:8 n",
                                                "warning yaml-versions c.yaml:7:12 010"});
}

TEST_CASE("a number that a template prints in Python's way is found where it is printed") {
  CheckFixture check;
  check.config("c", "main: !call:f\n    eps: {{ 0.00001 }}\n");
  CHECK(check.found({"yaml-versions"}) == Lines{"warning yaml-versions c.yaml:2:13 1e-05"});
}

TEST_CASE("in a config of forge a number with an exponent is a number") {
  CheckFixture check;
  check.config("c", "optimizer: {lr: 1e-3}\nmodel: {tie_embeddings: yes}\n");
  CHECK(check.found({"yaml-versions"}) == Lines{"note yaml-versions c.yaml:2:25 yes"});
}

TEST_CASE("a key that one block gives twice is found") {
  CheckFixture check;
  check.config("c", "[args]\nargs:\n    lr: 1\n    eps: 2\n    lr: 3\n");
  CHECK(check.found({"repeated-key"}) == Lines{"warning repeated-key c.yaml:5:5 lr"});
}

TEST_CASE("keys that are repeated in order to override are fine") {
  CheckFixture check;
  check.file("base.yaml", "args: &args\n[block]\n    lr: 1\n[other]\n    lr: 4\n")
      .config("child", "-- extends 'base.yaml'\n[block]\n== super()\n    lr: 2\n")
      .config("merge", "a: &a {lr: 1}\nb:\n    <<: *a\n    lr: 2\n")
      .config("condition", "lr: 1\n-- if true\nlr: 2\n-- endif\n")
      .config("loop", "a: 0\n-- for i in [1, 2]\nlr: {{ i }}\n-- endfor\n");
  CHECK(check.found({"repeated-key"}).empty());
}

/// A base with sections and a block for overrides, and a variant that uses it.
struct VariantCheck : CheckFixture {
  VariantCheck() {
    file("base.yaml", "[body]\nmodel: {hidden_size: 8}\ntrain: {max_steps: 5}\n[overrides]\n");
    config("variant", "-- extends 'base.yaml'\n[overrides]\nname: Variant\nmodel.canon.set: AC\n");
  }
};

TEST_CASE("a section below an inherited dotted key is found") {
  VariantCheck check;
  check.config("child",
               "-- extends 'configs/variant.yaml'\n[overrides]\n== super()\n"
               "model:\n  hidden_size: 16\n  canon:\n    kernel: 4\n    set: AB\n");
  CHECK(check.found({"dotted-key-wins"}) ==
        Lines{"warning dotted-key-wins child.yaml:8:5 model.canon.set"});
  const lint::Finding finding = check.only("dotted-key-wins");
  CHECK(contains(finding.message, "variant.yaml:4:1"));
  CHECK(finding.hint == "write model.canon.set: AB");
}

TEST_CASE("a profile below an inherited dotted key is found, and a section below one of its own") {
  VariantCheck check;
  check
      .config("child",
              "-- extends 'configs/variant.yaml'\n[body]\n== super()\n"
              "profiles: {quick: {model: {canon: {set: B}}}}\n")
      .config("own", "model.canon: {set: A, kernel: 4}\nmodel: {canon: {set: B, kernel: 4}}\n");
  check.config("dotted_profile",
               "-- extends 'configs/variant.yaml'\n[overrides]\n== super()\n"
               "profiles.quick.model.canon.set: B\n");
  CHECK(check.found({"dotted-key-wins"}) ==
        Lines{"warning dotted-key-wins child.yaml:4:36 model.canon.set",
              "warning dotted-key-wins dotted_profile.yaml:4:28 model.canon.set",
              "warning dotted-key-wins own.yaml:2:17 model.canon.set"});
}

TEST_CASE("dotted keys that override what was there before are fine") {
  VariantCheck check;
  check.file("other.yaml", "-- extends 'base.yaml'\n[body]\n== super()\nseed: 1\n")
      .config("child", "-- extends 'other.yaml'\n[overrides]\ntrain.max_steps: 7\n")
      .config("own", "model: {canon: {set: B}}\nmodel.canon.set: A\n")
      .config("same",
              "-- extends 'configs/variant.yaml'\n[body]\n"
              "model: {hidden_size: 8, canon: {set: AC}}\n");
  CHECK(check.found({"dotted-key-wins"}).empty());
}

TEST_CASE("overrides that drop those of the variant that they vary are found") {
  VariantCheck check;
  check.config("child", "-- extends 'configs/variant.yaml'\n[overrides]\nname: C\nseed: 3\n");
  CHECK(check.found({"overrides-without-super"}) ==
        Lines{"warning overrides-without-super child.yaml:2:1 model.canon.set"});
  CHECK(contains(check.only("overrides-without-super").hint, "== super()"));
}

TEST_CASE("overrides that keep or repeat those of their parents are fine") {
  VariantCheck check;
  check.config("kept", "-- extends 'configs/variant.yaml'\n[overrides]\n== super()\nseed: 3\n")
      .config("repeated",
              "-- extends 'configs/variant.yaml'\n[overrides]\n"
              "name: R\nmodel.canon.set: B\n");
  CHECK(check.found({"overrides-without-super"}).empty());
  check.config("grandchild", "-- extends 'configs/kept.yaml'\n[overrides]\nseed: 4\n");
  CHECK(contains(check.only("overrides-without-super").message, "name, model.canon.set: "));
}

TEST_CASE("identities that a tag loses or takes for a constructor are found") {
  CheckFixture check;
  check.config("c",
               "main: !singleton@main [1]\n"
               "args: !dict@args {a: 1}\n"
               "good: !dict:@good {a: 1}\n"
               "call: !call:module:name@call []\n");
  CHECK(check.found({"identity-as-constructor", "lost-identity"}) ==
        Lines{"warning identity-as-constructor c.yaml:1:7 main",
              "warning lost-identity c.yaml:2:7 args"});
  CHECK(check.only("lost-identity").hint == "write !dict:@args");
}

TEST_CASE("what is no graph is an error at its place") {
  CheckFixture check;
  check.config("constructor", "main: !call [1]\n")
      .config("identity", "main: !dict:@a {}\nmeta: !dict:@a {x: 1}\n");
  CHECK(check.found({"invalid-graph"}) ==
        Lines{"error invalid-graph constructor.yaml:1:7", "error invalid-graph identity.yaml:2:7"});
}

TEST_CASE("a check tells how many configs are through") {
  CheckFixture check;
  check.config("a", "main: 1\n").config("b", "main: 1\n").config("broken", "main: [\n");
  const project::Project project = check.workspace.project("p");
  std::vector<size_t> told;
  lint::check(
      {{project, project.configs, {}}}, {}, fixed_surroundings(), [&](size_t done, size_t all) {
        told.push_back(10 * done + all);
      });
  CHECK(told == std::vector<size_t>{13, 23, 33});
}

TEST_CASE("a quote at the end of an argument's name is found") {
  CheckFixture check;
  check.config("c", "main: 1\ndynamic_args:\n  - names: --num-heads\"\n    type: int\n");
  CHECK(check.found({"stray-quote"}) == Lines{"warning stray-quote c.yaml:3:5 num_heads"});
}

TEST_CASE("a section of the overrides that drops keys of the inherited one is found") {
  CheckFixture check;
  check
      .file("base.yaml",
            "[body]\ntrain:\n  max_steps: 5\n  seq_len: 64\noptimizer: {type: adamw, lr: 1}\n"
            "[overrides]\n")
      .config("lost", "-- extends 'base.yaml'\n[overrides]\ntrain:\n  max_steps: 7\n")
      .config("kept", "-- extends 'base.yaml'\n[overrides]\ntrain: {max_steps: 7, seq_len: 8}\n")
      .config("other", "-- extends 'base.yaml'\n[overrides]\noptimizer: {type: lion}\n")
      .config("dotted", "-- extends 'base.yaml'\n[overrides]\ntrain.max_steps: 7\n");
  CHECK(check.found({"section-replaced"}) == Lines{"warning section-replaced lost.yaml:3:1 train"});
  CHECK(contains(check.only("section-replaced").message, "with it seq_len: "));
  CHECK(contains(check.only("section-replaced").hint, "train.max_steps: 7"));
}

}  // namespace
}  // namespace forge::tests
