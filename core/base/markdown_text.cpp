#include "core/base/markdown_text.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "core/base/display_text.h"
#include "core/base/text.h"

namespace forge::tables {
namespace {

bool is_letter_or_digit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether the text begins with what Markdown reads as another sign, "&lt;".
bool is_entity(std::string_view text) {
  const size_t end =
      text.find_first_not_of("#0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
  return end != std::string_view::npos && end > 1 && text[end] == ';';
}

/// Where the bracket at `open` is closed that begins no link: a footnote's mark or numbers, "[1]",
/// or what follows a name, "eval_loss[b]"; npos where it may begin a link or the target of one.
size_t end_of_plain_bracket(std::string_view text, size_t open) {
  const size_t close = text.find_first_of("[]", open + 1);
  if (close == std::string_view::npos || text[close] == '[') return std::string_view::npos;
  const char next = close + 1 < text.size() ? text[close + 1] : ' ';
  const bool of_name = open > 0 && is_letter_or_digit(text[open - 1]);
  const bool of_numbers =
      close > open + 1 && text[open + 1] != ' ' &&
      text.substr(open + 1, close - open - 1).find_first_not_of("0123456789., -") ==
          std::string_view::npos;
  const bool is_plain =
      (of_name || of_numbers) && std::string_view("([:").find(next) == std::string_view::npos;
  return is_plain ? close : std::string_view::npos;
}

}  // namespace

std::string markdown_text(std::string_view text) {
  const std::string shown = printable(text);
  const std::string_view all = shown;
  std::string result;
  size_t plain_close = std::string_view::npos;
  const bool may_have_formula = all.find('$') != all.rfind('$');  // one needs two
  bool is_within_word = false;
  for (size_t i = 0; i < all.size(); ++i) {
    const char c = all[i];
    const char next = i + 1 < all.size() ? all[i + 1] : ' ';
    if (c == '[') plain_close = end_of_plain_bracket(all, i);
    const bool is_plain_bracket =
        plain_close != std::string_view::npos && (c == '[' || i == plain_close);
    // Underscores act at the end of a word alone.
    const char last = i > 0 ? all[i - 1] : ' ';
    if (c == '_' && last != '_') {
      const size_t after = all.find_first_not_of('_', i);
      is_within_word = is_letter_or_digit(last) && after != std::string_view::npos &&
                       is_letter_or_digit(all[after]);
    }
    const bool acts = std::string_view("\\|<>*`").find(c) != std::string_view::npos ||
                      ((c == '[' || c == ']') && !is_plain_bracket) ||
                      (c == '_' && !is_within_word) || (c == '!' && next == '[') ||
                      (c == '$' && may_have_formula);
    if (acts) result += '\\';
    result += c;
    if (c == '&' && is_entity(all.substr(i))) result += "amp;";
  }
  return result;
}

std::string markdown_line(std::string_view text) {
  const std::string line = markdown_text(trim(printable(text)));
  const size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  const auto ends_word = [&](size_t at) { return at >= line.size() || line[at] == ' '; };
  if (line.empty()) return line;
  const char first = line[0];
  // "# a", "- a", "+ a", "---", "~~~", "1. a", "1) a"
  const bool is_block = (first == '#' && ends_word(line.find_first_not_of('#'))) ||
                        ((first == '-' || first == '+') && ends_word(1)) ||
                        line.find_first_not_of("- ") == std::string::npos ||
                        starts_with(line, "~~~");
  if (is_block) return "\\" + line;
  if (digits > 0 && digits < line.size() && (line[digits] == '.' || line[digits] == ')') &&
      ends_word(digits + 1))
    return line.substr(0, digits) + "\\" + line.substr(digits);
  return line;
}

std::string markdown_target(std::string_view file) {
  std::string target;
  for (const char c : printable(file)) {
    if (is_letter_or_digit(c) || (c & 0x80) != 0 ||
        std::string_view("/._-~+@,=$").find(c) != std::string_view::npos) {
      target += c;
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "%%%02X", static_cast<unsigned>(c));
      target += code;
    }
  }
  return target;
}

}  // namespace forge::tables
