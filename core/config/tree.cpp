#include "core/config/tree.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/layers.h"
#include "core/python/plain_scalar.h"
#include "core/yaml/yaml.h"

namespace forge::config {
namespace {

using yaml::Entry;
using yaml::Node;
using yaml::NodePtr;

NodePtr merge_to_depth(const NodePtr& base, const NodePtr& over, int depth) {
  if (depth == 0 || !base->is_mapping() || !over->is_mapping()) return over;
  auto merged = std::make_shared<Node>(*base);
  for (const Entry& entry : over->entries) {
    const auto old =
        std::find_if(merged->entries.begin(), merged->entries.end(), [&](const Entry& candidate) {
          return candidate.key == entry.key;
        });
    if (old == merged->entries.end()) {
      merged->entries.push_back(entry);
      continue;
    }
    const bool both_mappings = old->value->is_mapping() && entry.value->is_mapping();
    old->key_origin = entry.key_origin;
    if (!both_mappings) old->overridden.insert(old->overridden.begin(), old->value);
    old->value = merge_to_depth(old->value, entry.value, depth - 1);
  }
  return merged;
}

}  // namespace

NodePtr nest(const std::string& path, const SourceSpan& path_origin, const NodePtr& value) {
  const size_t dot = path.find('.');
  Entry entry;
  entry.key = path.substr(0, dot);
  entry.key_origin = path_origin;
  if (dot == std::string::npos) {
    entry.value = value;
  } else {
    SourceSpan rest_origin = path_origin;
    if (rest_origin.column > 0) rest_origin.column += static_cast<int>(dot) + 1;
    entry.value = nest(path.substr(dot + 1), rest_origin, value);
  }
  auto mapping = std::make_shared<Node>();
  mapping->kind = Node::Kind::mapping;
  mapping->origin = path_origin;
  mapping->entries.push_back(std::move(entry));
  return mapping;
}

NodePtr merge(const NodePtr& base, const NodePtr& over) {
  constexpr int deepest = 8;  // deeper than the schema; bounds the work that aliases can ask for
  return merge_to_depth(base, over, deepest);
}

std::vector<const Entry*> dotted_entries(const Node& root, const std::string& prefix) {
  std::vector<const Entry*> dotted;
  for (const Entry& entry : root.entries)
    if (entry.key.find('.') != std::string::npos && starts_with(entry.key, prefix))
      dotted.push_back(&entry);
  std::stable_sort(dotted.begin(), dotted.end(), [](const Entry* left, const Entry* right) {
    return left->written < right->written;
  });
  return dotted;
}

std::string short_text(const Node& node) {
  if (node.is_mapping()) return "a mapping";
  if (node.is_null()) return "null";
  if (node.is_scalar()) return node.text;
  constexpr size_t most = 8;
  std::vector<std::string> items;
  for (const NodePtr& item : node.items) {
    if (items.size() == most) {
      items.push_back("…");
      break;
    }
    items.push_back(item->is_scalar() ? short_text(*item) : describe_kind(*item));
  }
  return "[" + join(items, ", ") + "]";
}

namespace {

/// "the keys of optimizer are …" for a path into a section that there is.
std::string siblings_hint(const std::string& path, const std::vector<std::string>& all) {
  const std::string section = path.substr(0, path.rfind('.') + 1);
  std::vector<std::string> siblings;
  for (const std::string& known : all) {
    const bool is_sibling =
        starts_with(known, section) && known.find('.', section.size()) == std::string::npos;
    if (is_sibling) siblings.push_back(known.substr(section.size()));
  }
  if (section.empty() || siblings.empty()) return "";
  return "the keys of " + section.substr(0, section.size() - 1) + " are " + join(siblings, ", ");
}

yaml::NodePtr empty_text(const SourceSpan& origin) {
  auto node = std::make_shared<yaml::Node>();
  node->kind = yaml::Node::Kind::null;
  node->origin = origin;
  return node;
}

}  // namespace

void check_path(const Assignment& assignment) {
  if (is_known_path(assignment.path)) return;
  const std::vector<std::string> known = key_paths_near(assignment.path);
  const std::string last = assignment.path.substr(assignment.path.rfind('.') + 1);
  std::string hint = suggest_key(last, assignment.path, known);
  if (hint.empty()) hint = siblings_hint(assignment.path, known);
  if (hint.empty()) hint = "'forge keys' lists every key";
  throw Error("unknown key '" + assignment.path + "'", assignment.path_origin, hint);
}

void require_plain_number(const std::string& text, const SourceSpan& where) {
  const python::PlainScalar scalar = python::resolve_plain_scalar(text);
  const bool is_integer = scalar.kind == python::PlainScalar::Kind::integer && !scalar.overflow;
  if (!is_integer && scalar.kind != python::PlainScalar::Kind::real) return;
  const std::string read = is_integer ? std::to_string(scalar.integer) : shortest(scalar.real);
  if (text.find(':') != std::string::npos)
    throw Error("'" + text + "' is " + read + " in YAML, to the base 60", where, "write " + read);
  if (!is_integer) return;
  std::string digits = text;
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  if (digits.find_first_not_of("+-0123456789") != std::string::npos) return;  // 0x10, 0b11
  const std::string written = std::to_string(std::strtoll(digits.c_str(), nullptr, 10));
  if (written != read)
    throw Error("'" + text + "' is " + read + " in YAML, an octal number",
                where,
                "write " + read + " or " + written);
}

namespace {

/// Where YAML reads a comment in a text of one line; none: nowhere.
std::optional<size_t> comment_place(const std::string& text) {
  char quote = 0;
  bool begins_token = true;  // a quotation mark within a word is a letter
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_blank = c == ' ' || c == '\t';
    if (quote != 0) {
      const bool is_escape = quote == '"' ? c == '\\' : text.compare(i, 2, "''") == 0;
      if (is_escape) {
        ++i;
      } else if (c == quote) {
        quote = 0;
      }
    } else if (c == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\t')) {
      return i;
    } else if ((c == '"' || c == '\'') && begins_token) {
      quote = c;
    }
    if (!is_blank) begins_token = std::string_view("[{,:").find(c) != std::string_view::npos;
  }
  return std::nullopt;
}

}  // namespace

Assignment parse_override(const std::string& argument) {
  const std::string flag = "--set ";
  const auto source =
      std::make_shared<SourceText>(SourceText{command_line_layer, "", flag + argument, 1});
  const size_t equals = argument.find('=');
  const int start = static_cast<int>(flag.size()) + 1;
  Assignment assignment;
  assignment.path = std::string(trim(std::string_view(argument).substr(0, equals)));
  assignment.path_origin = make_span(source, 1, start);
  if (equals == std::string::npos || assignment.path.empty()) {
    throw Error("an override must be KEY=VALUE",
                assignment.path_origin,
                "for example --set train.max_steps=100");
  }
  check_path(assignment);
  const int value_start = start + static_cast<int>(equals) + 1;
  const std::string value = argument.substr(equals + 1);
  if (trim(value).empty()) {
    assignment.value = empty_text(make_span(source, 1, value_start));
    return assignment;
  }
  const bool is_one_line = value.find('\n') == std::string::npos;
  const std::optional<size_t> comment = is_one_line ? comment_place(value) : std::nullopt;
  if (comment) {
    const std::string text(trim(value));
    throw Error("a comment in YAML begins at the '#': the value would be '" +
                    std::string(trim(std::string_view(value).substr(0, *comment))) + "'",
                make_span(source, 1, value_start + static_cast<int>(*comment)),
                "quote a text that has a '#': --set " +
                    shell_quoted(assignment.path + "=" + json_text(nlohmann::json(text))));
  }
  assignment.value = yaml::parse(value, [&](int line, int column) {
    return make_span(source, line, line == 1 ? column + value_start - 1 : column);
  });
  return assignment;
}

}  // namespace forge::config
