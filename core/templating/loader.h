#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/source.h"
#include "core/templating/ast.h"
#include "core/templating/line_preprocessor.h"
#include "core/templating/traced_text.h"

namespace forge::templating {

/// One template, parsed: a file's own or an inline one.
class Unit {
 public:
  /// Throws Error for a syntax error; `via` is the use that asked for the template.
  Unit(std::string name,
       std::shared_ptr<const SourceText> source,
       std::shared_ptr<const SourceSpan> via);
  Unit(const Unit&) = delete;
  Unit& operator=(const Unit&) = delete;

  const std::string& name() const { return name_; }
  const std::shared_ptr<const SourceText>& source() const { return source_; }
  const ast::Template& tree() const { return tree_; }
  /// Place in the file of an offset into the preprocessed text.
  SourceSpan span(size_t position, std::shared_ptr<const SourceSpan> via) const;

 private:
  std::string name_;
  std::shared_ptr<const SourceText> source_;
  PreprocessedText preprocessed_;
  std::string_view text_;            ///< without the final newline
  std::vector<size_t> line_starts_;  ///< offsets into text_
  ast::Template tree_;
};

SourceSpan span_of(const Place& place);

/// A part of a template file: what stands before the first marker `#--- NAME ---`, or between two.
struct TemplatePart {
  std::string inline_name;  ///< "" for the file's own template
  std::string text;
  int first_line = 1;
};

/// Cuts a file (newlines normalised) at its markers of inline templates.
std::vector<TemplatePart> split_inline_templates(std::string_view file);

/// Finds templates by name on a search path. Inline templates exist once the file that holds them
/// was loaded; they go before files, the last file loaded wins, and what was parsed once stays.
class Loader {
 public:
  explicit Loader(const std::vector<std::filesystem::path>& search_path);

  /// The template, or null where there is none; throws Error for what cannot be read or parsed.
  const Unit* find(const std::string& name, const std::shared_ptr<const SourceSpan>& via);
  /// Throws Error that no template of these names is found.
  [[noreturn]] void fail_missing(const std::vector<std::string>& names,
                                 const SourceSpan& where) const;

 private:
  std::shared_ptr<const SourceText> find_source(const std::string& name);
  std::shared_ptr<const SourceText> load_file(const std::filesystem::path& path);
  std::vector<std::string> known_names() const;

  std::vector<std::filesystem::path> search_path_;
  std::map<std::string, std::shared_ptr<const SourceText>> inline_sources_;
  std::map<std::string, std::unique_ptr<const Unit>> units_;
};

}  // namespace forge::templating
