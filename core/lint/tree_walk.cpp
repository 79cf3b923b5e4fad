#include "core/lint/tree_walk.h"

#include <unordered_set>

namespace forge::lint {

std::vector<const yaml::Node*> nodes_of(const yaml::Node& root) {
  std::vector<const yaml::Node*> nodes = {&root};
  std::unordered_set<const yaml::Node*> seen = {&root};
  const auto add = [&](const yaml::Node* node) {
    if (seen.insert(node).second) nodes.push_back(node);
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const yaml::Node& node = *nodes[i];
    for (const yaml::NodePtr& item : node.items) add(item.get());
    for (const yaml::Entry& entry : node.entries) add(entry.value.get());
  }
  return nodes;
}

}  // namespace forge::lint
