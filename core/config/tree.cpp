#include "core/config/tree.h"

#include "core/base/text.h"

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

}  // namespace forge::config
