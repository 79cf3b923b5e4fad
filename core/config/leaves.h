#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/config/layers.h"
#include "core/config/resolve.h"
#include "core/yaml/yaml.h"

namespace forge::config {

/// One value of a config, and who set it.
struct Leaf {
  std::string path;  ///< "model.canon.set"; in a graph also "callbacks[0].every"
  nlohmann::json value;
  Origin origin;
};

/// Every value of a resolved config, in alphabetical order.
std::vector<Leaf> leaves_of(const ResolvedConfig& resolved);

/// Every scalar and every tag of a document, in its order. A tagged collection is a leaf of its own
/// with the tag as value; one that was met before is a leaf with the path of that place: "*path".
/// `path` is that of `root` in its document.
std::vector<Leaf> leaves_of(const yaml::Node& root, const std::string& path = "");

/// Every value of a run, from its config.json and config.origin.json (which may be null).
std::vector<Leaf> leaves_of_run(const nlohmann::json& config, const nlohmann::json& origins);

/// The value of a scalar, with its tag as text where it has one of its own.
nlohmann::json json_of(const yaml::Node& scalar);

/// A node as the config that holds it sets it.
Setting setting_of(const yaml::Node& node);

/// A value on one line: text without quotes unless it is empty or looks like something else.
std::string shown_value(const nlohmann::json& value);

/// One setting: {"value", "from", "at": as in project::to_json, "derived_from"}, less what is not
/// known.
nlohmann::ordered_json to_json(const Setting& setting);

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
