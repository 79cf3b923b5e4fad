#include "core/graph/shared.h"

#include <algorithm>
#include <set>

namespace forge::graph {
namespace {

/// What remains of a text as the name of an anchor.
std::string as_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '-';
    name += is_plain ? c : '_';
  }
  return name;
}

/// A value is as good as its equal; a container or call is not.
bool is_value(const Node& node) {
  if (node.kind != Node::Kind::variable) return node.is_scalar();
  return !node.default_value || is_value(*node.default_value);
}

}  // namespace

SharedNodes::SharedNodes(const Node& root) {
  count(root);
  std::unordered_set<const Node*> seen;
  list(root, seen);
  name_all();
}

void SharedNodes::count(const Node& node) {
  if (is_value(node)) return;
  if (++references_[&node] == 1) for_each_child(node, [this](const Node& child) { count(child); });
}

void SharedNodes::list(const Node& node, std::unordered_set<const Node*>& seen) {
  if (is_value(node) || !seen.insert(&node).second) return;
  for_each_child(node, [&](const Node& child) { list(child, seen); });
  if (references_[&node] > 1) in_order_.push_back(&node);
}

void SharedNodes::name_all() {
  std::set<std::string> taken;
  for (const Node* node : in_order_) {
    const std::string given = as_name(node->identity.empty() ? node->anchor : node->identity);
    std::string name = given.empty() ? "shared" : given;
    for (int number = 2; !taken.insert(name).second; ++number) {
      name = (given.empty() ? "shared" : given) + "_" + std::to_string(number);
    }
    names_[node] = name;
  }
}

const std::string* SharedNodes::name_of(const Node& node) const {
  const auto found = names_.find(&node);
  return found == names_.end() ? nullptr : &found->second;
}

}  // namespace forge::graph
