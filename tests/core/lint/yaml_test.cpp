// Rules about the YAML text: what two versions read differently, repeated keys, tags.
#include "core/lint/yaml_versions.h"

#include "tests/core/lint/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

using lint::two_readings;

/// "a | b" of what the two versions read, "" where they agree.
std::string readings(const std::string& plain) {
  const auto readings = two_readings(plain);
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
  CHECK(two_readings("1e-3")->advice == "write 1.0e-3");
  CHECK(two_readings("1e5")->advice == "write 1.0e+5");
  CHECK(two_readings("2.5E3")->advice == "write 2.5E+3");
  CHECK(two_readings("off")->advice == "write false, or quote it as text");
  CHECK(two_readings("010")->advice == "write 8, or quote it as text");
  CHECK(two_readings("0o10")->advice == "write 8, or quote it as text");
  CHECK(two_readings("1:30")->advice == "write 90, or quote it as text");
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

TEST_CASE("a quote at the end of an argument's name is found") {
  CheckFixture check;
  check.config("c", "main: 1\ndynamic_args:\n  - names: --num-heads\"\n    type: int\n");
  CHECK(check.found({"stray-quote"}) == Lines{"warning stray-quote c.yaml:3:5 num_heads"});
}

}  // namespace
}  // namespace forge::tests
