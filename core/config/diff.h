#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/config/leaves.h"

namespace forge::config {

/// A value that two configs do not have in common.
struct Change {
  std::string path;
  std::optional<Leaf> left, right;  ///< nothing where that side has no such value
};

/// What differs, in the order of the left side; what only the right side has comes last.
std::vector<Change> diff(const std::vector<Leaf>& left, const std::vector<Leaf>& right);

/// {"left", "right", "changes": [{"path", "left": {"value", "set_by"}, "right": …}, …]}; a side
/// that has no such value is null.
nlohmann::ordered_json to_json(const std::string& left,
                               const std::string& right,
                               const std::vector<Change>& changes);

}  // namespace forge::config
