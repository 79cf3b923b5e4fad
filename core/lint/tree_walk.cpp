#include "core/lint/tree_walk.h"

#include <unordered_set>
#include <vector>

namespace forge::lint {

void for_each_node(const yaml::Node& root, const std::function<void(const yaml::Node&)>& visit) {
  std::unordered_set<const yaml::Node*> seen = {&root};
  std::vector<const yaml::Node*> open = {&root};
  const auto open_once = [&](const yaml::NodePtr& node) {
    if (seen.insert(node.get()).second) open.push_back(node.get());
  };
  while (!open.empty()) {
    const yaml::Node& node = *open.back();
    open.pop_back();
    visit(node);
    for (const yaml::NodePtr& item : node.items) open_once(item);
    for (const yaml::Entry& entry : node.entries) open_once(entry.value);
  }
}

}  // namespace forge::lint
