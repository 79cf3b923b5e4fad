#include "core/python/repr.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/base/text.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/string_functions.h"
#include "core/python/unicode.h"

namespace forge::python {
namespace {

/// Writes nested containers. One that contains itself shows as "[...]", as in Python; so does
/// what lies deeper than any sensible value.
class ReprWriter {
 public:
  std::string write(const Value& value) {
    write_value(value);
    return std::move(text_);
  }
  std::string write(const Dict& dict) {
    write_dict(dict);
    return std::move(text_);
  }

 private:
  static constexpr size_t max_depth = 100;

  void write_value(const Value& value) {
    charge_walk(50);
    require_text_size(text_.size());
    switch (value.kind()) {
      case Value::Kind::undefined: text_ += "Undefined"; break;
      case Value::Kind::none: text_ += "None"; break;
      case Value::Kind::boolean: text_ += value.as_boolean() ? "True" : "False"; break;
      case Value::Kind::integer: text_ += std::to_string(value.as_integer()); break;
      case Value::Kind::real: text_ += shortest(value.as_real()); break;
      case Value::Kind::string: text_ += repr_of_string(value.as_string()); break;
      case Value::Kind::list: write_items(value, "[", "]"); break;
      case Value::Kind::tuple:
        write_items(value, "(", value.items().size() == 1 ? ",)" : ")");
        break;
      case Value::Kind::dict: write_dict(value.as_dict()); break;
      case Value::Kind::object: text_ += value.as_object()->repr(); break;
    }
  }

  /// The containers that are being written, also by the writers of objects within them.
  static std::vector<const void*>& open_containers() {
    thread_local std::vector<const void*> containers;
    return containers;
  }

  /// Marks a container as being written, unless it is already or lies too deep.
  class Opening {
   public:
    explicit Opening(const void* container) {
      std::vector<const void*>& open = open_containers();
      const bool again = std::find(open.begin(), open.end(), container) != open.end();
      allowed_ = !again && open.size() < max_depth;
      if (allowed_) open.push_back(container);
    }
    ~Opening() {
      if (allowed_) open_containers().pop_back();
    }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
    explicit operator bool() const { return allowed_; }

   private:
    bool allowed_;
  };

  void write_items(const Value& value, const char* open, const char* close) {
    const Opening opening(&value.items());
    text_ += open;
    if (!opening) text_ += "...";
    for (size_t i = 0; opening && i < value.items().size(); ++i) {
      if (i > 0) text_ += ", ";
      write_value(value.items()[i]);
    }
    text_ += close;
  }

  void write_dict(const Dict& dict) {
    const Opening opening(&dict);
    text_ += "{";
    if (!opening) text_ += "...";
    for (size_t i = 0; opening && i < dict.size(); ++i) {
      if (i > 0) text_ += ", ";
      write_value(dict.entries()[i].first);
      text_ += ": ";
      write_value(dict.entries()[i].second);
    }
    text_ += "}";
  }

  std::string text_;
};

void append_escape(std::string& text, int32_t code_point) {
  char escape[16];
  const char* format = code_point < 0x100     ? "\\x%02x"
                       : code_point < 0x10000 ? "\\u%04x"
                                              : "\\U%08x";
  std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(code_point));
  text += escape;
}

}  // namespace

std::string repr_of_string(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const bool has_double = text.find('"') != std::string_view::npos;
  const char quote = has_single && !has_double ? '"' : '\'';
  std::string quoted(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const int32_t c = next_code_point(text, i);
    if (c == quote || c == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(c);
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\r') {
      quoted += "\\r";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (is_printable(c)) {
      quoted += text.substr(begin, i - begin);
    } else {
      append_escape(quoted, c);
    }
  }
  return quoted + quote;
}

std::string repr_of(const Value& value) { return ReprWriter().write(value); }
std::string ascii_of(const Value& value) {
  const std::string text = repr_of(value);
  std::string ascii;
  for (size_t i = 0; i < text.size();) {
    const int32_t c = next_code_point(text, i);
    if (c < 0x80) {
      ascii += static_cast<char>(c);
    } else {
      append_escape(ascii, c);
    }
  }
  return ascii;
}

std::string repr_of_dict(const Dict& dict) { return ReprWriter().write(dict); }

std::string str_of(const Value& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_object()) return value.as_object()->str();
  return value.is_lenient() ? "" : repr_of(require_defined(value));
}

namespace {

constexpr int64_t line_width = 80;
constexpr int max_depth = 100;

int64_t width_of(const std::string& text) { return static_cast<int64_t>(length_of(text)); }

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

std::string pformat(const Value& value) { return PrettyPrinter().print(sorted(value, 0)); }

}  // namespace forge::python
