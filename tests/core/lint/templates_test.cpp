// Rules about meta.yaml, parents and inline templates.
#include "tests/core/lint/fixture.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

TEST_CASE("an unknown key of meta.yaml is found once whatever the configs are") {
  CheckFixture check("searchpath: [templates]\ncolour: red\n");
  check.config("a", "k: 1\n").config("b", "k: 1\n");
  CHECK(check.found({"unknown-meta-key"}) ==
        Lines{"warning unknown-meta-key meta.yaml:1:1 searchpath",
              "warning unknown-meta-key meta.yaml:2:1 colour"});
  const auto report = check.report();
  CHECK(report.findings.size() > 1);
}

TEST_CASE("searchpath is what others call searchdir") {
  CheckFixture check("searchpath: [templates]\n");
  CHECK(check.only("unknown-meta-key").hint == "did you mean 'searchdir'?");
}

TEST_CASE("a config that uses no other template stands alone") {
  CheckFixture check;
  check.file("base.yaml", "k: 1\n")
      .config("alone", "-- include 'own'\n\n#--- own ---\nk: 1\n")
      .config("child", "-- extends 'base.yaml'\n")
      .config("user", "-- include 'base.yaml'\n");
  CHECK(check.found({"stands-alone"}) == Lines{"warning stands-alone alone.yaml:1:1 alone"});
}

TEST_CASE("of two inline templates of one name the parent's wins and the other is found") {
  CheckFixture check;
  check.file("base.yaml", "-- include 'model'\n\n#--- model ---\nk: parent\n")
      .config("c", "-- extends 'base.yaml'\n\n#--- model ---\nk: child\n");
  CHECK(check.found({"duplicate-inline"}) == Lines{"warning duplicate-inline c.yaml:3:6 model"});
  const std::string message = check.only("duplicate-inline").message;
  CHECK(message.find("base.yaml:3:6") != std::string::npos);
}

TEST_CASE("inline templates of one name and one text are no trouble") {
  CheckFixture check;
  check.file("base.yaml", "-- include 'model'\n\n#--- model ---\nk: 1\n")
      .config("c", "-- extends 'base.yaml'\n\n#--- model ---\nk: 1\n");
  CHECK(check.found({"duplicate-inline"}).empty());
}

TEST_CASE("a title between dashes that cuts the file is noted") {
  CheckFixture check;
  check.config("c", "k: 1\n#---- Optimizer ----\nlr: 1\n");
  CHECK(check.found({"unused-inline"}) == Lines{"note unused-inline c.yaml:2:7 Optimizer"});
}

TEST_CASE("an inline template is in use where any config uses it") {
  CheckFixture check;
  check.file("base.yaml", "-- include part\n\n#--- one ---\nk: 1\n#--- two ---\nk: 2\n")
      .config("a", "-- set part = 'one'\n-- include 'base.yaml'\n")
      .config("b", "-- set part = 'two'\n-- include 'base.yaml'\n");
  CHECK(check.found({"unused-inline"}).empty());
}

}  // namespace
}  // namespace forge::tests
