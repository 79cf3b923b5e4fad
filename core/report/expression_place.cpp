#include "core/report/expression_place.h"

#include <algorithm>
#include <memory>

namespace forge::report {
namespace {

/// The place in a text that no file is known of.
SourceSpan place_in(const std::string& text, size_t offset) {
  auto source = std::make_shared<SourceText>();
  source->name = "expression";
  source->text = text;
  const std::string before = text.substr(0, offset);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return make_span(source, static_cast<int>(line), static_cast<int>(offset - line_start) + 1);
}

}  // namespace

Error expression_error(const std::string& message,
                       const std::string& text,
                       size_t offset,
                       const SourceSpan& where,
                       const std::string& hint) {
  if (!where) return Error(message, place_in(text, offset), hint);
  const std::string line = where.line_text();
  for (const size_t quote : {0, 1}) {
    const size_t begin = static_cast<size_t>(std::max(where.column, 1)) - 1 + quote;
    if (begin > line.size() || line.compare(begin, text.size(), text) != 0) continue;
    SourceSpan exact = where;
    exact.column = static_cast<int>(begin + offset) + 1;
    return Error(message, exact, hint);
  }
  return Error(
      message + " (column " + std::to_string(offset + 1) + " of '" + text + "')", where, hint);
}

}  // namespace forge::report
