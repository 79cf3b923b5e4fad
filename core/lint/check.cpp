#include "core/lint/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/parallel.h"
#include "core/base/text.h"
#include "core/lint/rules.h"
#include "core/project/origins.h"

namespace forge::lint {
namespace {

struct SeverityStyle {
  const char* name;
  const char* colour;  ///< escape sequence
};
/// In the order of Severity.
constexpr SeverityStyle severity_styles[] = {
    {"error", "\033[1;31m"}, {"warning", "\033[1;33m"}, {"note", "\033[1;36m"}};

const SeverityStyle& style_of(Severity severity) {
  return severity_styles[static_cast<size_t>(severity)];
}

}  // namespace

const char* name_of(Severity severity) { return style_of(severity).name; }

Finding finding_of(const Error& error, const std::string& rule) {
  return {Severity::error, rule, error.where(), error.message(), error.hint(), ""};
}

namespace {

/// One config's check.
struct Task {
  const Selection& selection;
  const project::Config& config;
  std::string name;  ///< "projects/canon:train_x"
};

struct Outcome {
  Findings findings;
  /// Texts whose use this config decides: its templates, and the markers of all inline templates in
  /// its files.
  std::vector<std::shared_ptr<const SourceText>> evaluated_sources;
  std::vector<std::string> passed;  ///< variables that it sets for templates of other configs
};

/// Names of the variables that calls of other projects hand over.
std::vector<std::string> forwarded_variables(const CheckedConfig& checked) {
  std::vector<std::string> names;
  for (const yaml::Node* node : checked.nodes) {
    const yaml::Node* variables = node->find("pp_kwargs");
    if (!variables) continue;
    for (const yaml::Entry& entry : variables->entries) names.push_back(entry.key);
  }
  return names;
}

void apply_rules(const CheckedConfig& checked, Findings& findings) {
  if (checked.is_experiment) {
    check_experiment(checked, findings);
    check_text_outside_blocks(checked, findings);
    check_unread_variables(checked, findings);
  } else {
    check_graph(checked, findings);
  }
  check_arguments(checked, findings);
  check_blocks(checked, findings);
  check_parent(checked, findings);
  check_inline_templates(checked, findings);
  check_variables(checked, findings);
  check_scalars(checked, findings);
  check_repeated_keys(checked, findings);
  check_dotted_keys(checked, findings);
  check_overrides(checked, findings);
}

Outcome check_config(const Task& task,
                     TemplateAnalyses& analyses,
                     const jinja::HostEnvironment& host_environment) {
  Outcome outcome;
  const auto checked = load_checked_config(
      task.selection, task.config, host_environment, analyses, outcome.findings);
  if (!checked) return outcome;
  apply_rules(*checked, outcome.findings);
  for (const UsedTemplate& used : checked->templates) {
    outcome.evaluated_sources.push_back(used.analysis->source);
  }
  for (const jinja::TemplateAnalysis* part : checked->parts) {
    if (part->marker) outcome.evaluated_sources.push_back(part->marker.source);
  }
  outcome.passed = forwarded_variables(*checked);
  return outcome;
}

/// Whether a rule's finding holds only where no other config shows the opposite: a block that
/// overrides nothing here may do so elsewhere, where its template extends another.
bool needs_all_configs(const std::string& rule) {
  return rule == "unknown-block" || rule == "unused-inline" || rule == "duplicate-inline" ||
         rule == "never-read";
}

/// By file, line, column, then by rule.
auto sort_key(const Finding& finding) {
  const SourceSpan& where = finding.where;
  const std::string_view file = where ? where.source->name : std::string_view();
  return std::make_tuple(file,
                         where.line,
                         where.column,
                         finding.severity,
                         std::string_view(finding.rule),
                         std::string_view(finding.message));
}

/// Gathers what the configs found.
class ReportBuilder {
 public:
  void add(const Finding& finding, const std::string& config) {
    Reported& reported = findings_[finding];
    if (reported.configs.empty()) reported.finding = finding;
    const bool is_known = !reported.configs.empty() && reported.configs.back() == config;
    if (!config.empty() && !is_known) reported.configs.push_back(config);
  }
  void add(const Outcome& outcome, const std::string& config) {
    for (const Finding& finding : outcome.findings) add(finding, config);
    for (const auto& text : outcome.evaluated_sources) ++witnesses_[text.get()];
    passed_.insert(outcome.passed.begin(), outcome.passed.end());
  }
  std::vector<Reported> finish() {
    std::vector<Reported> list;
    for (auto& [key, reported] : findings_) {
      if (holds(reported)) list.push_back(std::move(reported));
    }
    return list;
  }

 private:
  struct Before {
    bool operator()(const Finding& a, const Finding& b) const { return sort_key(a) < sort_key(b); }
  };

  bool holds(const Reported& reported) const {
    const Finding& finding = reported.finding;
    if (finding.rule == "never-set") return passed_.count(finding.subject) == 0;
    if (!needs_all_configs(finding.rule)) return true;
    const auto found = witnesses_.find(finding.where.source.get());
    return found == witnesses_.end() || found->second == reported.configs.size();
  }

  std::map<Finding, Reported, Before> findings_;
  std::unordered_map<const SourceText*, size_t> witnesses_;
  std::set<std::string> passed_;
};

}  // namespace

size_t Report::count(Severity severity) const {
  return static_cast<size_t>(
      std::count_if(findings.begin(), findings.end(), [&](const Reported& reported) {
        return reported.finding.severity == severity;
      }));
}

Report check(const std::vector<Selection>& selections,
             const std::vector<Error>& broken,
             const jinja::HostEnvironment& host_environment,
             const CountProgress& progress) {
  std::vector<Task> tasks;
  for (const Selection& selection : selections) {
    for (const project::Config& config : selection.configs) {
      tasks.push_back({selection, config, selection.project.path + ":" + config.name});
    }
  }
  TemplateAnalyses analyses;
  std::vector<Outcome> outcomes(tasks.size());
  parallel_for(
      tasks.size(),
      [&](size_t i) { outcomes[i] = check_config(tasks[i], analyses, host_environment); },
      progress);

  ReportBuilder report;
  for (const Error& error : broken) report.add(finding_of(error, "invalid-meta"), "");
  for (const Selection& selection : selections) {
    Findings findings;
    check_project(selection.project, findings);
    for (const Finding& finding : findings) report.add(finding, "");
  }
  for (size_t i = 0; i < tasks.size(); ++i) report.add(outcomes[i], tasks[i].name);
  return {selections.size() + broken.size(), tasks.size(), report.finish()};
}

namespace {

std::string headline(const Finding& finding, bool colour) {
  const std::string severity = name_of(finding.severity);
  const std::string word =
      colour ? style_of(finding.severity).colour + severity + ":\033[0m" : severity + ":";
  const std::string rule = " [" + finding.rule + "]";
  return word + " " + tables::printable(finding.message) +
         (colour ? "\033[2m" + rule + "\033[0m" : rule);
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
  return "\n  in " + std::to_string(configs.size()) +
         " configs: " + tables::printable(join(shown, ", "));
}

std::string counted(size_t count, const std::string& word) {
  return with_thousands(static_cast<long long>(count)) + " " + word + (count == 1 ? "" : "s");
}

std::string summary(const Report& report) {
  const std::string what =
      counted(report.configs, "config") + " of " + counted(report.projects, "project") + ": ";
  if (report.findings.empty()) return what + "no problems";
  return what + counted(report.count(Severity::error), "error") + ", " +
         counted(report.count(Severity::warning), "warning") + ", " +
         counted(report.count(Severity::note), "note");
}

nlohmann::ordered_json to_json(const Reported& reported) {
  const Finding& finding = reported.finding;
  return {{"severity", name_of(finding.severity)},
          {"rule", finding.rule},
          {"message", finding.message},
          {"at", project::to_json(finding.where)},
          {"text", finding.where.line_text()},
          {"hint", finding.hint},
          {"subject", finding.subject},
          {"configs", reported.configs}};
}

}  // namespace

std::string to_text(const Report& report, bool colour) {
  std::string text;
  for (const Reported& reported : report.findings) {
    const Finding& finding = reported.finding;
    text += describe_remark(headline(finding, colour), finding.where, "");
    text += configs_line(reported);
    if (!finding.hint.empty()) text += "\nhint: " + tables::printable_lines(finding.hint);
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
