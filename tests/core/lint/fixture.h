#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/lint/check.h"
#include "tests/core/project/fixture.h"

namespace forge::tests {

/// A project "p" whose configs are checked.
class CheckFixture {
 public:
  explicit CheckFixture(const std::string& meta = "") { workspace.add_project("p", meta); }

  CheckFixture& config(const std::string& name, const std::string& text) {
    workspace.add_config("p", name, text);
    return *this;
  }
  /// A template of the project that is no config.
  CheckFixture& file(const std::string& name, const std::string& text) {
    workspace.folder.write("projects/p/templates/" + name, text);
    return *this;
  }

  lint::Report report(const jinja::Variables& variables = {}) const {
    const project::Project project = workspace.project("p");
    return lint::check({{project, project.configs, variables}}, {}, fixed_surroundings());
  }
  /// What was found by these rules (none: by all), each as "severity rule file:line:col subject".
  std::vector<std::string> found(const std::vector<std::string>& rules = {}) const {
    std::vector<std::string> lines;
    for (const lint::Reported& reported : report().findings) {
      const lint::Finding& finding = reported.finding;
      const bool wanted =
          rules.empty() || std::find(rules.begin(), rules.end(), finding.rule) != rules.end();
      if (wanted) lines.push_back(line_of(finding));
    }
    return lines;
  }
  /// The only finding of the rule.
  lint::Finding only(const std::string& rule) const {
    std::vector<lint::Finding> findings;
    for (const lint::Reported& reported : report().findings) {
      if (reported.finding.rule == rule) findings.push_back(reported.finding);
    }
    if (findings.size() != 1) {
      throw std::runtime_error(std::to_string(findings.size()) + " findings of " + rule);
    }
    return findings.front();
  }

  TemporaryWorkspace workspace;

 private:
  static std::string line_of(const lint::Finding& finding) {
    std::string line = lint::name_of(finding.severity);
    line += " " + finding.rule;
    if (finding.where) {
      const std::string& path = finding.where.source->name;
      line += " " + path.substr(path.rfind('/') + 1) + ":" + std::to_string(finding.where.line) +
              ":" + std::to_string(finding.where.column);
    }
    return finding.subject.empty() ? line : line + " " + finding.subject;
  }
};

using Lines = std::vector<std::string>;

}  // namespace forge::tests
