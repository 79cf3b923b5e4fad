#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/base/error.h"
#include "core/jinja/render.h"

namespace forge::project {

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
std::vector<TreeTemplate> template_tree(const std::vector<jinja::LoadedTemplate>& loaded,
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

/// A template on a search path, known from its text alone: a file's own or an inline one.
struct ListedTemplate {
  std::string name;            ///< as templates refer to it
  std::filesystem::path file;  ///< that holds it
  bool is_inline = false;
  int line = 1;                  ///< of the file, on which it begins
  std::string extends;           ///< the name in the text; "": none, or an expression gives it
  bool is_dynamic = false;       ///< an expression names what it extends
  bool is_shadowed = false;      ///< a file of an earlier folder goes by the same name
  std::optional<Error> problem;  ///< why it cannot be parsed
};

/// Every template file below the folders (.yaml, .yml, .jinja, .jinja2, .j2), folder by folder,
/// sorted bytewise; its inline templates behind it. Hidden files and folders are left out, folders
/// that do not exist are skipped.
std::vector<ListedTemplate> list_templates(const std::vector<std::filesystem::path>& search_path);

/// One file a line, relative to `here`.
std::string list_as_files(const std::vector<ListedTemplate>& templates,
                          const std::filesystem::path& here);
/// Nested lists: each template below the one that its text extends.
std::string list_as_markdown(const std::vector<ListedTemplate>& templates,
                             const std::filesystem::path& here);
/// [{"name", "file", "line", "inline", "extends", "dynamic", "shadowed", "problem"?}, …]
nlohmann::ordered_json to_json(const std::vector<ListedTemplate>& templates);

}  // namespace forge::project
