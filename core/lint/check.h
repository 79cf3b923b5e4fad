#pragma once

#include <string>
#include <vector>

#include "core/lint/finding.h"
#include "core/project/project.h"
#include "core/templating/render.h"

namespace forge::lint {

/// Configs of one project that are to be checked.
struct Selection {
  project::Project project;
  std::vector<project::Config> configs;
  templating::Variables variables;  ///< for their templates
};

/// A finding with the configs in which it was made: "projects/canon:train_x". Of a project's own
/// settings there is none.
struct Reported {
  Finding finding;
  std::vector<std::string> configs;
};

struct Report {
  size_t projects = 0;
  size_t configs = 0;
  std::vector<Reported> findings;  ///< by place

  size_t count(Severity severity) const;
};

/// Checks the configs on all cores. What is wrong with one stays with it; a finding that several
/// share, in a template of which all make use, is reported once. `broken` are projects that could
/// not be read.
Report check(const std::vector<Selection>& selections,
             const std::vector<Error>& broken,
             const templating::Surroundings& surroundings);

}  // namespace forge::lint
