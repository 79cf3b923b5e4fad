#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace forge::inspect {

/// A template on a search path, known from its text alone: a file's own or an inline one.
struct ListedTemplate {
  std::string name;            ///< as templates refer to it
  std::filesystem::path file;  ///< that holds it
  bool is_inline = false;
  int line = 1;                  ///< of the file, on which it begins
  std::string extends;           ///< name that the text spells out, "": none, or an expression
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

}  // namespace forge::inspect
