#include "core/templating/string_functions.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/unicode.h"
#include "core/templating/work.h"

namespace forge::templating {
namespace {

bool is_line_break(int32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

/// Begin of the code point that ends at `end`.
size_t previous(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

bool is_stripped(std::string_view character, const std::string* characters) {
  if (characters) return characters->find(character) != std::string::npos;
  size_t position = 0;
  return is_space(next_code_point(character, position));
}

std::vector<std::string> split_at_space(std::string_view text, int64_t limit) {
  std::vector<std::string> parts;
  text.remove_prefix(leading_space(text));
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.emplace_back(text);
      break;
    }
    size_t end = 0;
    while (end < text.size() && leading_space(text.substr(end)) == 0) next_code_point(text, end);
    charge_text(end);
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
    text.remove_prefix(leading_space(text));
  }
  return parts;
}

std::vector<std::string> split_at_space_from_right(std::string_view text, int64_t limit) {
  std::vector<std::string> parts;
  text.remove_suffix(trailing_space(text));
  while (!text.empty()) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.emplace_back(text);
      break;
    }
    size_t begin = text.size();
    while (begin > 0 && trailing_space(text.substr(0, begin)) == 0) begin = previous(text, begin);
    charge_text(text.size() - begin);
    parts.emplace_back(text.substr(begin));
    text = text.substr(0, begin);
    text.remove_suffix(trailing_space(text));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

void require_separator(const std::string& separator) {
  if (separator.empty()) throw OperationError("empty separator");
}

}  // namespace

Extent strip_extent(std::string_view text, const std::string* characters, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end) {
    size_t next = begin;
    next_code_point(text, next);
    if (!is_stripped(text.substr(begin, next - begin), characters)) break;
    begin = next;
  }
  while (right && end > begin) {
    const size_t last = previous(text, end);
    if (!is_stripped(text.substr(last, end - last), characters)) break;
    end = last;
  }
  return {begin, end - begin};
}

std::string replace(std::string_view text,
                    std::string_view old,
                    std::string_view fresh,
                    int64_t limit) {
  charge_search(text.size(), old.size());
  std::string result;
  size_t position = 0;
  for (; limit != 0; --limit) {
    size_t found = 0;
    charge_walk(20);
    if (old.empty()) {
      if (position > text.size()) break;
      result += fresh;
      if (position == text.size()) return result;
      found = position;
      next_code_point(text, found);
      result += text.substr(position, found - position);
      position = found;
    } else {
      found = text.find(old, position);
      if (found == std::string_view::npos) break;
      result += text.substr(position, found - position);
      result += fresh;
      position = found + old.size();
    }
    require_text_size(result.size());
  }
  return result += text.substr(position);
}

std::string pad(std::string_view text, char align, size_t width, std::string_view fill) {
  require_text_size(width);
  const size_t size = length_of(text);
  const size_t missing = width > size ? width - size : 0;
  // str.center puts an odd blank on the left when the width is odd (CPython's rule).
  size_t left = align == '>' ? missing : align == '^' ? missing / 2 + (missing & width & 1) : 0;
  std::string result;
  for (size_t i = 0; i < left; ++i) result += fill;
  result += text;
  for (size_t i = left; i < missing; ++i) result += fill;
  return result;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t line = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    const int32_t c = next_code_point(text, i);
    if (!is_line_break(c)) continue;
    if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
    charge_text(i - line);
    lines.emplace_back(text.substr(line, (keep_ends ? i : end) - line));
    line = i;
  }
  if (line < text.size()) lines.emplace_back(text.substr(line));
  return lines;
}

std::vector<std::string> split_text(std::string_view text,
                                    const std::string* separator,
                                    int64_t limit) {
  if (!separator) return split_at_space(text, limit);
  require_separator(*separator);
  charge_search(text.size(), separator->size());
  std::vector<std::string> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t end = text.find(*separator);
    if (end == std::string_view::npos) break;
    charge_text(end);
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end + separator->size());
  }
  parts.emplace_back(text);
  return parts;
}

std::vector<std::string> split_text_from_right(std::string_view text,
                                               const std::string* separator,
                                               int64_t limit) {
  if (!separator) return split_at_space_from_right(text, limit);
  require_separator(*separator);
  charge_search(text.size(), separator->size());
  std::vector<std::string> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t begin = text.rfind(*separator);
    if (begin == std::string_view::npos) break;
    charge_text(text.size() - begin);
    parts.emplace_back(text.substr(begin + separator->size()));
    text = text.substr(0, begin);
  }
  parts.emplace_back(text);
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::string indent(std::string_view text, std::string_view indentation, bool first, bool blank) {
  // The original appends a newline, so that a final line break leaves an empty last line.
  const std::vector<std::string> lines = split_lines(std::string(text) + "\n", false);
  std::string result;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) result += '\n';
    const bool wanted = i == 0 ? first : blank || !lines[i].empty();
    if (wanted) result += indentation;
    result += lines[i];
    require_text_size(result.size());
  }
  return result;
}

}  // namespace forge::templating
