#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/yaml/graph/graph.h"

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

/// The nodes that a call has besides its arguments, and a variable's default, each with its key:
/// "submodule_searchpath", "latent_args", "default".
std::vector<std::pair<const char*, const Node*>> extra_children(const Node& node);

/// The graph as YAML in one canonical form: four blanks of indentation, block style, strings in
/// double quotes where plain text could be taken for anything else. What several nodes refer to
/// stands once at the top as `.NAME: &NAME …`; under a root that is no mapping of targets, where
/// it is met first. Reading the text gives the same graph.
std::string write_yaml(const Graph& graph);

/// A string or other scalar as one line of YAML that reads as the same in YAML 1.1 and 1.2.
std::string yaml_scalar(const Node& scalar);

/// {"definitions": {NAME: node}, "targets": {NAME: node}}, or {"definitions", "root": node} where
/// the root has no targets. Plain values, lists and mappings are JSON's own (infinite numbers and
/// not-a-number are strings as in YAML); everything else is an object with the key "node":
///     {"node": "shared", "name"}                    one of the definitions
///     {"node": "variable", "name", "default"?}
///     {"node": "list" | "tuple" | "dict", "identity"?, "items" or "entries"}
///     {"node": "singleton" | "factory" | "partial" | "meta", "constructor", "identity"?, "args",
///      "kwargs", "submodule_searchpath"?, "latent_args"?, "at"}
/// and "at", its place as "file:line:column", where that is known.
nlohmann::ordered_json to_json(const Graph& graph);

/// The graph for Graphviz: a box for every call and shared container, an ellipse for a variable,
/// and an edge for each reference, labelled with the argument that makes it. Plain values are left
/// out.
std::string write_dot(const Graph& graph, const std::string& title);

/// A text as a quoted string of the DOT language.
std::string dot_string(const std::string& text);

}  // namespace forge::graph
