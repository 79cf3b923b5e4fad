#pragma once

#include <string>
#include <string_view>

#include "core/templating/value.h"

namespace forge::templating {

/// Python's str(value). Throws UndefinedError for an undefined value that is not lenient.
std::string str_of(const Value& value);

/// Python's repr(value).
std::string repr_of(const Value& value);
/// Python's ascii(value): its repr with all that is not ASCII escaped.
std::string ascii_of(const Value& value);
std::string repr_of_string(std::string_view text);
std::string repr_of_dict(const Dict& dict);

}  // namespace forge::templating
