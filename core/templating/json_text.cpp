#include "core/templating/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/base/text.h"
#include "core/templating/operation_error.h"
#include "core/templating/operators.h"
#include "core/templating/unicode.h"
#include "core/templating/work.h"

namespace forge::templating {
namespace {

void append_unit(std::string& text, unsigned unit) {
  char escape[8];
  std::snprintf(escape, sizeof escape, "\\u%04x", unit & 0xFFFFu);
  text += escape;
}

std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (size_t i = 0; i < text.size();) {
    const int32_t c = next_code_point(text, i);
    switch (c) {
      case '"': result += "\\\""; continue;
      case '\\': result += "\\\\"; continue;
      case '\n': result += "\\n"; continue;
      case '\r': result += "\\r"; continue;
      case '\t': result += "\\t"; continue;
      case '\b': result += "\\b"; continue;
      case '\f': result += "\\f"; continue;
      default: break;
    }
    require_text_size(result.size());
    const bool html = c == '<' || c == '>' || c == '&' || c == '\'';
    if (c >= 0x10000) {
      append_unit(result, 0xD800u + static_cast<unsigned>((c - 0x10000) >> 10));
      append_unit(result, 0xDC00u + static_cast<unsigned>((c - 0x10000) & 0x3FF));
    } else if (c < 0x20 || c > 0x7E || html) {
      append_unit(result, static_cast<unsigned>(c));
    } else {
      result += static_cast<char>(c);
    }
  }
  return result + "\"";
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return shortest(value);
}

class JsonWriter {
 public:
  explicit JsonWriter(std::optional<int64_t> indentation) : indentation_(indentation) {
    if (indentation && *indentation > 100)
      throw OperationError("filter 'tojson': the indentation is too large");
  }

  std::string write(const Value& value, int level) {
    charge_walk(work_of_value);
    if (level > 100)
      throw OperationError("this value is nested too deeply for JSON, or contains itself");
    switch (require_defined(value).kind()) {
      case Value::Kind::none: return "null";
      case Value::Kind::boolean: return value.as_boolean() ? "true" : "false";
      case Value::Kind::integer: return std::to_string(value.as_integer());
      case Value::Kind::real: return number(value.as_real());
      case Value::Kind::string: return json_string(value.as_string());
      case Value::Kind::list:
      case Value::Kind::tuple: return write_list(value.items(), level);
      case Value::Kind::dict: return write_dict(value.as_dict(), level);
      default:
        throw OperationError("a value of type '" + type_name(value) +
                             "' cannot be written as JSON");
    }
  }

 private:
  std::string write_list(const List& items, int level) {
    std::vector<std::string> parts;
    for (const Value& item : items) parts.push_back(write(item, level + 1));
    return enclose("[", parts, "]", level);
  }

  std::string write_dict(const Dict& dict, int level) {
    std::vector<Dict::Entry> entries = dict.entries();
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return less(a.first, b.first);
    });
    std::vector<std::string> parts;
    for (const auto& [key, value] : entries)
      parts.push_back(key_text(key) + ": " + write(value, level + 1));
    return enclose("{", parts, "}", level);
  }

  std::string key_text(const Value& key) {
    if (key.is_string()) return json_string(key.as_string());
    if (key.is_none() || key.is_number()) return "\"" + write(key, 0) + "\"";
    throw OperationError("keys must be str, int, float, bool or None, not " + type_name(key));
  }

  std::string enclose(const char* open,
                      const std::vector<std::string>& parts,
                      const char* close,
                      int level) const {
    if (parts.empty()) return std::string(open) + close;
    std::string text = open + line_break(level + 1);
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i > 0) text += indentation_ ? "," + line_break(level + 1) : ", ";
      text += parts[i];
      require_text_size(text.size());
    }
    return text + line_break(level) + close;
  }

  std::string line_break(int level) const {
    if (!indentation_) return "";
    const auto width =
        static_cast<size_t>(std::max<int64_t>(0, *indentation_)) * static_cast<size_t>(level);
    return "\n" + std::string(width, ' ');
  }

  std::optional<int64_t> indentation_;
};

}  // namespace

std::string json_text(const Value& value, std::optional<int64_t> indentation) {
  return JsonWriter(indentation).write(value, 0);
}

}  // namespace forge::templating
