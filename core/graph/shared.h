#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/graph/node.h"

namespace forge::graph {

/// The nodes of a graph that more than one other refers to, with a name for each: its identity,
/// else its anchor in the text, else a number. Scalars and variables are values and have no
/// identity to share.
class SharedNodes {
 public:
  explicit SharedNodes(const Node& root);

  /// The name of a shared node, or null for one that is not shared.
  const std::string* name_of(const Node& node) const;
  /// All of them; a node comes behind those that it refers to.
  const std::vector<const Node*>& in_order() const { return in_order_; }

 private:
  void count(const Node& node);
  void list(const Node& node, std::unordered_set<const Node*>& seen);
  void name_all();

  std::unordered_map<const Node*, int> references_;
  std::unordered_map<const Node*, std::string> names_;
  std::vector<const Node*> in_order_;
};

/// Calls `visit` for each node that this one refers to, in order.
template <typename Visit>
void for_each_child(const Node& node, const Visit& visit) {
  for (const NodePtr& item : node.items) visit(*item);
  for (const Entry& entry : node.entries) visit(*entry.value);
  for (const NodePtr* other :
       {&node.submodule_searchpath, &node.latent_args, &node.default_value}) {
    if (*other) visit(**other);
  }
}

}  // namespace forge::graph
