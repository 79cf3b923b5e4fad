#include "core/jinja/lexer.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/python/unicode.h"

namespace forge::jinja {

using namespace python;
namespace {

bool is_hex(char c) {
  return is_ascii_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_octal(char c) { return c >= '0' && c <= '7'; }
bool is_binary(char c) { return c == '0' || c == '1'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    while (position_ < text_.size()) lex_template_text();
    add(Token::Kind::end, text_.size(), 0);
    return std::move(tokens_);
  }

 private:
  char at(size_t position) const { return position < text_.size() ? text_[position] : '\0'; }
  bool looking_at(std::string_view what) const {
    return starts_with(text_.substr(position_), what);
  }

  void add(Token::Kind kind, size_t position, size_t size) {
    tokens_.push_back({kind, static_cast<uint32_t>(position), text_.substr(position, size)});
  }

  size_t space_at(size_t position) const { return leading_space(text_.substr(position)); }

  /// Position of the next `{{`, `{%` or `{#`, or the end.
  size_t find_opening() const {
    for (size_t at_brace = text_.find('{', position_); at_brace != std::string_view::npos;
         at_brace = text_.find('{', at_brace + 1)) {
      const char next = at(at_brace + 1);
      if (next == '{' || next == '%' || next == '#') return at_brace;
    }
    return text_.size();
  }

  void add_literal(size_t begin, size_t end, char sign) {
    std::string_view literal = text_.substr(begin, end - begin);
    if (sign == '-') literal.remove_suffix(trailing_space(literal));
    if (!literal.empty()) add(Token::Kind::literal, begin, literal.size());
  }

  /// A `-` or `+` at the position, which it skips, or 0.
  char take_sign() {
    const char sign = at(position_);
    if (sign != '-' && sign != '+') return 0;
    ++position_;
    return sign;
  }

  void lex_template_text() {
    const size_t begin = position_;
    const size_t opening = find_opening();
    position_ = std::min(opening + 2, text_.size());
    if (opening == text_.size()) return add_literal(begin, opening, 0);
    const char kind = text_[opening + 1];
    if (kind == '%' && skip_raw_tag("raw")) {
      // Here at(opening + 2) is the tag's sign, if it has one.
      add_literal(begin, opening, at(opening + 2));
      return lex_raw(opening);
    }
    const char sign = take_sign();
    add_literal(begin, opening, sign);
    if (kind == '#') return skip_comment(opening);
    add(kind == '{' ? Token::Kind::print_begin : Token::Kind::tag_begin, opening, 2);
    lex_code(kind, opening);
  }

  /// Skips `[-+] NAME [-]%}` at the position if it stands there, with the white space it takes.
  bool skip_raw_tag(std::string_view name) {
    size_t p = position_;
    if (at(p) == '-' || at(p) == '+') ++p;
    p += space_at(p);
    if (!starts_with(text_.substr(p), name)) return false;
    p += name.size();
    p += space_at(p);
    const bool ends_raw = name == "endraw";
    if (starts_with(text_.substr(p), "-%}")) {
      p += 3;
      p += space_at(p);
    } else if (ends_raw && starts_with(text_.substr(p), "+%}")) {
      p += 3;
    } else if (starts_with(text_.substr(p), "%}")) {
      p += 2;
      if (ends_raw && at(p) == '\n') ++p;
    } else {
      return false;
    }
    position_ = p;
    return true;
  }

  void lex_raw(size_t opening) {
    const size_t begin = position_;
    for (size_t tag = text_.find("{%", begin); tag != std::string_view::npos;
         tag = text_.find("{%", tag + 1)) {
      position_ = tag + 2;
      const char sign = at(position_);
      if (skip_raw_tag("endraw")) return add_literal(begin, tag, sign);
    }
    throw SyntaxError("this raw section never ends", opening, "end it with {% endraw %}");
  }

  void skip_comment(size_t opening) {
    const size_t begin = position_;
    const size_t end = text_.find("#}", begin);
    if (end == std::string_view::npos) {
      throw SyntaxError("this comment never ends", opening, "end it with #}");
    }
    position_ = end + 2;
    const char sign = end > begin ? text_[end - 1] : '\0';
    if (sign == '-') {
      position_ += space_at(position_);
    } else if (sign != '+' && at(position_) == '\n') {
      ++position_;
    }
  }

  /// Skips the end of a `{{` or `{%` at the position, if it stands there.
  bool take_end(char kind) {
    const size_t begin = position_;
    const std::string_view end = kind == '{' ? "}}" : "%}";
    const char sign = at(begin);
    const bool signed_end =
        (sign == '-' || (sign == '+' && kind == '%')) && starts_with(text_.substr(begin + 1), end);
    if (!signed_end && !looking_at(end)) return false;
    position_ += signed_end ? 3 : 2;
    if (signed_end && sign == '-') {
      position_ += space_at(position_);
    } else if (!signed_end && kind == '%' && at(position_) == '\n') {
      ++position_;
    }
    add(kind == '{' ? Token::Kind::print_end : Token::Kind::tag_end, begin, signed_end ? 3 : 2);
    return true;
  }

  void lex_code(char kind, size_t opening) {
    std::string brackets;  // the closing ones that are due
    while (true) {
      position_ += space_at(position_);
      if (position_ >= text_.size()) {
        throw SyntaxError(kind == '{' ? "this {{ is never closed" : "this {% is never closed",
                          opening);
      }
      if (brackets.empty() && take_end(kind)) return;
      lex_token(brackets);
    }
  }

  void lex_token(std::string& brackets) {
    const char c = text_[position_];
    if (is_ascii_digit(c)) return lex_number();
    if (c == '\'' || c == '"') return lex_string();
    size_t end = position_;
    for (size_t next = end; next < text_.size() && is_word(next_code_point(text_, next));)
      end = next;
    if (end > position_) {
      add(Token::Kind::name, position_, end - position_);
      position_ = end;
      return;
    }
    lex_symbol(brackets);
  }

  /// End of a run of digits that single underscores may divide, or `begin` where there is none.
  size_t digits_end(size_t begin, bool (*is_of_base)(char)) const {
    size_t end = begin;
    while (is_of_base(at(end)) || (at(end) == '_' && end > begin && is_of_base(at(end + 1)))) ++end;
    return end;
  }

  void lex_number() {
    const size_t begin = position_;
    const size_t whole = digits_end(begin, is_ascii_digit);
    size_t end = whole;
    const bool after_dot = begin > 0 && text_[begin - 1] == '.';
    if (!after_dot) {
      if (at(end) == '.' && is_ascii_digit(at(end + 1))) end = digits_end(end + 1, is_ascii_digit);
      if (at(end) == 'e' || at(end) == 'E') {
        const size_t exponent = end + (at(end + 1) == '+' || at(end + 1) == '-' ? 2 : 1);
        if (is_ascii_digit(at(exponent))) end = digits_end(exponent, is_ascii_digit);
      }
    }
    if (end > whole) {
      add(Token::Kind::real, begin, end - begin);
    } else {
      end = integer_end(begin);
      add(Token::Kind::integer, begin, end - begin);
    }
    position_ = end;
  }

  size_t integer_end(size_t begin) const {
    if (text_[begin] != '0') return digits_end(begin, is_ascii_digit);
    const char base = static_cast<char>(at(begin + 1) | 0x20);
    bool (*const is_of_base)(char) = base == 'x'   ? is_hex
                                     : base == 'o' ? is_octal
                                     : base == 'b' ? is_binary
                                                   : nullptr;
    if (is_of_base) {
      const size_t first = begin + 2 + (at(begin + 2) == '_' ? 1 : 0);
      const size_t end = digits_end(first, is_of_base);
      if (end > first) return end;
    }
    return digits_end(begin, [](char c) { return c == '0'; });
  }

  void lex_string() {
    const size_t begin = position_;
    const char quote = text_[begin];
    for (size_t end = begin + 1; end < text_.size(); ++end) {
      if (text_[end] == '\\') {
        ++end;
      } else if (text_[end] == quote) {
        position_ = end + 1;
        return add(Token::Kind::string, begin, position_ - begin);
      }
    }
    throw SyntaxError("this string never ends", begin);
  }

  void lex_symbol(std::string& brackets) {
    static const std::string_view single = "+-/*%~[](){}><=.:|,;";
    const char c = text_[position_], next = at(position_ + 1);
    const bool is_double = (next == '=' && (c == '=' || c == '!' || c == '>' || c == '<')) ||
                           (next == c && (c == '/' || c == '*'));
    if (!is_double && single.find(c) == std::string_view::npos) {
      size_t end = position_;
      next_code_point(text_, end);
      const std::string character(text_.substr(position_, end - position_));
      throw SyntaxError("unexpected character '" + character + "' in a tag", position_);
    }
    const size_t size = is_double ? 2 : 1;
    if (!is_double) match_bracket(c, brackets);
    add(Token::Kind::symbol, position_, size);
    position_ += size;
  }

  /// Keeps count of the brackets that are open.
  void match_bracket(char c, std::string& brackets) const {
    if (c == '(') brackets += ')';
    if (c == '[') brackets += ']';
    if (c == '{') brackets += '}';
    if (c != ')' && c != ']' && c != '}') return;
    if (brackets.empty()) throw SyntaxError(std::string("unexpected '") + c + "'", position_);
    if (brackets.back() != c) {
      throw SyntaxError(std::string("unexpected '") + c + "', expected '" + brackets.back() + "'",
                        position_);
    }
    brackets.pop_back();
  }

  std::string_view text_;
  size_t position_ = 0;
  std::vector<Token> tokens_;
};

/// Number of a run of digits at `position`, at most `most` of them, behind which it moves.
int64_t take_digits(std::string_view text, size_t& position, int most, int base) {
  int64_t number = 0;
  for (; most > 0 && position < text.size(); --most, ++position) {
    const char c = text[position];
    if (base == 16 ? !is_hex(c) : !is_octal(c)) break;
    number = number * base + (is_ascii_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return number;
}

}  // namespace

std::vector<Token> tokenize(std::string_view text) { return Lexer(text).run(); }

std::string string_value(const Token& token) {
  const std::string_view text = token.text.substr(1, token.text.size() - 2);
  static const std::string_view letters = "\\'\"abfnrtv";
  static const std::string_view meanings = "\\'\"\a\b\f\n\r\t\v";
  std::string value;
  for (size_t i = 0; i < text.size();) {
    if (text[i] != '\\' || i + 1 >= text.size()) {
      value += text[i++];
      continue;
    }
    const char escape = text[i + 1];
    const size_t known = letters.find(escape);
    const int digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    const size_t begin = i;
    i += 2;
    if (known != std::string_view::npos) {
      value += meanings[known];
    } else if (digits > 0) {
      const size_t first = i;
      const int64_t code_point = take_digits(text, i, digits, 16);
      if (i - first != static_cast<size_t>(digits) || code_point > 0x10FFFF) {
        throw SyntaxError("bad escape in a string", token.position + 1 + begin);
      }
      append_code_point(value, static_cast<int32_t>(code_point));
    } else if (is_octal(escape)) {
      --i;
      append_code_point(value, static_cast<int32_t>(take_digits(text, i, 3, 8)));
    } else if (escape == 'N') {
      throw SyntaxError(
          "characters by name are not supported", token.position + 1 + begin, "write \\uXXXX");
    } else if (escape != '\n') {
      value += text.substr(begin, 2);
    }
  }
  return value;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::literal: return "template text";
    case Token::Kind::print_end: return "end of print statement";
    case Token::Kind::tag_end: return "end of tag";
    case Token::Kind::end: return "end of template";
    default: return "'" + std::string(token.text) + "'";
  }
}

}  // namespace forge::jinja
