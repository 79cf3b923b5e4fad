#include "core/graph/write_json.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/graph/shared.h"
#include "core/graph/write_yaml.h"

namespace forge::graph {
namespace {

using json = nlohmann::ordered_json;

class JsonWriter {
 public:
  explicit JsonWriter(const Graph& graph) : graph_(graph), shared_(*graph.root) {}

  json write() {
    json definitions = json::object();
    for (const Node* node : shared_.in_order()) definitions[*shared_.name_of(*node)] = own(*node);
    json document = {{"definitions", std::move(definitions)}};
    if (graph_.has_targets()) {
      document["targets"] = entries(*graph_.root);
    } else {
      document["root"] = own(*graph_.root);
    }
    return document;
  }

 private:
  json value(const Node& node) {
    if (const std::string* name = shared_.name_of(node)) {
      return {{"node", "shared"}, {"name", *name}};
    }
    return own(node);
  }

  json own(const Node& node) {
    switch (node.kind) {
      case Node::Kind::null: return nullptr;
      case Node::Kind::boolean: return node.boolean;
      case Node::Kind::integer: return node.integer;
      case Node::Kind::real:
        return std::isfinite(node.real) ? json(node.real) : json(yaml_scalar(node));
      case Node::Kind::string: return node.text;
      case Node::Kind::variable: return variable(node);
      case Node::Kind::call: return call(node);
      case Node::Kind::tuple: return container("tuple", node);
      case Node::Kind::list: return node.is_object ? container("list", node) : items(node);
      case Node::Kind::mapping: return node.is_object ? container("dict", node) : entries(node);
    }
    return nullptr;
  }

  json variable(const Node& node) {
    json object = {{"node", "variable"}, {"name", node.text}};
    if (node.default_value) object["default"] = value(*node.default_value);
    return located(std::move(object), node);
  }

  json container(const char* name, const Node& node) {
    json object = {{"node", name}};
    if (!node.identity.empty()) object["identity"] = node.identity;
    const bool is_mapping = node.kind == Node::Kind::mapping;
    object[is_mapping ? "entries" : "items"] = is_mapping ? entries(node) : items(node);
    return located(std::move(object), node);
  }

  json call(const Node& node) {
    json object = {{"node", name_of(node.calling)}, {"constructor", node.text}};
    if (!node.identity.empty()) object["identity"] = node.identity;
    object["args"] = items(node);
    object["kwargs"] = entries(node);
    if (node.submodule_searchpath)
      object["submodule_searchpath"] = value(*node.submodule_searchpath);
    if (node.latent_args) object["latent_args"] = value(*node.latent_args);
    return located(std::move(object), node);
  }

  json items(const Node& node) {
    json list = json::array();
    for (const NodePtr& item : node.items) list.push_back(value(*item));
    return list;
  }

  json entries(const Node& node) {
    json object = json::object();
    for (const Entry& entry : node.entries) object[entry.key] = value(*entry.value);
    return object;
  }

  static json located(json object, const Node& node) {
    const std::string place = node.origin.describe();
    if (!place.empty()) object["at"] = place;
    return object;
  }

  const Graph& graph_;
  SharedNodes shared_;
};

}  // namespace

nlohmann::ordered_json to_json(const Graph& graph) { return JsonWriter(graph).write(); }

}  // namespace forge::graph
