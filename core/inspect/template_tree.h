#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/templating/render.h"

namespace forge::inspect {

/// A template that a render read.
struct TreeTemplate {
  std::string name;         ///< as it was asked for
  std::string relation;     ///< "", "extends", "include", "import": how the one above asked for it
  std::string file;         ///< relative to the folder of the tree
  std::string inline_name;  ///< "" for the file's own template
  int line = 1;             ///< of the file, on which it begins
  size_t level = 0;         ///< 0 for the first
  size_t parent = 0;        ///< its index; of the first, its own
};

/// The templates of a render, each below the one that asked for it first: depth first, in the order
/// in which they were read. Files are named relative to `here`.
std::vector<TreeTemplate> template_tree(const std::vector<templating::LoadedTemplate>& loaded,
                                        const std::filesystem::path& here);

/// Each file on a line, once for every template in it that was read.
std::string tree_as_files(const std::vector<TreeTemplate>& tree);
/// A tree of lines.
std::string tree_as_text(const std::vector<TreeTemplate>& tree);
/// Nested lists with links to the files.
std::string tree_as_markdown(const std::vector<TreeTemplate>& tree);
/// For Graphviz.
std::string tree_as_dot(const std::vector<TreeTemplate>& tree);
/// [{"name", "relation", "file", "line", "inline"?, "level", "loaded_by"}, …]
nlohmann::ordered_json to_json(const std::vector<TreeTemplate>& tree);

}  // namespace forge::inspect
