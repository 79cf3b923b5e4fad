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

/// Whether nobody gave the value: a config leaves it open, and a run says what its device made of
/// that.
bool is_left_open(const Leaf& left, const Leaf& right) {
  const auto is_default = [](const Leaf& leaf) {
    return leaf.origin.set_by.layer == default_layer;
  };
  return left.value.is_null() != right.value.is_null() && is_default(left) && is_default(right);
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
    const Leaf& other = *found->second;
    if (other.value != leaf.value && !is_left_open(leaf, other))
      changes.push_back({leaf.path, leaf, other});
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
