#include "core/inspect/template_tree.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/fs.h"
#include "core/graph/write_dot.h"
#include "core/inspect/span_json.h"
#include "core/templating/unicode.h"

namespace forge::inspect {
namespace {

using templating::LoadedTemplate;

/// Lays the templates out depth first.
class Builder {
 public:
  Builder(const std::vector<LoadedTemplate>& loaded, const fs::path& here)
      : loaded_(loaded), here_(here), children_(loaded.size()) {
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < loaded.size(); ++i) {
      if (i > 0) {
        const auto parent = index.find(loaded[i].loaded_by);
        children_[parent == index.end() ? 0 : parent->second].push_back(i);
      }
      index.emplace(loaded[i].name, i);
    }
  }

  std::vector<TreeTemplate> build() {
    if (!loaded_.empty()) add(0, 0, 0);
    return std::move(tree_);
  }

 private:
  void add(size_t index, size_t level, size_t parent) {
    const LoadedTemplate& loaded = loaded_[index];
    const size_t place = tree_.size();
    tree_.push_back({loaded.name,
                     loaded.relation,
                     relative_file(*loaded.source, here_),
                     loaded.source->inline_name,
                     loaded.source->inline_name.empty() ? 1 : loaded.source->first_line,
                     level,
                     parent});
    for (const size_t child : children_[index]) add(child, level + 1, place);
  }

  const std::vector<LoadedTemplate>& loaded_;
  const fs::path& here_;
  std::vector<std::vector<size_t>> children_;
  std::vector<TreeTemplate> tree_;
};

std::string place_of(const TreeTemplate& node) {
  return node.inline_name.empty() ? node.file
                                  : node.file + ":" + std::to_string(node.line) + " (inline)";
}

/// Whether no later template has the same parent.
bool is_last_child(const std::vector<TreeTemplate>& tree, size_t index) {
  for (size_t i = index + 1; i < tree.size() && tree[i].level >= tree[index].level; ++i) {
    if (tree[i].level == tree[index].level) return false;
  }
  return true;
}

/// The lines that lead to a template.
std::string branch_to(const std::vector<TreeTemplate>& tree, size_t index) {
  std::string branch;
  for (size_t up = index; tree[up].level > 0; up = tree[up].parent) {
    const bool is_last = is_last_child(tree, up);
    branch = (up == index ? (is_last ? "└── " : "├── ") : (is_last ? "    " : "│   ")) + branch;
  }
  return branch;
}

}  // namespace

std::vector<TreeTemplate> template_tree(const std::vector<LoadedTemplate>& loaded,
                                        const fs::path& here) {
  return Builder(loaded, here).build();
}

std::string tree_as_files(const std::vector<TreeTemplate>& tree) {
  std::string text;
  for (const TreeTemplate& node : tree) text += node.file + "\n";
  return text;
}

std::string tree_as_text(const std::vector<TreeTemplate>& tree) {
  std::vector<std::string> names;
  size_t width = 0;
  for (size_t i = 0; i < tree.size(); ++i) {
    const std::string relation = tree[i].relation.empty() ? "" : tree[i].relation + " ";
    names.push_back(branch_to(tree, i) + relation + tree[i].name);
    width = std::max(width, templating::length_of(names.back()));
  }
  std::string text;
  for (size_t i = 0; i < tree.size(); ++i) {
    const std::string pad(width - templating::length_of(names[i]) + 2, ' ');
    text += names[i] + pad + place_of(tree[i]) + "\n";
  }
  return text;
}

std::string tree_as_markdown(const std::vector<TreeTemplate>& tree) {
  std::string text;
  for (const TreeTemplate& node : tree) {
    text += std::string(4 * node.level, ' ') + "- ";
    if (!node.relation.empty()) text += node.relation + " ";
    text += "[" + node.name + "](" + node.file + ")";
    if (!node.inline_name.empty()) text += ", inline at line " + std::to_string(node.line);
    text += "\n";
  }
  return text;
}

std::string tree_as_dot(const std::vector<TreeTemplate>& tree) {
  if (tree.empty()) return "digraph templates {\n}\n";
  std::string text = "digraph " + graph::dot_string(tree.front().name) +
                     " {\n    rankdir=TB;\n    node [shape=box, style=rounded];\n";
  const auto id = [](size_t index) { return "t" + std::to_string(index); };
  for (size_t i = 0; i < tree.size(); ++i) {
    text += "    " + id(i) +
            " [label=" + graph::dot_string(tree[i].name + "\n" + place_of(tree[i])) + "];\n";
  }
  for (size_t i = 1; i < tree.size(); ++i) {
    text += "    " + id(tree[i].parent) + " -> " + id(i) +
            " [label=" + graph::dot_string(tree[i].relation) + "];\n";
  }
  return text + "}\n";
}

nlohmann::ordered_json to_json(const std::vector<TreeTemplate>& tree) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (size_t i = 0; i < tree.size(); ++i) {
    const TreeTemplate& node = tree[i];
    nlohmann::ordered_json object = {{"name", node.name},
                                     {"relation", node.relation},
                                     {"file", node.file},
                                     {"line", node.line},
                                     {"level", node.level},
                                     {"loaded_by", i == 0 ? "" : tree[node.parent].name}};
    if (!node.inline_name.empty()) object["inline"] = node.inline_name;
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace forge::inspect
