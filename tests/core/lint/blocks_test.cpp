#include "tests/core/lint/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

const char* const base = "[head]\n[body]\n    [inner]\nk: 1\n";

TEST_CASE("a block that no ancestor has is found with a near miss") {
  CheckFixture check;
  check.file("base.yaml", base).config("c", "-- extends 'base.yaml'\n[bodi]\nk: 2\n");
  CHECK(check.found({"unknown-block"}) == Lines{"warning unknown-block c.yaml:2:1 bodi"});
  CHECK(check.only("unknown-block").hint == "did you mean 'body'?");
}

TEST_CASE("without a near miss the hint names the templates that are extended") {
  CheckFixture check;
  check.file("base.yaml", base)
      .file("middle.yaml", "-- extends 'base.yaml'\n")
      .config("c", "-- extends 'middle.yaml'\n[trainer]\n");
  CHECK(check.only("unknown-block").hint == "it extends middle.yaml, base.yaml");
}

TEST_CASE("blocks that override something or stand within a block are fine") {
  CheckFixture check;
  check.file("base.yaml", base)
      .file("middle.yaml", "-- extends 'base.yaml'\n[body]\n    [place_for_others]\nk: 3\n")
      .config("a", "-- extends 'middle.yaml'\n[inner]\nk: 2\n")
      .config("b", "-- extends 'middle.yaml'\n[place_for_others]\nk: 2\n");
  CHECK(check.found({"unknown-block"}).empty());
}

TEST_CASE("a template that extends nothing may have any blocks") {
  CheckFixture check;
  check.file("part.yaml", "[own]\nk: 1\n").config("c", "-- include 'part.yaml'\n");
  CHECK(check.found({"unknown-block"}).empty());
}

TEST_CASE("an extends that does not take place makes no parent") {
  CheckFixture check;
  check.file("base.yaml", base)
      .config("c", "-- if false\n-- extends 'base.yaml'\n-- endif\n[own]\nk: 1\n");
  CHECK(check.found({"unknown-block"}).empty());
}

TEST_CASE("an inline template has a chain of its own") {
  CheckFixture check;
  check.file("base.yaml", base)
      .file("model.yaml", "[layers]\nk: 1\n")
      .config("c",
              "-- extends 'base.yaml'\n[body]\n-- include 'c.model'\n\n"
              "#--- c.model ---\n-- extends 'model.yaml'\n[body]\n[layers]\nk: 1\n");
  CHECK(check.found({"unknown-block"}) == Lines{"warning unknown-block c.yaml:7:1 body"});
}

TEST_CASE("a template whose parent an expression names is judged by all its uses") {
  CheckFixture check;
  check.file("one.yaml", "[one]\n")
      .file("two.yaml", "[two]\n")
      .file("shared.yaml", "-- extends parent\n[one]\na: 1\n[two]\na: 2\n[three]\n")
      .config("a", "-- set parent = 'one.yaml'\n-- include 'shared.yaml'\n")
      .config("b", "-- set parent = 'two.yaml'\n-- include 'shared.yaml'\n");
  CHECK(check.found({"unknown-block"}) == Lines{"warning unknown-block shared.yaml:6:1 three"});
}

}  // namespace
}  // namespace forge::tests
