#pragma once

#include <string>
#include <string_view>

#include "core/python/value.h"

namespace forge::python {

/// Python's str(value). Throws UndefinedError for an undefined value that is not lenient.
std::string str_of(const Value& value);

/// Python's repr(value).
std::string repr_of(const Value& value);
/// Python's ascii(value): its repr with all that is not ASCII escaped.
std::string ascii_of(const Value& value);
std::string repr_of_string(std::string_view text);
std::string repr_of_dict(const Dict& dict);

/// Python's pprint.pformat(value): its repr, spread over lines where it is longer than 80
/// characters, dicts sorted by their keys.
std::string pformat(const Value& value);

}  // namespace forge::python
