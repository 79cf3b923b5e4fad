#include "core/config/diff.h"

#include <unordered_map>

namespace forge::config {
namespace {

nlohmann::ordered_json side_to_json(const std::optional<Leaf>& leaf) {
  if (!leaf) return nullptr;
  nlohmann::ordered_json json;
  json["value"] = leaf->value;
  json["set_by"] = to_json(leaf->origin.set_by);
  return json;
}

}  // namespace

std::vector<Change> diff(const std::vector<Leaf>& left, const std::vector<Leaf>& right) {
  std::unordered_map<std::string, const Leaf*> on_the_right;
  for (const Leaf& leaf : right) on_the_right.emplace(leaf.path, &leaf);
  std::vector<Change> changes;
  for (const Leaf& leaf : left) {
    const auto found = on_the_right.find(leaf.path);
    if (found == on_the_right.end()) {
      changes.push_back({leaf.path, leaf, std::nullopt});
      continue;
    }
    if (found->second->value != leaf.value) changes.push_back({leaf.path, leaf, *found->second});
    on_the_right.erase(found);
  }
  for (const Leaf& leaf : right) {
    if (on_the_right.count(leaf.path)) changes.push_back({leaf.path, std::nullopt, leaf});
  }
  return changes;
}

nlohmann::ordered_json to_json(const std::string& left,
                               const std::string& right,
                               const std::vector<Change>& changes) {
  nlohmann::ordered_json json;
  json["left"] = left;
  json["right"] = right;
  json["changes"] = nlohmann::ordered_json::array();
  for (const Change& change : changes) {
    json["changes"].push_back({{"path", change.path},
                               {"left", side_to_json(change.left)},
                               {"right", side_to_json(change.right)}});
  }
  return json;
}

}  // namespace forge::config
