#include "core/lint/check.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "core/base/parallel.h"
#include "core/lint/rules.h"

namespace forge::lint {
namespace {

/// One config's check.
struct Task {
  const Selection* selection = nullptr;
  const project::Config* config = nullptr;
  std::string name;  ///< "projects/canon:train_x"
};

struct Outcome {
  Findings findings;
  /// Texts about which this config can tell whether they are of use: its templates, and the markers
  /// of all inline templates in its files.
  std::vector<std::shared_ptr<const SourceText>> witnessed;
  std::vector<std::string> passed;  ///< variables that it gives other configs' templates
};

/// Names of the variables that calls of other projects hand over.
std::vector<std::string> passed_variables(const Subject& subject) {
  std::vector<std::string> names;
  for (const yaml::Node* node : subject.nodes) {
    const yaml::Node* variables = node->find("pp_kwargs");
    if (!variables) continue;
    for (const yaml::Entry& entry : variables->entries) names.push_back(entry.key);
  }
  return names;
}

void apply_rules(const Subject& subject, Findings& findings) {
  if (subject.is_experiment) {
    check_experiment(subject, findings);
  } else {
    check_graph(subject, findings);
  }
  check_arguments(subject, findings);
  check_blocks(subject, findings);
  check_parent(subject, findings);
  check_inline_templates(subject, findings);
  check_variables(subject, findings);
  check_scalars(subject, findings);
  check_repeated_keys(subject, findings);
}

Outcome check_config(const Task& task,
                     Surveys& surveys,
                     const templating::Surroundings& surroundings) {
  const Selection& selection = *task.selection;
  Outcome outcome;
  const std::optional<Subject> subject = open_subject(selection.project,
                                                      *task.config,
                                                      surroundings,
                                                      selection.variables,
                                                      surveys,
                                                      outcome.findings);
  if (!subject) return outcome;
  apply_rules(*subject, outcome.findings);
  for (const UsedTemplate& used : subject->templates) {
    outcome.witnessed.push_back(used.survey->source);
  }
  for (const templating::PartSurvey* part : subject->parts) {
    if (part->marker) outcome.witnessed.push_back(part->marker.source);
  }
  outcome.passed = passed_variables(*subject);
  return outcome;
}

/// Whether a rule's finding holds only where no other config shows the opposite: a block that
/// overrides nothing here may do so elsewhere, where its template extends another.
bool needs_all_witnesses(const std::string& rule) {
  return rule == "unknown-block" || rule == "unused-inline" || rule == "duplicate-inline";
}

/// Gathers what the configs found.
class Gathering {
 public:
  void add(const Finding& finding, const std::string& config) {
    Reported& reported = findings_[finding];
    if (reported.configs.empty()) reported.finding = finding;
    if (config.empty()) return;
    if (reported.configs.empty() || reported.configs.back() != config) {
      reported.configs.push_back(config);
    }
  }
  void add(const Outcome& outcome, const std::string& config) {
    for (const Finding& finding : outcome.findings) add(finding, config);
    for (const auto& text : outcome.witnessed) ++witnesses_[text.get()];
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
    bool operator()(const Finding& a, const Finding& b) const { return comes_before(a, b); }
  };

  bool holds(const Reported& reported) const {
    const Finding& finding = reported.finding;
    if (finding.rule == "never-set") return passed_.count(finding.subject) == 0;
    if (!needs_all_witnesses(finding.rule)) return true;
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
             const templating::Surroundings& surroundings) {
  std::vector<Task> tasks;
  for (const Selection& selection : selections) {
    for (const project::Config& config : selection.configs) {
      tasks.push_back({&selection, &config, selection.project.path + ":" + config.name});
    }
  }
  Surveys surveys;
  std::vector<Outcome> outcomes(tasks.size());
  parallel_for(tasks.size(),
               [&](size_t i) { outcomes[i] = check_config(tasks[i], surveys, surroundings); });

  Gathering gathering;
  for (const Error& error : broken) gathering.add(finding_of(error, "invalid-meta"), "");
  for (const Selection& selection : selections) {
    Findings findings;
    check_project(selection.project, findings);
    for (const Finding& finding : findings) gathering.add(finding, "");
  }
  for (size_t i = 0; i < tasks.size(); ++i) gathering.add(outcomes[i], tasks[i].name);
  return {selections.size() + broken.size(), tasks.size(), gathering.finish()};
}

}  // namespace forge::lint
