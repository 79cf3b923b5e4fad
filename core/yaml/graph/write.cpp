#include "core/yaml/graph/write.h"

#include <cmath>
#include <set>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "core/python/unicode.h"

namespace forge::graph {
namespace {

/// The text as an anchor's name: other characters become '_'.
std::string as_name(const std::string& text) {
  std::string name;
  for (const char c : text) {
    name += python::is_ascii_letter_or_digit(c) || c == '-' ? c : '_';
  }
  return name;
}

/// Scalars and variables have no identity; containers and calls have.
bool is_value(const Node& node) {
  if (node.kind != Node::Kind::variable) return node.is_scalar();
  return !node.default_value || is_value(*node.default_value);
}

/// Calls `visit` for each node that this one refers to, in order.
template <typename Visit>
void for_each_child(const Node& node, const Visit& visit) {
  for (const NodePtr& item : node.items) visit(*item);
  for (const Entry& entry : node.entries) visit(*entry.value);
  for (const auto& [key, child] : extra_children(node)) visit(*child);
}

}  // namespace

std::vector<std::pair<const char*, const Node*>> extra_children(const Node& node) {
  std::vector<std::pair<const char*, const Node*>> children;
  if (node.submodule_searchpath)
    children.emplace_back("submodule_searchpath", node.submodule_searchpath.get());
  if (node.latent_args) children.emplace_back("latent_args", node.latent_args.get());
  if (node.default_value) children.emplace_back("default", node.default_value.get());
  return children;
}

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
    std::string given = as_name(node->identity.empty() ? node->anchor : node->identity);
    if (given.empty()) given = "shared";
    std::string name = given;
    for (int number = 2; !taken.insert(name).second; ++number)
      name = given + "_" + std::to_string(number);
    names_[node] = name;
  }
}

const std::string* SharedNodes::name_of(const Node& node) const {
  const auto found = names_.find(&node);
  return found == names_.end() ? nullptr : &found->second;
}

namespace {

using json = nlohmann::ordered_json;

class JsonWriter {
 public:
  explicit JsonWriter(const Graph& graph) : graph_(graph), shared_(*graph.root) {}

  json write() {
    json definitions = json::object();
    for (const Node* node : shared_.in_order()) definitions[*shared_.name_of(*node)] = own(*node);
    json document = {{"definitions", std::move(definitions)}};
    if (graph_.has_targets()) {
      document["targets"] = entries(*graph_.root);
    } else {
      document["root"] = own(*graph_.root);
    }
    return document;
  }

 private:
  json value(const Node& node) {
    if (const std::string* name = shared_.name_of(node)) {
      return {{"node", "shared"}, {"name", *name}};
    }
    return own(node);
  }

  json own(const Node& node) {
    switch (node.kind) {
      case Node::Kind::null: return nullptr;
      case Node::Kind::boolean: return node.boolean;
      case Node::Kind::integer: return node.integer;
      case Node::Kind::real:
        return std::isfinite(node.real) ? json(node.real) : json(yaml_scalar(node));
      case Node::Kind::string: return node.text;
      case Node::Kind::variable:
        return completed({{"node", "variable"}, {"name", node.text}}, node);
      case Node::Kind::call: return call(node);
      case Node::Kind::tuple: return container("tuple", node);
      case Node::Kind::list: return node.is_object ? container("list", node) : items(node);
      case Node::Kind::mapping: return node.is_object ? container("dict", node) : entries(node);
    }
    return nullptr;
  }

  json container(const char* name, const Node& node) {
    json object = {{"node", name}};
    if (!node.identity.empty()) object["identity"] = node.identity;
    const bool is_mapping = node.kind == Node::Kind::mapping;
    object[is_mapping ? "entries" : "items"] = is_mapping ? entries(node) : items(node);
    return completed(std::move(object), node);
  }

  json call(const Node& node) {
    json object = {{"node", name_of(node.call_kind)}, {"constructor", node.text}};
    if (!node.identity.empty()) object["identity"] = node.identity;
    object["args"] = items(node);
    object["kwargs"] = entries(node);
    return completed(std::move(object), node);
  }

  json items(const Node& node) {
    json list = json::array();
    for (const NodePtr& item : node.items) list.push_back(value(*item));
    return list;
  }

  json entries(const Node& node) {
    json object = json::object();
    for (const Entry& entry : node.entries) object[entry.key] = value(*entry.value);
    return object;
  }

  /// With the node's extra children and its place.
  json completed(json object, const Node& node) {
    for (const auto& [key, child] : extra_children(node)) object[key] = value(*child);
    const std::string place = node.origin.describe();
    if (!place.empty()) object["at"] = place;
    return object;
  }

  const Graph& graph_;
  SharedNodes shared_;
};

}  // namespace

nlohmann::ordered_json to_json(const Graph& graph) { return JsonWriter(graph).write(); }

namespace {

class DotWriter {
 public:
  explicit DotWriter(const Graph& graph) : graph_(graph), shared_(*graph.root) {}

  std::string write(const std::string& title) {
    text_ = "digraph " + dot_string(title) + " {\n    rankdir=LR;\n    node [shape=box];\n";
    if (graph_.has_targets()) {
      for (const Entry& target : graph_.root->entries) {
        const std::string id = "target " + target.key;
        text_ +=
            "    " + dot_string(id) + " [label=" + dot_string(target.key) + ", shape=plaintext];\n";
        add_edge(id, "", *target.value);
      }
    } else {
      add_edge("root", "", *graph_.root);
    }
    return text_ + "}\n";
  }

 private:
  /// Adds the edges from `from` to the boxes that `node` holds at `path`. Plain containers have
  /// none.
  void add_edge(const std::string& from, const std::string& path, const Node& node) {
    if (node.is_scalar()) return;
    const bool has_box =
        node.kind == Node::Kind::call || node.kind == Node::Kind::variable || shared_.name_of(node);
    if (!has_box) return add_edges_to_children(from, path, node);
    const auto [known, is_new] = ids_.emplace(&node, "n" + std::to_string(ids_.size()));
    const std::string id = known->second;
    if (is_new) {
      text_ += "    " + id + " [label=" + dot_string(label_of(node)) +
               (node.kind == Node::Kind::variable ? ", shape=ellipse" : "") + "];\n";
    }
    text_ += "    " + dot_string(from) + " -> " + id +
             (path.empty() ? "" : " [label=" + dot_string(path) + "]") + ";\n";
    if (is_new) add_edges_to_children(id, "", node);
  }

  void add_edges_to_children(const std::string& from, const std::string& path, const Node& node) {
    const auto below = [&](const std::string& key) {
      return path.empty() ? key : path + "." + key;
    };
    for (size_t i = 0; i < node.items.size(); ++i) {
      add_edge(from, path + "[" + std::to_string(i) + "]", *node.items[i]);
    }
    for (const Entry& entry : node.entries) add_edge(from, below(entry.key), *entry.value);
    for (const auto& [key, child] : extra_children(node)) add_edge(from, below(key), *child);
  }

  std::string label_of(const Node& node) const {
    if (node.kind == Node::Kind::variable) return node.text;
    const std::string* name = shared_.name_of(node);
    const std::string& known_as = name ? *name : node.identity;
    const std::string what =
        node.kind == Node::Kind::call
            ? node.text + (node.call_kind == Node::CallKind::singleton
                               ? ""
                               : std::string(" (") + name_of(node.call_kind) + ")")
            : describe_kind(node);
    return known_as.empty() ? what : known_as + "\n" + what;
  }

  const Graph& graph_;
  SharedNodes shared_;
  std::unordered_map<const Node*, std::string> ids_;
  std::string text_;
};

}  // namespace

std::string dot_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\n' || c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' ? 'n' : c;
  }
  return quoted + "\"";
}

std::string write_dot(const Graph& graph, const std::string& title) {
  return DotWriter(graph).write(title);
}

}  // namespace forge::graph
