#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/graph/node.h"
#include "core/project/project.h"

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
  templating::Variable constant;  ///< of store_constant, and of an option without its value
  size_t least = 1, most = 1;     ///< number of values
  bool is_list = false;           ///< the variable is a list, however many values there are
  std::vector<templating::Variable> choices;  ///< empty: any value
  std::string help;
  bool has_stray_quote = false;  ///< a name ended with a quote, which was taken off
  SourceSpan origin;
};

/// Any number of values.
inline constexpr size_t any_number = static_cast<size_t>(-1);

/// The entries of the graph's target `dynamic_args`: a list, or a !dlist, of mappings {names, type:
/// int | str | float | bool | path, choices, action: store | store_true | store_false | store_const
/// | append, const, nargs: N | '?' | '*' | '+', help}. `default` says nothing: an argument that is
/// not given is not there. No such target: none. Throws Error at what is wrong.
std::vector<TemplateArgument> read_template_arguments(const graph::Graph& graph);

/// The same of a config, rendered without any.
std::vector<TemplateArgument> template_arguments_of(const Project& project,
                                                    const Config& config,
                                                    const templating::Surroundings& surroundings);

/// "--max-steps INT", "--mode {fast,slow}", "-f, --flag", "--names TEXT…"
std::string usage_of(const TemplateArgument& argument);

/// [{"names", "variable", "usage", "help", "choices", "at"}, …]
nlohmann::ordered_json to_json(const std::vector<TemplateArgument>& arguments);

/// A value as a template would print it: "5", "True", "a text".
std::string text_of(const templating::Variable& value);

}  // namespace forge::project
