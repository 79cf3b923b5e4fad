#include "core/config/leaves.h"

#include <unordered_map>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/own_blocks.h"
#include "core/project/origins.h"

namespace forge::config {
namespace {

using Json = nlohmann::json;

constexpr int deepest = 500;  // the stack holds; real documents stay below 20

class DocumentWalk {
 public:
  std::vector<Leaf> walk(const yaml::Node& root, const std::string& path) {
    for (const yaml::Entry& entry : root.entries) visit_entry(entry, path, 0);
    visit_items(root, path, 0);
    return std::move(leaves_);
  }

 private:
  void visit_entry(const yaml::Entry& entry, const std::string& path, int depth) {
    Origin origin;
    origin.set_by = setting_of(*entry.value);
    for (const yaml::NodePtr& node : entry.overridden) origin.overrode.push_back(setting_of(*node));
    visit(*entry.value, path.empty() ? entry.key : path + "." + entry.key, origin, depth);
  }

  void visit(const yaml::Node& node, const std::string& path, const Origin& origin, int depth) {
    if (depth > deepest) throw Error("the document is nested too deeply", node.origin);
    const bool is_empty = node.entries.empty() && node.items.empty();
    if (!is_empty) {
      const auto [earlier, is_new] = path_of_.emplace(&node, path);
      if (!is_new) {
        leaves_.push_back({path, "*" + earlier->second, origin});
        return;
      }
    }
    if (node.is_scalar() || is_empty || !node.tag.empty()) {
      leaves_.push_back({path, json_of(node), origin});
    }
    for (const yaml::Entry& entry : node.entries) visit_entry(entry, path, depth + 1);
    visit_items(node, path, depth);
  }

  void visit_items(const yaml::Node& node, const std::string& path, int depth) {
    for (size_t i = 0; i < node.items.size(); ++i) {
      const yaml::Node& item = *node.items[i];
      visit(item, path + "[" + std::to_string(i) + "]", {setting_of(item), {}}, depth + 1);
    }
  }

  std::vector<Leaf> leaves_;
  std::unordered_map<const yaml::Node*, std::string> path_of_;  ///< of collections
};

/// "file:12:3 (inline name)" as SourceSpan::describe wrote it; the text itself is not known.
SourceSpan span_of(const std::string& described) {
  auto source = std::make_shared<SourceText>();
  std::string rest = described;
  const std::string mark = " (inline ";
  const size_t inline_name = rest.find(mark);
  if (inline_name != std::string::npos && ends_with(rest, ")")) {
    source->inline_name = rest.substr(inline_name + mark.size());
    source->inline_name.pop_back();
    rest.resize(inline_name);
  }
  int numbers[2] = {0, 0};  // column, line
  for (int& number : numbers) {
    const size_t colon = rest.rfind(':');
    const std::string digits = colon == std::string::npos ? "" : rest.substr(colon + 1);
    const bool is_number = !digits.empty() && digits.size() < 9 &&
                           digits.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number) break;
    number = std::stoi(digits);
    rest.resize(colon);
  }
  const bool has_column = numbers[1] > 0;
  source->name = rest;
  return make_span(
      std::move(source), has_column ? numbers[1] : numbers[0], has_column ? numbers[0] : 0);
}

std::string text_under(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Setting setting_from_json(const Json& object) {
  if (!object.is_object()) return {};
  const std::string at = text_under(object, "at");
  return {text_under(object, "from"),
          text_under(object, "value"),
          at.empty() ? SourceSpan{} : span_of(at),
          text_under(object, "derived_from")};
}

Origin origin_from_json(const Json& object) {
  Origin origin{setting_from_json(object), {}};
  if (!object.is_object() || !object.contains("overrode")) return origin;
  for (const Json& setting : object["overrode"]) {
    origin.overrode.push_back(setting_from_json(setting));
  }
  return origin;
}

void add_values(const Json& value,
                const std::string& path,
                const Json& origins,
                std::vector<Leaf>& leaves) {
  if (is_hidden_leaf(path)) return;
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, inner] : value.items()) {
      add_values(inner, path.empty() ? key : path + "." + key, origins, leaves);
    }
    return;
  }
  const bool known = origins.is_object() && origins.contains(path);
  leaves.push_back(
      {path, shown_leaf(path, value), known ? origin_from_json(origins[path]) : Origin{}});
}

/// Whether YAML would take the text for something else than text.
bool needs_quotes(const std::string& text) {
  if (text.empty() || text != trim(text)) return true;
  return text == "null" || text == "true" || text == "false" || text == "~" ||
         text.find('\n') != std::string::npos ||
         text.find_first_not_of("0123456789.eE+-") == std::string::npos;
}

}  // namespace

std::vector<Leaf> leaves_of(const ResolvedConfig& resolved) {
  std::vector<Leaf> leaves;
  add_values(resolved.json, "", nullptr, leaves);
  for (Leaf& leaf : leaves) {
    const auto origin = resolved.origins.find(leaf.path);
    if (origin != resolved.origins.end()) leaf.origin = origin->second;
  }
  return leaves;
}

std::vector<Leaf> leaves_of(const yaml::Node& root, const std::string& path) {
  return DocumentWalk().walk(root, path);
}

std::vector<Leaf> leaves_of_run(const Json& config, const Json& origins) {
  std::vector<Leaf> leaves;
  add_values(config, "", origins, leaves);
  return leaves;
}

Json json_of(const yaml::Node& node) {
  if (!node.is_scalar()) {
    if (!node.tag.empty()) return node.tag;
    return node.is_mapping() ? Json::object() : Json::array();
  }
  if (!node.tag.empty()) return node.text.empty() ? node.tag : node.tag + " " + node.text;
  switch (node.kind) {
    case yaml::Node::Kind::null: return nullptr;
    case yaml::Node::Kind::boolean: return node.boolean;
    case yaml::Node::Kind::integer: return node.integer;
    case yaml::Node::Kind::real: return node.real;
    default: return node.text;
  }
}

Setting setting_of(const yaml::Node& node) {
  return {config_layer, shown_value(json_of(node)), node.origin, ""};
}

std::string shown_value(const Json& value) {
  if (!value.is_string()) return json_text(value);
  const auto& text = value.get_ref<const std::string&>();
  return needs_quotes(text) ? json_text(value) : text;
}

nlohmann::ordered_json to_json(const Setting& setting) {
  nlohmann::ordered_json json = {{"value", setting.text}, {"from", setting.layer}};
  if (setting.origin) json["at"] = project::to_json(setting.origin);
  if (!setting.derived_from.empty()) json["derived_from"] = setting.derived_from;
  return json;
}

namespace {

nlohmann::ordered_json side_to_json(const std::optional<Leaf>& leaf) {
  if (!leaf) return nullptr;
  nlohmann::ordered_json json;
  json["value"] = leaf->value;
  json["set_by"] = to_json(leaf->origin.set_by);
  return json;
}

/// Whether nobody gave the value: a config leaves it open, and a run says what its device made of
/// that.
bool is_left_open(const Leaf& left, const Leaf& right) {
  const auto is_default = [](const Leaf& leaf) {
    return leaf.origin.set_by.layer == default_layer;
  };
  return left.value.is_null() != right.value.is_null() && is_default(left) && is_default(right);
}

}  // namespace

std::vector<Change> diff(const std::vector<Leaf>& left, const std::vector<Leaf>& right) {
  std::unordered_map<std::string, const Leaf*> on_the_right;
  for (const Leaf& leaf : right) on_the_right.emplace(leaf.path, &leaf);
  std::vector<Change> changes;
  for (const Leaf& leaf : left) {
    const auto found = on_the_right.find(leaf.path);
    if (found == on_the_right.end()) {
      changes.push_back({leaf.path, leaf, std::nullopt});
      continue;
    }
    const Leaf& other = *found->second;
    if (other.value != leaf.value && !is_left_open(leaf, other))
      changes.push_back({leaf.path, leaf, other});
    on_the_right.erase(found);
  }
  for (const Leaf& leaf : right) {
    if (on_the_right.count(leaf.path)) changes.push_back({leaf.path, std::nullopt, leaf});
  }
  return changes;
}

nlohmann::ordered_json to_json(const std::string& left,
                               const std::string& right,
                               const std::vector<Change>& changes) {
  nlohmann::ordered_json json;
  json["left"] = left;
  json["right"] = right;
  json["changes"] = nlohmann::ordered_json::array();
  for (const Change& change : changes) {
    json["changes"].push_back({{"path", change.path},
                               {"left", side_to_json(change.left)},
                               {"right", side_to_json(change.right)}});
  }
  return json;
}

}  // namespace forge::config
