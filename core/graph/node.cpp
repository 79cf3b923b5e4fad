#include "core/graph/node.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::graph {

bool Node::is_scalar() const {
  switch (kind) {
    case Kind::null:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::string: return true;
    default: return false;
  }
}

const Node* Node::find(std::string_view key) const {
  for (const Entry& entry : entries) {
    if (entry.key == key && entry.key_is_string) return entry.value.get();
  }
  return nullptr;
}

bool Graph::has_targets() const { return root->kind == Node::Kind::mapping && !root->is_object; }

const Entry& Graph::target(const std::string& name) const {
  std::vector<std::string> known;
  if (has_targets()) {
    for (const Entry& entry : root->entries) {
      if (entry.key == name) return entry;
      known.push_back(entry.key);
    }
  }
  if (known.empty()) {
    throw Error("the config has no targets, so none is called '" + name + "'", root->origin);
  }
  std::string hint = did_you_mean(name, known);
  if (hint.empty()) hint = "it has " + join(known, ", ");
  throw Error("the config has no target '" + name + "'", {}, hint);
}

Graph Graph::only(const std::string& name) const {
  auto mapping = std::make_shared<Node>(*root);
  mapping->entries = {target(name)};
  return {mapping};
}

std::string describe_kind(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "null";
    case Node::Kind::boolean: return node.boolean ? "the boolean true" : "the boolean false";
    case Node::Kind::integer: return "the number " + std::to_string(node.integer);
    case Node::Kind::real: return "the number " + shortest(node.real);
    case Node::Kind::string: return "the string '" + node.text + "'";
    case Node::Kind::list: return "a list";
    case Node::Kind::tuple: return "a tuple";
    case Node::Kind::mapping: return "a mapping";
    case Node::Kind::variable: return "the variable '" + node.text + "'";
    case Node::Kind::call: return "a call of '" + node.text + "'";
  }
  return "";
}

const char* name_of(Node::Calling calling) {
  switch (calling) {
    case Node::Calling::singleton: return "singleton";
    case Node::Calling::factory: return "factory";
    case Node::Calling::partial: return "partial";
    case Node::Calling::meta: return "meta";
  }
  return "";
}

}  // namespace forge::graph
