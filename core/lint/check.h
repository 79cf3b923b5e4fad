#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/error.h"
#include "core/base/progress.h"
#include "core/config/resolve.h"
#include "core/jinja/render.h"
#include "core/project/project.h"

namespace forge::lint {

enum class Severity {
  error,    ///< the config cannot be used as it stands
  warning,  ///< it can, but most likely says something else than what was meant
  note,     ///< worth knowing
};
/// "error", "warning", "note"
const char* name_of(Severity severity);

/// One thing that a check has to say about a place in a template.
struct Finding {
  Severity severity = Severity::warning;
  std::string rule;  ///< stable name in kebab-case: "unknown-block"
  SourceSpan where;
  std::string message;
  std::string hint;     ///< what would be right, ""
  std::string subject;  ///< the name that it is about: a key, a block, a variable; may be ""
};
using Findings = std::vector<Finding>;

/// An Error that was caught, as a finding.
Finding finding_of(const Error& error, const std::string& rule);

/// Builds the blocks of one's own of a resolved config once. Throws Error with what is wrong with
/// them; does nothing for a config that has none. Called on several threads at once.
using TryBlocks = std::function<void(config::ResolvedConfig&)>;

/// Configs of one project that are to be checked.
struct Selection {
  project::Project project;
  project::ConfigList configs;
  jinja::Variables variables;  ///< for their templates
  TryBlocks try_blocks = {};   ///< none: blocks are not built
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
/// not be read. `progress` counts the configs.
Report check(const std::vector<Selection>& selections,
             const std::vector<Error>& broken,
             const jinja::HostEnvironment& host_environment,
             const CountProgress& progress = {});

/// The report for people, with escape sequences for colour where `colour` is true:
///
///     projects/canon/templates/configs/x.yaml:3:2: warning: the block 'modle' … [unknown-block]
///         [modle]
///          ^
///       used from projects/canon/templates/configs/y.yaml:1:4
///       in 3 configs: projects/canon:x, …
///     hint: did you mean 'model'?
///
/// and a last line that counts.
std::string to_text(const Report& report, bool colour);

/// {"projects", "configs", "errors", "warnings", "notes", "findings": [{"severity", "rule",
/// "message", "at": {"file", "line", "column", …} as in project::to_json, "text", "hint",
/// "subject", "configs": […]}, …]}
nlohmann::ordered_json to_json(const Report& report);

}  // namespace forge::lint
