#include "core/graph/evaluate.h"

#include <unordered_map>

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::graph {
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
