#pragma once

#include "core/lint/finding.h"
#include "core/lint/subject.h"

/// What `forge check` looks for. Each function adds what it finds in one config or project; none
/// throws for what is wrong with a template.
namespace forge::lint {

/// unknown-meta-key: keys of meta.yaml.
void check_project(const project::Project& project, Findings& findings);

/// For a config of forge: unknown-key, wrong-value, missing-key, disagreement, missing-file,
/// unsupported, and does-not-resolve for what hides the rest.
void check_experiment(const Subject& subject, Findings& findings);

/// For a graph of calls: invalid-graph, identity-as-constructor, lost-identity.
void check_graph(const Subject& subject, Findings& findings);

/// stray-quote, invalid-arguments: the arguments that a config declares for its templates.
void check_arguments(const Subject& subject, Findings& findings);

/// unknown-block: a block that overrides nothing in the templates that its own one extends.
void check_blocks(const Subject& subject, Findings& findings);

/// stands-alone: a config that extends and includes nothing.
void check_parent(const Subject& subject, Findings& findings);

/// duplicate-inline, unused-inline
void check_inline_templates(const Subject& subject, Findings& findings);

/// never-set: a variable that is read with a default everywhere and set nowhere.
void check_variables(const Subject& subject, Findings& findings);

/// yaml-versions: what readers of YAML 1.1 and 1.2 take differently.
void check_scalars(const Subject& subject, Findings& findings);

/// repeated-key: a key that one block of one template gives twice.
void check_repeated_keys(const Subject& subject, Findings& findings);

}  // namespace forge::lint
