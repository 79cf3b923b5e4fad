#include "core/python/yaml_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include "core/base/text.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/plain_scalar.h"
#include "core/python/unicode.h"

namespace forge::python {
namespace {

bool is_break(int32_t c) { return c == '\n' || c == 0x85 || c == 0x2028 || c == 0x2029; }
bool is_blank_or_end(int32_t c) {
  return c == 0 || c == ' ' || c == '\t' || c == '\r' || is_break(c);
}
bool is_in(int32_t c, std::string_view set) {
  return c > 0 && c < 0x80 && set.find(static_cast<char>(c)) != std::string_view::npos;
}
bool is_special(int32_t c) {
  if (c == '\n' || (c >= 0x20 && c <= 0x7E)) return false;
  if (c == 0xFEFF || c >= 0x10FFFF) return true;
  return !(c == 0x85 || (c >= 0xA0 && c <= 0xD7FF) || (c >= 0xE000 && c <= 0xFFFD) || c >= 0x10000);
}

/// Which styles can write a string; the rules of PyYAML's emitter.
struct Analysis {
  bool flow_plain = true, block_plain = true, single_quoted = true, multiline = false;
};

Analysis analyze(std::string_view text) {
  Analysis analysis;
  if (text.empty()) {
    analysis.flow_plain = false;
    return analysis;
  }
  const std::u32string points = code_points(text);
  const size_t size = points.size();
  bool block_indicator = starts_with(text, "---") || starts_with(text, "...");
  bool flow_indicator = block_indicator;
  bool special = false, break_space = false, space_break = false;
  for (size_t i = 0; i < size; ++i) {
    const auto c = static_cast<int32_t>(points[i]);
    const bool blank_before = i == 0 || is_blank_or_end(points[i - 1]);
    const bool blank_after = i + 1 >= size || is_blank_or_end(points[i + 1]);
    if (i == 0) {
      const bool leading = is_in(c, "#,[]{}&*!|>'\"%@`");
      flow_indicator = flow_indicator || leading || is_in(c, "?:") || (c == '-' && blank_after);
      block_indicator = block_indicator || leading || (is_in(c, "?:-") && blank_after);
    } else {
      const bool comment = c == '#' && blank_before;
      flow_indicator = flow_indicator || is_in(c, ",?[]{}:") || comment;
      block_indicator = block_indicator || (c == ':' && blank_after) || comment;
    }
    analysis.multiline = analysis.multiline || is_break(c);
    special = special || is_special(c);
    break_space = break_space || (c == ' ' && i > 0 && is_break(points[i - 1]));
    space_break = space_break || (is_break(c) && i > 0 && points[i - 1] == ' ');
  }
  const auto is_edge = [](int32_t c) { return c == ' ' || is_break(c); };
  const bool quoted = is_edge(points.front()) || is_edge(points.back()) || break_space ||
                      space_break || special || analysis.multiline;
  analysis.flow_plain = !quoted && !flow_indicator;
  analysis.block_plain = !quoted && !block_indicator;
  analysis.single_quoted = !break_space && !space_break && !special;
  return analysis;
}

std::string single_quoted(std::string_view text, int indentation) {
  const std::u32string points = code_points(text);
  std::string quoted = "'";
  for (size_t i = 0; i < points.size(); ++i) {
    if (is_break(points[i])) {
      const bool first = i == 0 || !is_break(points[i - 1]);
      if (first && points[i] == '\n') quoted += '\n';  // a single line break folds to a blank
    } else if (i > 0 && is_break(points[i - 1])) {
      quoted.append(static_cast<size_t>(indentation), ' ');
    }
    if (points[i] == '\'') quoted += '\'';
    append_code_point(quoted, static_cast<int32_t>(points[i]));
  }
  if (!points.empty() && is_break(points.back()))
    quoted.append(static_cast<size_t>(indentation), ' ');
  return quoted + "'";
}

std::string real_text(double number) {
  if (std::isnan(number)) return ".nan";
  if (std::isinf(number)) return number < 0 ? "-.inf" : ".inf";
  std::string text = shortest(number);
  const size_t exponent = text.find('e');
  if (exponent != std::string::npos && text.find('.') == std::string::npos)
    text.insert(exponent, ".0");
  return text;
}

std::vector<Dict::Entry> sorted_entries(const Dict& dict) {
  std::vector<Dict::Entry> sorted = dict.entries();
  try {
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return less(a.first, b.first);
    });
    return sorted;
  } catch (const OperationError&) {
    return dict.entries();  // keys of several types have no order; they stay as they were inserted
  }
}

void require_depth(int level) {
  if (level > 100)
    throw OperationError("this value is nested too deeply for YAML, or contains itself");
}

/// The anchors of the containers that a value holds more than once, as PyYAML numbers them.
class Anchors {
 public:
  explicit Anchors(const Value& value) { visit(value, 0); }

  /// What to write before a container (an anchor or nothing), or instead of it (an alias).
  struct Mark {
    std::string text;
    bool is_alias = false;
  };
  Mark mark_of(const Value& value) {
    const auto found = numbers_.find(address_of(value));
    if (found == numbers_.end() || found->second == 0) return {};
    char name[16];
    std::snprintf(name, sizeof name, "id%03d", found->second);
    const bool is_first = written_.insert(found->first).second;
    return is_first ? Mark{std::string("&") + name + " ", false}
                    : Mark{std::string("*") + name, true};
  }

 private:
  /// What makes a container the same as another; null for what PyYAML writes anew each time.
  static const void* address_of(const Value& value) {
    if (value.is_dict()) return &value.as_dict();
    const bool is_shared =
        value.is_sequence() && (value.kind() == Value::Kind::list || !value.items().empty());
    return is_shared ? &value.items() : nullptr;
  }

  void visit(const Value& value, int level) {
    const void* address = address_of(value);
    if (!address) return;
    const auto [found, is_new] = numbers_.emplace(address, 0);
    if (!is_new) {
      if (found->second == 0) found->second = ++last_number_;
      return;
    }
    require_depth(level);
    if (value.is_dict()) {
      for (const auto& [key, entry] : sorted_entries(value.as_dict())) {
        visit(key, level + 1);
        visit(entry, level + 1);
      }
    } else {
      for (const Value& item : value.items()) visit(item, level + 1);
    }
  }

  std::unordered_map<const void*, int> numbers_;  ///< 0: met once
  std::unordered_set<const void*> written_;
  int last_number_ = 0;
};

class YamlWriter {
 public:
  explicit YamlWriter(const Value& value) : anchors_(value) {}

  /// `level` counts the collections around the value.
  std::string write(const Value& value, int level, bool is_key = false) {
    switch (require_defined(value).kind()) {
      case Value::Kind::none: return "null";
      case Value::Kind::boolean: return value.as_boolean() ? "true" : "false";
      case Value::Kind::integer: return std::to_string(value.as_integer());
      case Value::Kind::real: return real_text(value.as_real());
      case Value::Kind::string: return write_string(value.as_string(), level, is_key);
      case Value::Kind::list:
      case Value::Kind::tuple:
      case Value::Kind::dict: return write_container(value, level);
      default:
        throw OperationError("a value of type '" + type_name(value) +
                             "' cannot be written as YAML");
    }
  }

 private:
  std::string write_container(const Value& value, int level) {
    const Anchors::Mark mark = anchors_.mark_of(value);
    if (mark.is_alias) return mark.text;
    return mark.text + (value.is_dict() ? write_dict(value.as_dict(), level)
                                        : write_items(value.items(), level));
  }

  static std::string write_string(const std::string& text, int level, bool is_key) {
    const Analysis analysis = analyze(text);
    const bool is_string = resolve_plain_scalar(text).kind == PlainScalar::Kind::string;
    const bool fits_key = !is_key || (!text.empty() && !analysis.multiline);
    if (is_string && fits_key && (level > 0 ? analysis.flow_plain : analysis.block_plain))
      return text;
    const bool single = analysis.single_quoted && !(is_key && analysis.multiline);
    return single ? single_quoted(text, 2 * (level + 1)) : double_quoted_yaml(text);
  }

  std::string write_items(const List& items, int level) {
    require_depth(level);
    std::string text = "[";
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) text += ", ";
      text += write(items[i], level + 1);
      require_text_size(text.size());
    }
    return text + "]";
  }

  std::string write_dict(const Dict& dict, int level) {
    require_depth(level);
    const std::vector<Dict::Entry> entries = sorted_entries(dict);
    std::string text = "{";
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) text += ", ";
      const auto& [key, value] = entries[i];
      const bool simple = is_simple_key(key);
      text += simple ? write(key, level + 1, true) + ": " : "? " + write(key, level + 1) + " : ";
      text += write(value, level + 1);
      require_text_size(text.size());
    }
    return text + "}";
  }

  /// Keys that are long, empty or of several lines need the `?` indicator.
  static bool is_simple_key(const Value& key) {
    if (key.is_sequence()) return key.items().empty();
    if (!key.is_string()) return true;
    constexpr size_t limit = 128, tag_size = 5;  // PyYAML counts the "!!str" that it does not write
    const std::string& text = key.as_string();
    return !text.empty() && !analyze(text).multiline && length_of(text) + tag_size < limit;
  }

  Anchors anchors_;
};

}  // namespace

std::string double_quoted_yaml(std::string_view text) {
  static const std::pair<int32_t, char> escapes[] = {{0, '0'},
                                                     {7, 'a'},
                                                     {8, 'b'},
                                                     {9, 't'},
                                                     {10, 'n'},
                                                     {11, 'v'},
                                                     {12, 'f'},
                                                     {13, 'r'},
                                                     {0x1B, 'e'},
                                                     {'"', '"'},
                                                     {'\\', '\\'},
                                                     {0x85, 'N'},
                                                     {0xA0, '_'},
                                                     {0x2028, 'L'},
                                                     {0x2029, 'P'}};
  std::string quoted = "\"";
  for (const char32_t point : code_points(text)) {
    const auto c = static_cast<int32_t>(point);
    const auto* known = std::find_if(
        std::begin(escapes), std::end(escapes), [c](const auto& e) { return e.first == c; });
    const bool plain =
        (c >= 0x20 && c <= 0x7E) || (c >= 0xA0 && c <= 0xD7FF) || (c >= 0xE000 && c <= 0xFFFD);
    const bool must_escape =
        c == '"' || c == '\\' || c == 0x85 || c == 0x2028 || c == 0x2029 || c == 0xFEFF || !plain;
    if (!must_escape) {
      append_code_point(quoted, c);
    } else if (known != std::end(escapes)) {
      quoted += '\\';
      quoted += known->second;
    } else {
      char escape[16];
      const char* format = c <= 0xFF ? "\\x%02X" : c <= 0xFFFF ? "\\u%04X" : "\\U%08X";
      std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(c));
      quoted += escape;
    }
  }
  return quoted + "\"";
}

std::string yaml_text(const Value& value) { return YamlWriter(value).write(value, 0); }

}  // namespace forge::python
