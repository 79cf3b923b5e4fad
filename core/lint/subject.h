#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/node.h"
#include "core/lint/surveys.h"
#include "core/project/project.h"
#include "core/templating/survey.h"
#include "core/yaml/node.h"

namespace forge::lint {

/// A template that took part in a config's render.
struct UsedTemplate {
  const templating::LoadedTemplate* loaded = nullptr;
  const templating::PartSurvey* survey = nullptr;
};

/// A config that was rendered and parsed, with the facts that rules look at.
struct Subject {
  const project::Project& project;
  const project::Config& config;
  const templating::Surroundings& surroundings;
  const templating::Variables& variables;  ///< that the caller gives its templates
  templating::RenderedText rendered;
  yaml::NodePtr root;
  std::optional<graph::Graph> graph;    ///< the document as a graph of calls
  std::optional<Error> graph_problem;   ///< why it is none
  std::vector<UsedTemplate> templates;  ///< in order of loading, the config's own first
  /// Every template of every file that was loaded, also those that were not used.
  std::vector<const templating::PartSurvey*> parts;

  /// The used template of that name, or null.
  const UsedTemplate* find(const std::string& name) const;
};

/// Adds `templates` and `parts` from what was rendered.
void survey_templates(Subject& subject, Surveys& surveys);

}  // namespace forge::lint
