#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/templating/value.h"

namespace forge::templating {

/// The text of Jinja's `tojson`: json.dumps with sorted keys, non-ASCII escaped, and the
/// characters that mean something in HTML escaped too.
std::string json_text(const Value& value, std::optional<int64_t> indentation);

}  // namespace forge::templating
