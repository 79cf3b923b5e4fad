#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/source.h"

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

/// By file, line, column, then by rule.
bool comes_before(const Finding& a, const Finding& b);
/// The same remark about the same place, however one came to it.
bool is_same(const Finding& a, const Finding& b);

}  // namespace forge::lint
