#pragma once

#include <string>

#include "core/templating/value.h"

namespace forge::templating {

/// Python's pprint.pformat(value): its repr, spread over lines where it is longer than 80
/// characters, dicts sorted by their keys.
std::string pretty_text(const Value& value);

}  // namespace forge::templating
