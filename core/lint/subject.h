#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/graph/node.h"
#include "core/lint/finding.h"
#include "core/lint/surveys.h"
#include "core/project/project.h"
#include "core/project/template_arguments.h"
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
  templating::RenderedText rendered = {};
  yaml::NodePtr root = nullptr;
  std::vector<const yaml::Node*> nodes = {};              ///< all of the document
  bool is_experiment = false;                             ///< in forge's own schema
  std::optional<graph::Graph> graph = {};                 ///< the document as a graph of calls
  std::optional<Error> graph_problem = {};                ///< why it is none
  std::vector<project::TemplateArgument> arguments = {};  ///< that its templates take
  std::optional<Error> arguments_problem = {};            ///< why nothing is known of them
  std::vector<UsedTemplate> templates = {};  ///< in order of loading, the config's own first
  /// Every template of every file that was loaded, also those that were not used.
  std::vector<const templating::PartSurvey*> parts = {};

  /// The used template of that name, or null.
  const UsedTemplate* find(const std::string& name) const;
};

/// Renders the config and gathers the facts. Nothing where it does not render or is not YAML; then
/// a finding says why.
std::optional<Subject> open_subject(const project::Project& project,
                                    const project::Config& config,
                                    const templating::Surroundings& surroundings,
                                    const templating::Variables& variables,
                                    Surveys& surveys,
                                    Findings& findings);

}  // namespace forge::lint
