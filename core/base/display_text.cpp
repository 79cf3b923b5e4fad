#include "core/base/display_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "core/base/text.h"

namespace forge::tables {
namespace {

struct Character {
  int32_t code_point = -1;  ///< -1: the byte is no UTF-8
  size_t bytes = 1;
};

Character first_character(std::string_view text) {
  utf8proc_int32_t code_point = -1;
  const utf8proc_ssize_t bytes =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(text.size()),
                       &code_point);
  if (bytes <= 0) return {};
  return {code_point, static_cast<size_t>(bytes)};
}

bool is_control(int32_t code_point) {
  const utf8proc_category_t category = utf8proc_category(code_point);
  // Format characters too: they can turn the direction of what follows.
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

}  // namespace

int display_width(std::string_view text) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return static_cast<int>(text.size());
  int width = 0;
  while (!text.empty()) {
    const Character character = first_character(text);
    width += character.code_point < 0 ? 1 : utf8proc_charwidth(character.code_point);
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const Character character = first_character(text);
    const char first = text.front();
    if (first == '\t' || first == '\n' || first == '\r') {
      result += ' ';
    } else if (character.code_point < 0) {
      result += "\uFFFD";
    } else if (!is_control(character.code_point)) {
      result += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
  return result;
}

std::string pad_right(const std::string& text, int width) {
  return text + std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ');
}

std::string pad_left(const std::string& text, int width) {
  return std::string(static_cast<size_t>(std::max(0, width - display_width(text))), ' ') + text;
}

std::vector<std::string> wrap(std::string_view text, int width) {
  std::vector<std::string> lines = {""};
  for (const std::string& word : split(text, ' ')) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (display_width(line) + 1 + display_width(word) <= width) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

}  // namespace forge::tables
