#include "core/config/from_project.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::config {
namespace {

using templating::Variable;
using yaml::Entry;
using yaml::Node;

Variable variable_of(const std::string& name, const Node& value) {
  Variable variable;
  switch (value.kind) {
    case Node::Kind::null: return variable;
    case Node::Kind::boolean:
      variable.kind = Variable::Kind::boolean;
      variable.boolean = value.boolean;
      return variable;
    case Node::Kind::integer:
      variable.kind = Variable::Kind::integer;
      variable.integer = value.integer;
      return variable;
    case Node::Kind::real:
      variable.kind = Variable::Kind::real;
      variable.real = value.real;
      return variable;
    case Node::Kind::string:
      variable.kind = Variable::Kind::string;
      variable.string = value.text;
      return variable;
    case Node::Kind::sequence:
      variable.kind = Variable::Kind::list;
      for (const auto& item : value.items) variable.items.push_back(variable_of(name, *item));
      return variable;
    case Node::Kind::mapping: break;
  }
  throw Error("the variable '" + name + "' is " + describe_kind(value),
              value.origin,
              "pp_kwargs holds plain values and lists of them");
}

std::string required_text(const Node& node, const std::string& key, SourceSpan& origin) {
  const Node* value = node.find(key);
  if (!value) throw Error("from_project needs '" + key + "'", node.origin);
  origin = value->origin;
  if (!value->is_scalar() || value->text.empty()) {
    throw Error("'" + key + "' is " + describe_kind(*value), value->origin, "give its name");
  }
  return value->text;
}

}  // namespace

bool is_from_project(const Node& node) {
  const std::string tag = node.tag.substr(0, node.tag.find('@'));
  return tag == "!call:forge:from_project" || tag == "!call:forgather:from_project";
}

FromProject read_from_project(const Node& node) {
  static const std::vector<std::string> keys = {
      "project_dir", "config_template", "targets", "pp_kwargs", "pp_debug"};
  if (!node.is_mapping()) throw Error("from_project takes a mapping of arguments", node.origin);
  for (const Entry& entry : node.entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
      throw Error("from_project has no argument '" + entry.key + "'",
                  entry.key_origin,
                  did_you_mean(entry.key, keys));
    }
  }
  FromProject call;
  call.project_dir = required_text(node, "project_dir", call.project_origin);
  call.config_template = required_text(node, "config_template", call.config_origin);
  if (const Entry* targets = node.find_entry("targets")) call.targets = targets->value;
  const Node* variables = node.find("pp_kwargs");
  if (variables && variables->is_mapping()) {
    for (const Entry& entry : variables->entries) {
      call.variables[entry.key] = variable_of(entry.key, *entry.value);
    }
  } else if (variables && !variables->is_null()) {
    throw Error("'pp_kwargs' is " + describe_kind(*variables), variables->origin);
  }
  return call;
}

}  // namespace forge::config
