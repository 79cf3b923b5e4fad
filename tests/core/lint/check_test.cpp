#include "core/lint/check.h"

#include <nlohmann/json.hpp>

#include "core/lint/write.h"
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
  CHECK(lint::to_text(check.report(), false) == "1 config of 1 project: nothing to mend\n");
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

TEST_CASE("the shipped projects have nothing to mend") {
  const project::ProjectList list =
      project::load_projects(shipped_workspace(), fixed_surroundings());
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

}  // namespace
}  // namespace forge::tests
