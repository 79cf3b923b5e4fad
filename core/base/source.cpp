#include "core/base/source.h"

namespace forge {

std::string SourceSpan::describe() const {
  if (!source) return "";
  std::string place = source->name;
  if (line > 0) place += ":" + std::to_string(line);
  if (line > 0 && column > 0) place += ":" + std::to_string(column);
  if (!source->inline_name.empty()) place += " (inline " + source->inline_name + ")";
  return place;
}

std::string SourceSpan::line_text() const {
  if (!source || line < source->first_line) return "";
  std::string_view rest = source->text;
  for (int skipped = source->first_line; skipped < line; ++skipped) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
  return std::string(rest.substr(0, rest.find('\n')));
}

SourceSpan make_span(std::shared_ptr<const SourceText> source, int line, int column) {
  SourceSpan span;
  span.source = std::move(source);
  span.line = line;
  span.column = column;
  return span;
}

}  // namespace forge
