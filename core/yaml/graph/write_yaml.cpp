#include "core/yaml/graph/write.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/text.h"
#include "core/python/plain_scalar.h"
#include "core/python/unicode.h"
#include "core/python/value.h"
#include "core/python/yaml_text.h"

namespace forge::graph {
namespace {

using python::PlainScalar;
using python::Value;

/// Whether every reader takes the text for a string without quotes.
bool is_plain(std::string_view text) {
  if (text.empty() || text.back() == ' ') return false;
  if (!python::is_ascii_letter(text[0]) && text[0] != '_' && text[0] != '/') return false;
  const auto is_plain_character = [](char c) {
    return python::is_ascii_letter_or_digit(c) ||
           std::string_view(" _-./@+").find(c) != std::string_view::npos;
  };
  if (!std::all_of(text.begin(), text.end(), is_plain_character)) return false;
  if (text.size() == 1 && std::string_view("yYnN").find(text[0]) != std::string_view::npos) {
    return false;  // booleans by the letter of YAML 1.1
  }
  return python::resolve_plain_scalar(text).kind == PlainScalar::Kind::string;
}

std::string yaml_string(std::string_view text) {
  return is_plain(text) ? std::string(text) : python::double_quoted_yaml(text);
}

std::string yaml_key(const Entry& entry) {
  if (entry.key_is_string) return yaml_string(entry.key);
  return entry.key.empty() ? "null" : entry.key;
}

/// Whether a call's keywords would be taken for something else if they stood alone.
bool needs_explicit_form(const Node& call) {
  const size_t count = call.entries.size() + extra_children(call).size();
  size_t reserved = 0;
  for (const Entry& entry : call.entries) {
    const bool is_numbered = starts_with(entry.key, "arg") && entry.key.size() > 3 &&
                             entry.key.find_first_not_of("0123456789", 3) == std::string::npos;
    if (is_numbered) return true;
    if (entry.key == "args" || entry.key == "kwargs") ++reserved;
  }
  return reserved > 0 && reserved == count;
}

class YamlWriter {
 public:
  explicit YamlWriter(const Graph& graph) : graph_(graph), shared_(*graph.root) {}

  std::string write() {
    if (!graph_.has_targets()) {
      value(*graph_.root, 0, true);
      text_.erase(0, text_.find_first_not_of(" \n"));
      return std::move(text_);
    }
    for (const Node* node : shared_.in_order()) {
      key("." + *shared_.name_of(*node), 0);
      value(*node, 0);
      text_ += "\n";
    }
    const std::vector<Entry>& targets = graph_.root->entries;
    for (size_t i = 0; i < targets.size(); ++i) {
      const auto is_short = [](const Entry& target) { return target.value->is_scalar(); };
      if (i > 0 && !(is_short(targets[i - 1]) && is_short(targets[i]))) text_ += "\n";
      key(yaml_key(targets[i]), 0);
      value(*targets[i].value, 0);
    }
    if (targets.empty()) text_ += "{}\n";
    return std::move(text_);
  }

 private:
  static constexpr size_t step = 4;

  void indent(size_t width) {
    if (on_line_) {
      text_.append(step - 1, ' ');  // behind the dash of the item that this is the first line of
    } else {
      text_.append(width, ' ');
    }
    on_line_ = false;
  }

  void key(const std::string& name, size_t width) {
    indent(width);
    text_ += name + ":";
  }

  void line(const std::string& rest) { text_ += " " + rest + "\n"; }

  /// What stands behind a key's colon or an item's dash at `width`.
  void value(const Node& node, size_t width, bool is_root = false, bool is_item = false) {
    const std::string* name = shared_.name_of(node);
    if (name && !written_.insert(&node).second) return line("*" + *name);
    std::string head = name ? "&" + *name : "";
    const std::string tag = tag_of(node);
    if (!tag.empty()) head += (head.empty() ? "" : " ") + tag;
    const std::string inline_text = on_one_line(node);
    if (!inline_text.empty()) return line(head.empty() ? inline_text : head + " " + inline_text);
    if (is_item && head.empty()) {
      on_line_ = true;
    } else {
      text_ += head.empty() ? "\n" : " " + head + "\n";
    }
    children(node, is_root && head.empty() ? width : width + step);
  }

  static std::string tag_of(const Node& node) {
    std::string tag;
    switch (node.kind) {
      case Node::Kind::variable: return "!var";
      case Node::Kind::call:
        tag = std::string("!") + graph::name_of(node.call_kind) + ":" + node.text;
        break;
      case Node::Kind::tuple: tag = "!tuple"; break;
      case Node::Kind::list: tag = node.is_object ? "!list" : ""; break;
      case Node::Kind::mapping: tag = node.is_object ? "!dict" : ""; break;
      default: return "";
    }
    if (node.identity.empty()) return tag;
    return tag + (node.kind == Node::Kind::call ? "@" : ":@") + node.identity;
  }

  /// The node less its tag where it takes no lines of its own, else "".
  static std::string on_one_line(const Node& node) {
    if (node.is_scalar()) return yaml_scalar(node);
    if (node.kind == Node::Kind::variable) return node.default_value ? "" : yaml_string(node.text);
    const bool has_named = !node.entries.empty() || !extra_children(node).empty();
    if (has_named || !node.items.empty()) return "";
    return node.kind == Node::Kind::mapping ? "{}" : "[]";
  }

  void children(const Node& node, size_t width) {
    if (node.kind == Node::Kind::variable) {
      key("name", width);
      line(yaml_string(node.text));
      entries(node, width);
    } else if (node.kind == Node::Kind::call) {
      arguments(node, width);
    } else {
      items(node, width);
      entries(node, width);
    }
  }

  void arguments(const Node& call, size_t width) {
    const bool has_named = !call.entries.empty() || !extra_children(call).empty();
    if (!has_named) return items(call, width);
    if (call.items.empty() && !needs_explicit_form(call)) return entries(call, width);
    if (!call.items.empty()) {
      key("args", width);
      text_ += "\n";
      items(call, width + step);
    }
    key("kwargs", width);
    text_ += "\n";
    entries(call, width + step);
  }

  void items(const Node& node, size_t width) {
    for (const NodePtr& item : node.items) {
      indent(width);
      text_ += "-";
      value(*item, width, false, true);
    }
  }

  void entries(const Node& node, size_t width) {
    for (const Entry& entry : node.entries) {
      key(yaml_key(entry), width);
      value(*entry.value, width);
    }
    for (const auto& [name, child] : extra_children(node)) {
      key(name, width);
      value(*child, width);
    }
  }

  const Graph& graph_;
  SharedNodes shared_;
  std::unordered_set<const Node*> written_;
  std::string text_;
  bool on_line_ = false;  ///< the next line begins behind a dash that is written already
};

}  // namespace

std::string yaml_scalar(const Node& scalar) {
  switch (scalar.kind) {
    case Node::Kind::boolean: return scalar.boolean ? "true" : "false";
    case Node::Kind::integer: return std::to_string(scalar.integer);
    case Node::Kind::real: return python::yaml_text(Value::real(scalar.real));
    case Node::Kind::string: return yaml_string(scalar.text);
    default: return "null";
  }
}

std::string write_yaml(const Graph& graph) { return YamlWriter(graph).write(); }

}  // namespace forge::graph
