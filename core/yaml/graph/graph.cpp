#include "core/yaml/graph/graph.h"

#include <unordered_map>

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
  throw Error("the config has no target '" + name + "'",
              did_you_mean(name, known, "it has " + join(known, ", ")));
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

const char* name_of(Node::CallKind call_kind) {
  switch (call_kind) {
    case Node::CallKind::singleton: return "singleton";
    case Node::CallKind::factory: return "factory";
    case Node::CallKind::partial: return "partial";
    case Node::CallKind::meta: return "meta";
  }
  return "";
}

namespace {

class Evaluation {
 public:
  explicit Evaluation(const Bindings& bindings) : bindings_(bindings) {}

  NodePtr evaluate(const NodePtr& node) {
    if (!node || node->is_scalar()) return node;
    if (node->kind == Node::Kind::variable) return value_of(*node);
    const auto known = evaluated_.find(node.get());
    if (known != evaluated_.end()) return known->second;
    auto result = std::make_shared<Node>(*node);
    if (node->kind != Node::Kind::call) {
      result->is_object = false;
      result->identity.clear();
    }
    for (NodePtr& item : result->items) item = evaluate(item);
    for (Entry& entry : result->entries) entry.value = evaluate(entry.value);
    result->submodule_searchpath = evaluate(result->submodule_searchpath);
    result->latent_args = evaluate(result->latent_args);
    evaluated_.emplace(node.get(), result);
    return result;
  }

 private:
  NodePtr value_of(const Node& variable) {
    const auto bound = bindings_.find(variable.text);
    if (bound != bindings_.end()) return bound->second;
    if (variable.default_value) return evaluate(variable.default_value);
    std::vector<std::string> names;
    for (const auto& [name, value] : bindings_) names.push_back(name);
    throw Error("the variable '" + variable.text + "' has no value",
                variable.origin,
                did_you_mean(variable.text, names));
  }

  const Bindings& bindings_;
  std::unordered_map<const Node*, NodePtr> evaluated_;
};

}  // namespace

NodePtr evaluate(const NodePtr& node, const Bindings& bindings) {
  return Evaluation(bindings).evaluate(node);
}

}  // namespace forge::graph
