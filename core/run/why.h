#pragma once

#include <string>
#include <vector>

#include "core/run/identity.h"

namespace forge::run {

/// One thing in which two runs' identities differ.
struct IdentityDifference {
  std::string what;         ///< a dotted key of the config, or a part: "data", "device_type", …
  std::string left, right;  ///< as JSON, "" where one of them does not have it
  std::string meaning;      ///< what that part is, "" for a key of the config
};

/// All of them, keys of the config first; none for two runs of one identity.
std::vector<IdentityDifference> differences(const Identity& left, const Identity& right);

}  // namespace forge::run
