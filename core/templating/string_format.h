#pragma once

#include <string>
#include <string_view>

#include "core/templating/value.h"

namespace forge::templating {

/// str.format: `format` with its `{}` fields replaced by the arguments.
std::string brace_format(std::string_view format, const Arguments& arguments);

/// format(value, specification) of Python, e.g. "#^40", "08.3f", ",".
std::string format_value(const Value& value, std::string_view specification);

/// `format % values` of Python; `values` is a tuple, a dict (for `%(key)s`) or one value.
std::string percent_format(std::string_view format, const Value& values);

}  // namespace forge::templating
