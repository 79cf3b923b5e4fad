#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/project/project.h"
#include "core/yaml/graph/graph.h"

namespace forge::project {

/// An argument that a config's templates take from the command line: an entry of its target
/// `dynamic_args`, with the meaning of Python's argparse.
struct TemplateArgument {
  enum class Type { text, integer, real, boolean, path };
  enum class Action { store, store_constant, append };

  std::vector<std::string> names;  ///< "--max-steps", "-n", as typed
  std::string variable;            ///< what templates call it: the long name with '_' for '-'
  Type type = Type::text;
  Action action = Action::store;
  jinja::Variable constant;               ///< of store_constant, and of an option without its value
  size_t min_values = 1, max_values = 1;  ///< number of values
  bool is_list = false;                   ///< the variable is a list, however many values there are
  std::vector<jinja::Variable> choices;   ///< empty: any value
  std::string help;
  bool has_stray_quote = false;  ///< a name ended with a quote, which was taken off
  SourceSpan origin;
};

/// A scalar of a document or a graph as templates take it; nothing for a collection.
template <class Node>
std::optional<jinja::Variable> scalar_variable(const Node& node) {
  using Kind = jinja::Variable::Kind;
  jinja::Variable variable;
  switch (node.kind) {
    case Node::Kind::null: return variable;
    case Node::Kind::boolean: variable.kind = Kind::boolean; break;
    case Node::Kind::integer: variable.kind = Kind::integer; break;
    case Node::Kind::real: variable.kind = Kind::real; break;
    case Node::Kind::string: variable.kind = Kind::string; break;
    default: return std::nullopt;
  }
  variable.boolean = node.boolean;
  variable.integer = node.integer;
  variable.real = node.real;
  variable.string = node.text;
  return variable;
}

/// Any number of values.
inline constexpr size_t any_number = static_cast<size_t>(-1);

/// The entries of the graph's target `dynamic_args`: a list, or a !dlist, of mappings {names, type:
/// int | str | float | bool | path, choices, action: store | store_true | store_false | store_const
/// | append, const, nargs: N | '?' | '*' | '+', help}. `default` says nothing: an argument that is
/// not given is not there. No such target: none. Throws Error at what is wrong.
std::vector<TemplateArgument> read_template_arguments(const graph::Graph& graph);

/// "--max-steps INT", "--mode {fast,slow}", "-f, --flag", "--names TEXT…"
std::string usage_of(const TemplateArgument& argument);

/// [{"names", "variable", "usage", "help", "choices", "at"}, …]
nlohmann::ordered_json to_json(const std::vector<TemplateArgument>& arguments);

/// A value as a template would print it: "5", "True", "a text".
std::string text_of(const jinja::Variable& value);

/// Who is asked, for messages, and what a value may refer to.
struct ArgumentContext {
  std::string config;                        ///< the config's name
  std::vector<std::string> command_options;  ///< the command's own, one of which may be meant
  std::string home_directory;                ///< of `~` in a path
  std::vector<std::string> keys = {};        ///< of configs, one of which may be meant
};

/// Reads the words of a command line ("--max-steps", "5", "--flag", "--name=value") by a config's
/// declarations. An argument that is not given is not in the result. Throws Error for an option
/// that the config does not declare, a word too many, a value that is missing, of the wrong type or
/// no choice, and an option that is given twice.
jinja::Variables parse_template_arguments(const std::vector<TemplateArgument>& declared,
                                          const std::vector<std::string>& words,
                                          const ArgumentContext& reader);

}  // namespace forge::project
