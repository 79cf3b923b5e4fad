#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/source.h"
#include "core/templating/ast.h"
#include "core/templating/line_preprocessor.h"

namespace forge::templating {

/// A part of a template file: what stands before the first marker `#--- NAME ---`, or between two.
struct TemplatePart {
  std::string inline_name;  ///< "" for the file's own template
  std::string text;
  int first_line = 1;
  std::string marker;   ///< the marker in front of it, without the newlines around; mostly one line
  int marker_line = 0;  ///< on which `marker` begins
};

/// Cuts a file (newlines normalised) at its markers of inline templates.
std::vector<TemplatePart> split_inline_templates(std::string_view file);

/// One template, parsed. Immutable: renders and threads share it.
class ParsedTemplate {
 public:
  /// Throws Error for a syntax error; `via` is the use that asked for the template.
  ParsedTemplate(std::shared_ptr<const SourceText> source,
                 const std::shared_ptr<const SourceSpan>& via);
  ParsedTemplate(const ParsedTemplate&) = delete;
  ParsedTemplate& operator=(const ParsedTemplate&) = delete;

  const ast::Template& tree() const { return tree_; }
  /// Place in the file of an offset into the preprocessed text.
  SourceSpan span(size_t position, std::shared_ptr<const SourceSpan> via) const;

 private:
  std::shared_ptr<const SourceText> source_;
  PreprocessedText preprocessed_;
  std::string_view text_;            ///< without the final newline
  std::vector<size_t> line_starts_;  ///< offsets into text_
  ast::Template tree_;
};

/// One template of a file as it was read. It is parsed when it is first used, by whichever thread.
class TemplateSource {
 public:
  explicit TemplateSource(std::shared_ptr<const SourceText> text, SourceSpan marker = {})
      : text_(std::move(text)), marker_(std::move(marker)) {}

  const std::shared_ptr<const SourceText>& text() const { return text_; }
  /// Place of an inline template's name in its marker; unknown for a file's own template.
  const SourceSpan& marker() const { return marker_; }
  /// Throws Error for a syntax error, to each who asks with the use that led to the template.
  const ParsedTemplate& parsed(const std::shared_ptr<const SourceSpan>& via) const;

 private:
  std::shared_ptr<const SourceText> text_;
  SourceSpan marker_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const ParsedTemplate> parsed_;  ///< null until it is used
};
using TemplateSourcePtr = std::shared_ptr<const TemplateSource>;

/// A file with its inline templates.
struct TemplateFile {
  TemplateSourcePtr own;
  std::vector<TemplateSourcePtr> inlines;  ///< in order; each text knows its name
};

/// Reads a file. Throws Error for what cannot be read, is too large or is not UTF-8.
TemplateFile read_template_file(const std::filesystem::path& path);

}  // namespace forge::templating
