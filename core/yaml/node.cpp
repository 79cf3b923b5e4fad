#include "core/yaml/node.h"

namespace forge::yaml {

const Entry* Node::find_entry(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

const Node* Node::find(std::string_view key) const {
  const Entry* entry = find_entry(key);
  return entry ? entry->value.get() : nullptr;
}

std::string describe_kind(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::boolean: return "the boolean " + node.text;
    case Node::Kind::integer:
    case Node::Kind::real: return "the number " + node.text;
    case Node::Kind::string: return "the string '" + node.text + "'";
    case Node::Kind::sequence: return "a sequence";
    case Node::Kind::mapping: return "a mapping";
  }
  return "";
}

}  // namespace forge::yaml
