#include <algorithm>

#include "core/templating/filters.h"
#include "core/templating/letter_case.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/parameters.h"
#include "core/templating/pretty_text.h"
#include "core/templating/python_text.h"
#include "core/templating/string_format.h"
#include "core/templating/string_functions.h"
#include "core/templating/unicode.h"
#include "core/templating/word_wrap.h"

namespace forge::templating {
namespace {

/// The input as a string value; a string keeps its origins.
Value to_text(const Value& input) {
  return input.is_string() ? input : Value::string(str_of(input));
}

template <std::string (*function)(std::string_view)>
Value mapped(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("this filter", arguments, {});
  return Value::string(function(str_of(input)));
}

bool separates_words(int32_t c) {
  return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

/// The `title` filter begins words after white space, '-' and brackets (not after apostrophes).
std::string title(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const bool is_separator = separates_words(next_code_point(text, i));
    const size_t second = i;
    for (size_t next = i; next < text.size(); i = next) {
      if (separates_words(next_code_point(text, next)) != is_separator) break;
    }
    result += to_upper(text.substr(begin, second - begin));
    result += to_lower(text.substr(second, i - second));
  }
  return result;
}

Value trim(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'trim'", arguments, {"chars"});
  const std::string characters = parameters.value(0).is_none() ? "" : parameters.text(0);
  const Value text = to_text(input);
  const Extent kept = strip_extent(
      text.as_string(), parameters.value(0).is_none() ? nullptr : &characters, true, true);
  return Value::string(text.traced().substring(kept.begin, kept.size));
}

Value to_string(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("this filter", arguments, {});
  return to_text(input);
}

Value replace_text(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'replace'", arguments, {"old", "new", "count"}, 2);
  const int64_t limit = parameters.value(2).is_none() ? -1 : parameters.integer(2);
  return Value::string(
      replace(str_of(input), str_of(parameters.value(0)), str_of(parameters.value(1)), limit));
}

Value indent_text(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'indent'", arguments, {"width", "first", "blank"});
  const Value width = parameters.value(0, Value::integer(4));
  std::string indentation = width.is_string() ? width.as_string() : "";
  if (!width.is_string()) {
    const auto size = static_cast<size_t>(std::max<int64_t>(0, parameters.integer(0, 4)));
    require_text_size(size);
    indentation.assign(size, ' ');
  }
  if (!require_defined(input).is_string()) {
    throw OperationError("filter 'indent' takes a string, not '" + type_name(input) + "'");
  }
  return Value::string(
      indent(input.as_string(), indentation, parameters.flag(1), parameters.flag(2)));
}

Value center(Evaluator&, const Value& input, const Arguments& arguments) {
  const auto width =
      std::max<int64_t>(0, Parameters("filter 'center'", arguments, {"width"}).integer(0, 80));
  return Value::string(pad(str_of(input), '^', static_cast<size_t>(width)));
}

Value format_text(Evaluator&, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    throw OperationError("filter 'format' takes positional or named arguments, not both");
  }
  if (arguments.named.empty()) {
    return Value::string(percent_format(str_of(input), Value::tuple(arguments.positional)));
  }
  Dict named;
  for (const auto& [name, value] : arguments.named) named.set(Value::string(name), value);
  return Value::string(percent_format(str_of(input), Value::dict(std::move(named))));
}

Value truncate(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters(
      "filter 'truncate'", arguments, {"length", "killwords", "end", "leeway"});
  const std::string end = parameters.text(2, "...");
  const auto length = parameters.integer(0, 255);
  const auto end_length = static_cast<int64_t>(length_of(std::string_view(end)));
  const int64_t leeway = parameters.value(3).is_none() ? 5 : parameters.integer(3);
  if (length < end_length || leeway < 0)
    throw OperationError("filter 'truncate': the length is too small");
  const auto size = static_cast<int64_t>(length_of(input));
  if (size - leeway <= length) return input;
  if (!input.is_string())
    throw OperationError("filter 'truncate' takes a string, not '" + type_name(input) + "'");
  const std::string& text = input.as_string();
  std::string kept = text.substr(0, byte_offset(text, static_cast<size_t>(length - end_length)));
  if (!parameters.flag(1))
    kept = split_text_from_right(kept, &static_cast<const std::string&>(std::string(" ")), 1)[0];
  return Value::string(kept + end);
}

Value count_words(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'wordcount'", arguments, {});
  const std::string text = str_of(input);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const bool word = is_word(next_code_point(text, i));
    if (word && !inside) ++words;
    inside = word;
  }
  return Value::integer(words);
}

Value wrap(Evaluator&, const Value& input, const Arguments& arguments) {
  const Parameters parameters("filter 'wordwrap'",
                              arguments,
                              {"width", "break_long_words", "wrapstring", "break_on_hyphens"});
  WrapOptions options;
  options.width = parameters.integer(0, options.width);
  options.break_long_words = parameters.flag(1, true);
  options.break_on_hyphens = parameters.flag(3, true);
  const std::string line_break = parameters.value(2).is_none() ? "\n" : parameters.text(2);
  if (!require_defined(input).is_string())
    throw OperationError("filter 'wordwrap' takes a string, not '" + type_name(input) + "'");
  std::string wrapped;
  const std::vector<std::string> lines = split_lines(input.as_string(), false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) wrapped += line_break;
    const std::vector<std::string> parts = wrap_words(lines[i], options);
    for (size_t j = 0; j < parts.size(); ++j) {
      if (j > 0) wrapped += line_break;
      wrapped += parts[j];
      require_text_size(wrapped.size());
    }
  }
  return Value::string(std::move(wrapped));
}

Value pretty_print(Evaluator&, const Value& input, const Arguments& arguments) {
  Parameters("filter 'pprint'", arguments, {});
  return Value::string(pretty_text(input));
}

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable filters = {
      {"upper", mapped<to_upper>},
      {"lower", mapped<to_lower>},
      {"capitalize", mapped<capitalize>},
      {"title", mapped<title>},
      {"trim", trim},
      {"string", to_string},
      {"safe", to_string},
      {"replace", replace_text},
      {"indent", indent_text},
      {"center", center},
      {"format", format_text},
      {"truncate", truncate},
      {"wordcount", count_words},
      {"wordwrap", wrap},
      {"pprint", pretty_print},
  };
  return filters;
}

}  // namespace forge::templating
