#include "core/templating/python_text.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "core/base/text.h"
#include "core/templating/objects.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/unicode.h"
#include "core/templating/work.h"

namespace forge::templating {
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
  if (value.is_undefined()) {
    if (value.as_undefined().lenient) return "";
    throw UndefinedError(value);
  }
  return repr_of(value);
}

}  // namespace forge::templating
