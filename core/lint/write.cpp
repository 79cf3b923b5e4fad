#include "core/lint/write.h"

#include <nlohmann/json.hpp>

#include "core/base/text.h"
#include "core/inspect/span_json.h"

namespace forge::lint {
namespace {

const char* colour_of(Severity severity) {
  switch (severity) {
    case Severity::error: return "\033[1;31m";
    case Severity::warning: return "\033[1;33m";
    case Severity::note: return "\033[1;36m";
  }
  return "";
}

std::string headline(const Finding& finding, bool colour) {
  const std::string severity = name_of(finding.severity);
  const std::string word =
      colour ? colour_of(finding.severity) + severity + ":\033[0m" : severity + ":";
  const std::string rule = " [" + finding.rule + "]";
  return word + " " + finding.message + (colour ? "\033[2m" + rule + "\033[0m" : rule);
}

/// "in 12 configs: a, b, c, …"; nothing where the place alone says which config it is.
std::string configs_line(const Reported& reported) {
  constexpr size_t most = 3;
  const std::vector<std::string>& configs = reported.configs;
  if (configs.size() < 2) return "";
  std::vector<std::string> shown(
      configs.begin(),
      configs.begin() + static_cast<std::ptrdiff_t>(std::min(most, configs.size())));
  if (configs.size() > most) shown.push_back("…");
  return "\n  in " + std::to_string(configs.size()) + " configs: " + join(shown, ", ");
}

std::string counted(size_t count, const std::string& word) {
  return with_thousands(static_cast<long long>(count)) + " " + word + (count == 1 ? "" : "s");
}

std::string summary(const Report& report) {
  const std::string what =
      counted(report.configs, "config") + " of " + counted(report.projects, "project") + ": ";
  if (report.findings.empty()) return what + "nothing to mend";
  return what + counted(report.count(Severity::error), "error") + ", " +
         counted(report.count(Severity::warning), "warning") + ", " +
         counted(report.count(Severity::note), "note");
}

nlohmann::ordered_json to_json(const Reported& reported) {
  const Finding& finding = reported.finding;
  nlohmann::ordered_json json;
  json["severity"] = name_of(finding.severity);
  json["rule"] = finding.rule;
  json["message"] = finding.message;
  json["at"] = inspect::to_json(finding.where);
  json["text"] = finding.where.line_text();
  json["hint"] = finding.hint;
  json["subject"] = finding.subject;
  json["configs"] = reported.configs;
  return json;
}

}  // namespace

std::string to_text(const Report& report, bool colour) {
  std::string text;
  for (const Reported& reported : report.findings) {
    const Finding& finding = reported.finding;
    text += describe_remark(headline(finding, colour), finding.where, "");
    text += configs_line(reported);
    if (!finding.hint.empty()) text += "\nhint: " + finding.hint;
    text += "\n\n";
  }
  return text + summary(report) + "\n";
}

nlohmann::ordered_json to_json(const Report& report) {
  nlohmann::ordered_json json;
  json["projects"] = report.projects;
  json["configs"] = report.configs;
  json["errors"] = report.count(Severity::error);
  json["warnings"] = report.count(Severity::warning);
  json["notes"] = report.count(Severity::note);
  json["findings"] = nlohmann::ordered_json::array();
  for (const Reported& reported : report.findings) json["findings"].push_back(to_json(reported));
  return json;
}

}  // namespace forge::lint
