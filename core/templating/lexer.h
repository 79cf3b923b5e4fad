#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace forge::templating {

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

}  // namespace forge::templating
