#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace forge::jinja {

struct Token {
  enum class Kind {
    literal,      ///< template text
    print_begin,  ///< {{
    print_end,
    tag_begin,  ///< {%
    tag_end,
    name,
    string,  ///< with its quotes
    integer,
    real,
    symbol,  ///< operator or bracket
    end,
  };
  Kind kind;
  uint32_t position;  ///< offset in the text
  std::string_view text;
};

/// A text that is no template; the caller turns it into an Error with the place.
struct SyntaxError : std::runtime_error {
  SyntaxError(const std::string& message, size_t at, std::string hint_text = "")
      : std::runtime_error(message), position(at), hint(std::move(hint_text)) {}
  size_t position;
  std::string hint;
};

/// Jinja's tokens of a preprocessed text, with white space already trimmed as its options ask for:
/// a newline behind `%}` and `#}` goes, `-` takes all white space on its side, `+` takes nothing.
/// The tokens point into `text`. Comments and raw tags leave no token.
std::vector<Token> tokenize(std::string_view text);

/// The value of a string token: quotes removed, escapes resolved.
std::string string_value(const Token& token);

std::string describe(const Token& token);

/// The tokens of a template, with the questions a parser asks.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[next_]; }
  const Token& following() const { return tokens_[std::min(next_ + 1, tokens_.size() - 1)]; }
  Token take() {
    const Token& token = tokens_[next_];
    if (next_ + 1 < tokens_.size()) ++next_;
    return token;
  }

  bool is(Token::Kind kind) const { return current().kind == kind; }
  bool is_symbol(std::string_view text) const { return is(current(), Token::Kind::symbol, text); }
  bool is_name(std::string_view text) const { return is(current(), Token::Kind::name, text); }
  static bool is(const Token& token, Token::Kind kind, std::string_view text) {
    // Nearly every question is answered by the first character, without a call.
    return token.kind == kind && token.text[0] == text[0] && token.text == text;
  }

  bool skip_symbol(std::string_view text) { return is_symbol(text) && (take(), true); }
  bool skip_name(std::string_view text) { return is_name(text) && (take(), true); }

  Token expect(Token::Kind kind, const std::string& what) {
    if (!is(kind)) fail("unexpected " + describe(current()) + ", expected " + what);
    return take();
  }
  void expect_symbol(const std::string& text) {
    if (!skip_symbol(text)) fail("unexpected " + describe(current()) + ", expected '" + text + "'");
  }
  void expect_name(const std::string& text) {
    if (!skip_name(text)) fail("unexpected " + describe(current()) + ", expected '" + text + "'");
  }

  /// Throws SyntaxError at the current token.
  [[noreturn]] void fail(const std::string& message, std::string hint = "") const {
    throw SyntaxError(message, current().position, std::move(hint));
  }

 private:
  std::vector<Token> tokens_;
  size_t next_ = 0;
};

}  // namespace forge::jinja
