#include "core/project/templates.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/files.h"
#include "core/base/markdown_text.h"
#include "core/base/text.h"
#include "core/jinja/static_analysis.h"
#include "core/project/origins.h"
#include "core/project/project.h"
#include "core/python/unicode.h"
#include "core/yaml/graph/write.h"

namespace forge::project {
namespace {

using jinja::LoadedTemplate;

TreeTemplate tree_template(const LoadedTemplate& loaded,
                           const fs::path& here,
                           size_t level,
                           size_t parent) {
  const SourceText& source = *loaded.source;
  return {loaded.name,
          loaded.relation,
          relative_file(source.name, here),
          source.inline_name,
          source.inline_name.empty() ? 1 : source.first_line,
          level,
          parent};
}

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
  std::vector<std::vector<size_t>> children(loaded.size());
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < loaded.size(); ++i) {
    const auto parent = index.find(loaded[i].loaded_by);
    if (i > 0) children[parent == index.end() ? 0 : parent->second].push_back(i);
    index.emplace(loaded[i].name, i);
  }
  std::vector<TreeTemplate> tree;
  const std::function<void(size_t, size_t, size_t)> add =
      [&](size_t i, size_t level, size_t parent) {
        const size_t place = tree.size();
        tree.push_back(tree_template(loaded[i], here, level, parent));
        for (const size_t child : children[i]) add(child, level + 1, place);
      };
  if (!loaded.empty()) add(0, 0, 0);
  return tree;
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
    width = std::max(width, python::length_of(names.back()));
  }
  std::string text;
  for (size_t i = 0; i < tree.size(); ++i) {
    const std::string pad(width - python::length_of(names[i]) + 2, ' ');
    text += names[i] + pad + place_of(tree[i]) + "\n";
  }
  return text;
}

std::string tree_as_markdown(const std::vector<TreeTemplate>& tree) {
  std::string text;
  for (const TreeTemplate& node : tree) {
    text += std::string(4 * node.level, ' ') + "- ";
    if (!node.relation.empty()) text += node.relation + " ";
    text +=
        "[" + tables::markdown_text(node.name) + "](" + tables::markdown_target(node.file) + ")";
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

namespace {

bool is_template(const fs::path& file) {
  static const std::set<std::string> extensions = {".yaml", ".yml", ".jinja", ".jinja2", ".j2"};
  return extensions.count(file.extension().string()) == 1;
}

void add_parts(const std::string& name, const fs::path& file, std::vector<ListedTemplate>& list) {
  for (const jinja::TemplateAnalysis& part : analyze_template(jinja::read_template_file(file))) {
    ListedTemplate listed;
    listed.is_inline = !part.inline_name.empty();
    listed.name = listed.is_inline ? part.inline_name : name;
    listed.file = file;
    listed.line = listed.is_inline ? part.source->first_line : 1;
    listed.problem = part.problem;
    if (const jinja::Reference* parent = part.parent()) {
      listed.extends = parent->names.front();
    } else {
      listed.is_dynamic = std::any_of(
          part.references.begin(), part.references.end(), [](const jinja::Reference& reference) {
            return reference.kind == jinja::Reference::Kind::extends;
          });
    }
    list.push_back(std::move(listed));
  }
}

/// Puts every template below the one that it extends.
class ExtendsTree {
 public:
  ExtendsTree(const std::vector<ListedTemplate>& templates, const fs::path& here)
      : templates_(templates), here_(here), children_(templates.size()) {
    for (size_t i = 0; i < templates.size(); ++i) {
      const auto parent = find_parent(i);
      (parent ? children_[*parent] : roots_).push_back(i);
    }
  }

  std::string write() {
    for (const size_t root : roots_) write(root, 0);
    // The rest are cycles of templates that extend each other.
    for (size_t i = 0; i < templates_.size(); ++i) write(i, 0);
    return std::move(text_);
  }

 private:
  /// The template that another one extends: an inline one of the same file wins.
  std::optional<size_t> find_parent(size_t index) const {
    const ListedTemplate& child = templates_[index];
    if (child.extends.empty()) return std::nullopt;
    std::optional<size_t> found;
    for (size_t i = 0; i < templates_.size(); ++i) {
      const ListedTemplate& candidate = templates_[i];
      if (i == index || candidate.name != child.extends || candidate.is_shadowed) continue;
      if (candidate.is_inline && candidate.file == child.file) return i;
      const bool is_better = !found || (templates_[*found].is_inline && !candidate.is_inline);
      if (is_better) found = i;
    }
    return found;
  }

  void write(size_t index, size_t level) {
    if (!written_.insert(index).second) return;
    const ListedTemplate& listed = templates_[index];
    text_ += std::string(4 * level, ' ') + "- [" + tables::markdown_text(listed.name) + "](" +
             tables::markdown_target(relative_file(listed.file, here_)) + ")" +
             tables::markdown_text(notes_on(listed, level)) + "\n";
    for (const size_t child : children_[index]) write(child, level + 1);
  }

  static std::string notes_on(const ListedTemplate& listed, size_t level) {
    std::vector<std::string> notes;
    if (listed.is_inline) notes.push_back("inline at line " + std::to_string(listed.line));
    if (listed.is_shadowed) notes.push_back("shadowed by a folder before");
    if (listed.is_dynamic) notes.push_back("extends what an expression names");
    if (level == 0 && !listed.extends.empty()) notes.push_back("extends " + listed.extends);
    if (listed.problem) notes.push_back("broken: " + listed.problem->message());
    return notes.empty() ? "" : " (" + join(notes, "; ") + ")";
  }

  const std::vector<ListedTemplate>& templates_;
  const fs::path& here_;
  std::vector<std::vector<size_t>> children_;
  std::vector<size_t> roots_;
  std::set<size_t> written_;
  std::string text_;
};

}  // namespace

std::vector<ListedTemplate> list_templates(const std::vector<fs::path>& search_path) {
  std::vector<ListedTemplate> list;
  std::set<std::string> known;
  std::set<fs::path> seen;
  for (const fs::path& folder : search_path) {
    for (const std::string& name : files_below(folder, is_template)) {
      const fs::path file = folder / name;
      if (!seen.insert(file).second) continue;
      const size_t first = list.size();
      try {
        add_parts(name, file, list);
      } catch (const Error& error) {
        ListedTemplate broken;
        broken.name = name;
        broken.file = file;
        broken.problem = error;
        list.push_back(std::move(broken));
      }
      list[first].is_shadowed = !known.insert(name).second;
    }
  }
  return list;
}

std::string list_as_files(const std::vector<ListedTemplate>& templates, const fs::path& here) {
  std::string text;
  for (const ListedTemplate& listed : templates) {
    if (!listed.is_inline) text += tables::printable(relative_file(listed.file, here)) + "\n";
  }
  return text;
}

std::string list_as_markdown(const std::vector<ListedTemplate>& templates, const fs::path& here) {
  return ExtendsTree(templates, here).write();
}

nlohmann::ordered_json to_json(const std::vector<ListedTemplate>& templates) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ListedTemplate& listed : templates) {
    nlohmann::ordered_json object = {{"name", listed.name},
                                     {"file", listed.file.generic_string()},
                                     {"line", listed.line},
                                     {"inline", listed.is_inline},
                                     {"extends", listed.extends},
                                     {"dynamic", listed.is_dynamic},
                                     {"shadowed", listed.is_shadowed}};
    if (listed.problem) object["problem"] = describe(*listed.problem);
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace forge::project
