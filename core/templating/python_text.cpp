#include "core/templating/python_text.h"

#include "core/base/text.h"
#include "core/templating/objects.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/unicode.h"

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
  static constexpr int max_depth = 100;

  void write_value(const Value& value) {
    require_text_size(text_.size());
    switch (value.kind()) {
      case Value::Kind::undefined:
        text_ += "Undefined";
        break;
      case Value::Kind::none:
        text_ += "None";
        break;
      case Value::Kind::boolean:
        text_ += value.as_boolean() ? "True" : "False";
        break;
      case Value::Kind::integer:
        text_ += std::to_string(value.as_integer());
        break;
      case Value::Kind::real:
        text_ += shortest(value.as_real());
        break;
      case Value::Kind::string:
        text_ += repr_of_string(value.as_string());
        break;
      case Value::Kind::list:
        write_items(value, "[", "]");
        break;
      case Value::Kind::tuple:
        write_items(value, "(", value.items().size() == 1 ? ",)" : ")");
        break;
      case Value::Kind::dict:
        write_dict(value.as_dict());
        break;
      case Value::Kind::object:
        text_ += value.as_object()->repr();
        break;
    }
  }

  void write_items(const Value& value, const char* open, const char* close) {
    text_ += open;
    if (++depth_ > max_depth) {
      text_ += "...";
    } else {
      const char* separator = "";
      for (const Value& item : value.items()) {
        text_ += separator;
        write_value(item);
        separator = ", ";
      }
    }
    --depth_;
    text_ += close;
  }

  void write_dict(const Dict& dict) {
    text_ += "{";
    if (++depth_ > max_depth) {
      text_ += "...";
    } else {
      const char* separator = "";
      for (const auto& [key, value] : dict.entries()) {
        text_ += separator;
        write_value(key);
        text_ += ": ";
        write_value(value);
        separator = ", ";
      }
    }
    --depth_;
    text_ += "}";
  }

  std::string text_;
  int depth_ = 0;
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
