#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/lint/check.h"

namespace forge::lint {

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
/// "message", "at": {"file", "line", "column", …} as in inspect::to_json, "text", "hint",
/// "subject", "configs": […]}, …]}
nlohmann::ordered_json to_json(const Report& report);

}  // namespace forge::lint
