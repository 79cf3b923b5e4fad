#pragma once

#include <string>
#include <string_view>

#include "core/python/value.h"

namespace forge::python {

/// A value as YAML in flow style, on one line of any width, keys sorted: the text of PyYAML's
/// safe_dump(value, default_flow_style=True, allow_unicode=True). Throws OperationError for
/// what YAML cannot hold.
std::string yaml_text(const Value& value);

/// A string in double quotes on one line, with YAML's escapes.
std::string double_quoted_yaml(std::string_view text);

}  // namespace forge::python
