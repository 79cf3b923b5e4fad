#pragma once

#include <string>

namespace forge {

/// Whether it ends in a whole key, "-" and 12 hex digits, or in that of a repetition, "-N". It is
/// no beginning of an id then: where that run was removed, a repetition of it is not meant.
bool is_whole_id(const std::string& id);

}  // namespace forge
