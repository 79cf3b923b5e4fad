#include "core/templating/pretty_text.h"

#include <algorithm>

#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/python_text.h"
#include "core/templating/string_functions.h"
#include "core/templating/unicode.h"
#include "core/templating/work.h"

namespace forge::templating {
namespace {

constexpr int64_t line_width = 80;
constexpr int max_depth = 100;

int64_t width_of(const std::string& text) {
  return static_cast<int64_t>(length_of(std::string_view(text)));
}

/// Keys that cannot be compared are sorted by their type's name.
bool comes_before(const Dict::Entry& left, const Dict::Entry& right) {
  try {
    return less(left.first, right.first);
  } catch (const OperationError&) {
    return type_name(left.first) < type_name(right.first);
  }
}

/// The same value with the entries of all dicts sorted.
Value sorted(const Value& value, int depth) {
  if (depth > max_depth) throw OperationError("a value is too deeply nested to be printed");
  if (value.is_sequence()) {
    List items;
    for (const Value& item : value.items()) items.push_back(sorted(item, depth + 1));
    require_list_size(items.size());
    return value.kind() == Value::Kind::list ? Value::list(std::move(items))
                                             : Value::tuple(std::move(items));
  }
  if (!value.is_dict()) return value;
  std::vector<Dict::Entry> entries = value.as_dict().entries();
  std::stable_sort(entries.begin(), entries.end(), comes_before);
  Dict dict;
  for (const auto& [key, entry] : entries) dict.set(key, sorted(entry, depth + 1));
  return Value::dict(std::move(dict));
}

/// Words of a line, each with the blanks behind it.
std::vector<std::string> words_with_blanks(const std::string& line) {
  std::vector<std::string> words;
  size_t begin = 0;
  while (begin < line.size()) {
    size_t end = begin;
    while (end < line.size() && leading_space(std::string_view(line).substr(end)) == 0)
      next_code_point(line, end);
    end += leading_space(std::string_view(line).substr(end));
    charge_text(8 * (end - begin));
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

/// CPython's pprint.PrettyPrinter. `indent` is the column that a value begins at, `allowance` the
/// room that brackets behind it need.
class PrettyPrinter {
 public:
  std::string print(const Value& value) {
    format(value, 0, 0, 0);
    return std::move(text_);
  }

 private:
  void format(const Value& value, int64_t indent, int64_t allowance, int level) {
    const std::string line = repr_of(value);
    charge_text(line.size());
    require_text_size(text_.size() + line.size());
    if (width_of(line) <= line_width - indent - allowance) {
      text_ += line;
    } else if (value.is_dict()) {
      text_ += '{';
      format_entries(value.as_dict(), indent, allowance + 1, level + 1);
      text_ += '}';
    } else if (value.is_sequence()) {
      const bool is_list = value.kind() == Value::Kind::list;
      const std::string end = is_list ? "]" : value.items().size() == 1 ? ",)" : ")";
      text_ += is_list ? '[' : '(';
      format_items(value.items(), indent, allowance + width_of(end), level + 1);
      text_ += end;
    } else if (value.is_string() && !value.as_string().empty()) {
      format_string(value.as_string(), indent, allowance, level + 1);
    } else {
      text_ += line;
    }
  }

  void new_line(int64_t indent) {
    require_text_size(text_.size() + static_cast<size_t>(indent));
    text_ += '\n' + std::string(static_cast<size_t>(indent), ' ');
  }

  void format_entries(const Dict& dict, int64_t indent, int64_t allowance, int level) {
    ++indent;
    for (size_t i = 0; i < dict.size(); ++i) {
      const auto& [key, value] = dict.entries()[i];
      const std::string name = repr_of(key);
      const bool last = i + 1 == dict.size();
      text_ += name + ": ";
      format(value, indent + width_of(name) + 2, last ? allowance : 1, level);
      if (last) break;
      text_ += ',';
      new_line(indent);
    }
  }

  void format_items(const List& items, int64_t indent, int64_t allowance, int level) {
    ++indent;
    for (size_t i = 0; i < items.size(); ++i) {
      const bool last = i + 1 == items.size();
      format(items[i], indent, last ? allowance : 1, level);
      if (last) break;
      text_ += ',';
      new_line(indent);
    }
  }

  /// A long string as several literals, cut at line breaks and between words.
  void format_string(const std::string& string, int64_t indent, int64_t allowance, int level) {
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    const std::vector<std::string> pieces = pieces_of(string, line_width - indent, allowance);
    const bool in_brackets = level == 1 && pieces.size() > 1;
    if (in_brackets) text_ += '(';
    for (size_t i = 0; i < pieces.size(); ++i) {
      if (i > 0) new_line(indent);
      text_ += pieces[i];
    }
    if (in_brackets) text_ += ')';
  }

  static std::vector<std::string> pieces_of(const std::string& string,
                                            int64_t width,
                                            int64_t allowance) {
    std::vector<std::string> pieces;
    const std::vector<std::string> lines = split_lines(string, true);
    for (size_t i = 0; i < lines.size(); ++i) {
      const bool last_line = i + 1 == lines.size();
      const std::string whole = repr_of_string(lines[i]);
      if (width_of(whole) <= width - (last_line ? allowance : 0)) {
        pieces.push_back(whole);
        continue;
      }
      std::string current;
      const std::vector<std::string> words = words_with_blanks(lines[i]);
      for (size_t j = 0; j < words.size(); ++j) {
        const int64_t room = width - (last_line && j + 1 == words.size() ? allowance : 0);
        if (width_of(repr_of_string(current + words[j])) > room && !current.empty())
          pieces.push_back(repr_of_string(std::exchange(current, "")));
        current += words[j];
      }
      if (!current.empty()) pieces.push_back(repr_of_string(current));
    }
    return pieces;
  }

  std::string text_;
};

}  // namespace

std::string pretty_text(const Value& value) { return PrettyPrinter().print(sorted(value, 0)); }

}  // namespace forge::templating
