#include "core/lint/subject.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/config/kind.h"
#include "core/graph/read.h"
#include "core/lint/tree_walk.h"

namespace forge::lint {

using templating::LoadedTemplate;
using templating::PartSurvey;
using templating::TemplateFile;

const UsedTemplate* Subject::find(const std::string& name) const {
  const auto found =
      std::find_if(templates.begin(), templates.end(), [&](const UsedTemplate& used) {
        return used.loaded->name == name;
      });
  return found == templates.end() ? nullptr : &*found;
}

namespace {

/// Adds `templates` and `parts` from what was rendered.
void survey_templates(Subject& subject, Surveys& surveys) {
  std::unordered_map<const SourceText*, const PartSurvey*> survey_of;
  std::unordered_set<const TemplateFile*> seen;
  for (const LoadedTemplate& loaded : subject.rendered.templates) {
    if (!loaded.source->inline_name.empty()) continue;
    const TemplateFile* file =
        subject.project.shared->templates.find(subject.project.search_path, loaded.name);
    if (!file || !seen.insert(file).second) continue;
    for (const PartSurvey& part : surveys.of(*file)) {
      survey_of[part.source.get()] = &part;
      subject.parts.push_back(&part);
    }
  }
  for (const LoadedTemplate& loaded : subject.rendered.templates) {
    const auto found = survey_of.find(loaded.source.get());
    if (found != survey_of.end()) subject.templates.push_back({&loaded, found->second});
  }
}

void read_as_graph(Subject& subject) {
  const bool takes_arguments = subject.root->find("dynamic_args") != nullptr;
  if (subject.is_experiment && !takes_arguments) return;
  try {
    subject.graph = graph::read_graph(subject.root);
  } catch (const Error& error) {
    subject.graph_problem = error;
    return;
  }
  try {
    if (takes_arguments) subject.arguments = project::read_template_arguments(*subject.graph);
  } catch (const Error& error) {
    subject.arguments_problem = error;
  }
}

}  // namespace

std::optional<Subject> open_subject(const project::Project& project,
                                    const project::Config& config,
                                    const templating::Surroundings& surroundings,
                                    const templating::Variables& variables,
                                    Surveys& surveys,
                                    Findings& findings) {
  Subject subject{project, config, surroundings, variables};
  const char* stage = "does-not-render";
  try {
    subject.rendered = project::render_config(project, config, surroundings, variables);
    stage = "invalid-yaml";
    subject.root = project::parse_rendered(project, subject.rendered);
  } catch (const Error& error) {
    findings.push_back(finding_of(error, stage));
    return std::nullopt;
  }
  subject.nodes = nodes_of(*subject.root);
  subject.is_experiment = config::is_experiment(*subject.root);
  read_as_graph(subject);
  survey_templates(subject, surveys);
  return subject;
}

}  // namespace forge::lint
