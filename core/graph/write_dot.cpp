#include "core/graph/write_dot.h"

#include <unordered_map>

#include "core/graph/shared.h"

namespace forge::graph {
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
        refer(id, "", *target.value);
      }
    } else {
      refer("root", "", *graph_.root);
    }
    return text_ + "}\n";
  }

 private:
  /// Draws what `from` refers to at `path`; plain containers are passed through.
  void refer(const std::string& from, const std::string& path, const Node& node) {
    if (node.is_scalar()) return;
    const bool is_drawn =
        node.kind == Node::Kind::call || node.kind == Node::Kind::variable || shared_.name_of(node);
    if (!is_drawn) return refer_to_children(from, path, node);
    const auto [known, is_new] = ids_.emplace(&node, "n" + std::to_string(ids_.size()));
    const std::string id = known->second;
    if (is_new) {
      text_ += "    " + id + " [label=" + dot_string(label_of(node)) +
               (node.kind == Node::Kind::variable ? ", shape=ellipse" : "") + "];\n";
    }
    text_ += "    " + dot_string(from) + " -> " + id +
             (path.empty() ? "" : " [label=" + dot_string(path) + "]") + ";\n";
    if (is_new) refer_to_children(id, "", node);
  }

  void refer_to_children(const std::string& from, const std::string& path, const Node& node) {
    const auto below = [&](const std::string& key) {
      return path.empty() ? key : path + "." + key;
    };
    for (size_t i = 0; i < node.items.size(); ++i) {
      refer(from, path + "[" + std::to_string(i) + "]", *node.items[i]);
    }
    for (const Entry& entry : node.entries) refer(from, below(entry.key), *entry.value);
    if (node.submodule_searchpath) {
      refer(from, below("submodule_searchpath"), *node.submodule_searchpath);
    }
    if (node.latent_args) refer(from, below("latent_args"), *node.latent_args);
    if (node.default_value) refer(from, below("default"), *node.default_value);
  }

  std::string label_of(const Node& node) const {
    if (node.kind == Node::Kind::variable) return node.text;
    const std::string* name = shared_.name_of(node);
    const std::string& known_as = name ? *name : node.identity;
    const std::string what =
        node.kind == Node::Kind::call
            ? node.text + (node.calling == Node::Calling::singleton
                               ? ""
                               : std::string(" (") + name_of(node.calling) + ")")
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
    if (c == '\n') {
      quoted += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string write_dot(const Graph& graph, const std::string& title) {
  return DotWriter(graph).write(title);
}

}  // namespace forge::graph
