#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace forge {

/// A text that was read: a template file, one of its inline templates, a table file, a --set
/// argument. Shared by every span that points into it, so that an error can show the line.
struct SourceText {
  std::string name;         ///< what to show before the line number: a path, or "command line"
  std::string inline_name;  ///< name of the inline template within the file, "" for the file's own
  std::string text;         ///< as read, before any processing
  int first_line = 1;       ///< line of the file on which `text` begins
};

/// A place in a text and how it came to be used. Copied freely.
struct SourceSpan {
  std::shared_ptr<const SourceText> source;  ///< null: the place is unknown
  int line = 0;                              ///< 1-based line of the file, 0: unknown
  int column = 0;                            ///< 1-based, counted in bytes, 0: unknown
  std::shared_ptr<const SourceSpan> via;     ///< the extends or include that led here, or null

  explicit operator bool() const { return source != nullptr; }

  /// "file:line:column", with " (inline NAME)" for an inline template; "" when unknown.
  std::string describe() const;
  /// The text of the line, "" when unknown.
  std::string line_text() const;
};

/// A span at a place of a text that nothing led to.
SourceSpan make_span(std::shared_ptr<const SourceText> source, int line, int column);

}  // namespace forge
