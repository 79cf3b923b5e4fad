#include "core/project/template_arguments.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/project/project.h"
#include "core/yaml/graph/graph.h"

namespace forge::project {
namespace {

using graph::Entry;
using graph::Node;
using jinja::Variable;
using Type = TemplateArgument::Type;
using Action = TemplateArgument::Action;

[[noreturn]] void fail_key(const Entry& entry, const std::string& wanted) {
  throw Error("'" + entry.key + "' of an argument is " + describe_kind(*entry.value),
              entry.value->origin,
              wanted);
}

const std::string& text_under(const Entry& entry, const std::string& wanted) {
  if (entry.value->kind != Node::Kind::string) fail_key(entry, wanted);
  return entry.value->text;
}

Variable variable_of(const Entry& entry, const Node& node) {
  if (auto variable = scalar_variable(node)) return *std::move(variable);
  fail_key(entry, "it takes plain values");
}

void read_name(const Entry& entry, const Node& node, TemplateArgument& argument) {
  std::string name = node.kind == Node::Kind::string ? node.text : "";
  while (ends_with(name, "\"") || ends_with(name, "'")) {
    name.pop_back();
    argument.has_stray_quote = true;
  }
  const bool is_option = starts_with(name, "-") && name.find_first_not_of('-') < 3 &&
                         name.find_first_of("= \t") == std::string::npos;
  if (!is_option) {
    throw Error("an argument is called by " + describe_kind(node),
                entry.value->origin,
                "its names begin with '-', as in --max-steps");
  }
  argument.names.push_back(name);
}

void read_names(const Entry& entry, TemplateArgument& argument) {
  const bool is_list = entry.value->kind == Node::Kind::list;
  if (!is_list) read_name(entry, *entry.value, argument);
  for (const graph::NodePtr& name : entry.value->items) read_name(entry, *name, argument);
  const std::vector<std::string>& names = argument.names;
  if (names.empty()) fail_key(entry, "it names no option");
  const auto is_long = [](const std::string& name) { return starts_with(name, "--"); };
  const auto found = std::find_if(names.begin(), names.end(), is_long);
  const std::string& shown = found == names.end() ? names.front() : *found;
  argument.variable = shown.substr(shown.find_first_not_of('-'));
  std::replace(argument.variable.begin(), argument.variable.end(), '-', '_');
}

void read_type(const Entry& entry, TemplateArgument& argument) {
  static const std::vector<std::string> names = {"str", "int", "float", "bool", "path"};
  const std::string wanted = "it is one of " + join(names, ", ");
  const std::string& name = text_under(entry, wanted);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) fail_key(entry, wanted);
  argument.type = static_cast<Type>(found - names.begin());
}

void read_action(const Entry& entry, TemplateArgument& argument) {
  const std::string wanted = "it is store, store_true, store_false, store_const or append";
  const std::string& name = text_under(entry, wanted);
  if (name == "store") return;
  if (name == "append") {
    argument.action = Action::append;
    argument.is_list = true;
    return;
  }
  if (name != "store_true" && name != "store_false" && name != "store_const") {
    fail_key(entry, wanted);
  }
  argument.action = Action::store_constant;
  argument.min_values = argument.max_values = 0;
  if (name == "store_const") return;
  argument.constant.kind = Variable::Kind::boolean;
  argument.constant.boolean = name == "store_true";
}

void read_count(const Entry& entry, TemplateArgument& argument) {
  const Node& count = *entry.value;
  if (argument.action == Action::store_constant) {
    throw Error("an argument that stores a constant takes no values", entry.key_origin);
  }
  if (count.kind == Node::Kind::integer && count.integer > 0 && count.integer <= 1000) {
    argument.min_values = argument.max_values = static_cast<size_t>(count.integer);
    argument.is_list = true;
  } else if (count.kind == Node::Kind::string && count.text == "?") {
    argument.min_values = 0;
  } else if (count.kind == Node::Kind::string && (count.text == "*" || count.text == "+")) {
    argument.min_values = count.text == "+" ? 1 : 0;
    argument.max_values = any_number;
    argument.is_list = true;
  } else {
    fail_key(entry, "it is a number of values, '?', '*' or '+'");
  }
}

void read_choices(const Entry& entry, TemplateArgument& argument) {
  const Node::Kind kind = entry.value->kind;
  if (kind != Node::Kind::list && kind != Node::Kind::tuple) fail_key(entry, "it is a list");
  for (const graph::NodePtr& choice : entry.value->items) {
    argument.choices.push_back(variable_of(entry, *choice));
  }
}

void read_constant(const Entry& entry, TemplateArgument& argument) {
  argument.constant = variable_of(entry, *entry.value);
}

void read_help(const Entry& entry, TemplateArgument& argument) {
  argument.help = text_under(entry, "it is a text");
}

struct ArgumentKey {
  const char* name;
  void (*read)(const Entry& entry, TemplateArgument& argument);
};
/// In the order of reading.
constexpr ArgumentKey argument_keys[] = {{"names", read_names},
                                         {"type", read_type},
                                         {"action", read_action},
                                         {"nargs", read_count},
                                         {"choices", read_choices},
                                         {"const", read_constant},
                                         {"help", read_help}};

void require_known_keys(const Node& node) {
  std::vector<std::string> known = texts_of(argument_keys, &ArgumentKey::name);
  // Those of other front ends of Forgather change nothing here.
  known.insert(known.end(), {"default", "metavar", "dest", "required", "group", "min", "max"});
  for (const Entry& entry : node.entries) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    throw Error(
        "an argument has no '" + entry.key + "'", entry.key_origin, did_you_mean(entry.key, known));
  }
}

TemplateArgument read_argument(const Node& node) {
  if (node.kind != Node::Kind::mapping) {
    throw Error("an argument in 'dynamic_args' is " + describe_kind(node),
                node.origin,
                "it is a mapping with names, type, help …");
  }
  TemplateArgument argument;
  argument.origin = node.origin;
  require_known_keys(node);
  for (const ArgumentKey& key : argument_keys) {
    for (const Entry& entry : node.entries) {
      if (entry.key == key.name && entry.value->kind != Node::Kind::null) key.read(entry, argument);
    }
    if (argument.names.empty()) throw Error("an argument needs 'names'", node.origin);
  }
  return argument;
}

std::string value_name(const TemplateArgument& argument) {
  if (!argument.choices.empty()) {
    return "{" + join(texts_of(argument.choices, text_of), ",") + "}";
  }
  switch (argument.type) {
    case Type::text: return "TEXT";
    case Type::integer: return "INT";
    case Type::real: return "NUMBER";
    case Type::boolean: return "BOOL";
    case Type::path: return "PATH";
  }
  return "";
}

}  // namespace

std::vector<TemplateArgument> read_template_arguments(const graph::Graph& graph) {
  if (!graph.has_targets()) return {};
  const Node* target = graph.root->find("dynamic_args");
  if (!target) return {};
  const graph::NodePtr list = graph::evaluate(graph.target("dynamic_args").value);
  std::vector<TemplateArgument> arguments;
  if (list->kind == Node::Kind::null) return arguments;
  if (list->kind != Node::Kind::list && list->kind != Node::Kind::tuple) {
    throw Error("'dynamic_args' is " + describe_kind(*list),
                list->origin,
                "it is a list, or a !dlist, of arguments");
  }
  for (const graph::NodePtr& item : list->items) arguments.push_back(read_argument(*item));
  return arguments;
}

std::string usage_of(const TemplateArgument& argument) {
  const std::string names = join(argument.names, ", ");
  if (argument.max_values == 0) return names;
  const std::string value = value_name(argument);
  if (argument.min_values == 0 && argument.max_values == 1) return names + " [" + value + "]";
  if (argument.max_values == any_number) {
    return names + (argument.min_values == 0 ? " [" + value + " …]" : " " + value + " …");
  }
  std::string usage = names;
  for (size_t i = 0; i < argument.max_values; ++i) usage += " " + value;
  return usage;
}

nlohmann::ordered_json to_json(const std::vector<TemplateArgument>& arguments) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TemplateArgument& argument : arguments) {
    list.push_back({{"names", argument.names},
                    {"variable", argument.variable},
                    {"usage", usage_of(argument)},
                    {"help", argument.help},
                    {"choices", texts_of(argument.choices, text_of)},
                    {"at", argument.origin.describe()}});
  }
  return list;
}

std::string text_of(const Variable& value) {
  switch (value.kind) {
    case Variable::Kind::none: return "None";
    case Variable::Kind::boolean: return value.boolean ? "True" : "False";
    case Variable::Kind::integer: return std::to_string(value.integer);
    case Variable::Kind::real: return shortest(value.real);
    case Variable::Kind::string: return value.string;
    case Variable::Kind::list: break;
  }
  return "[" + join(texts_of(value.items, text_of), ", ") + "]";
}

}  // namespace forge::project
