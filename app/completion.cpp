#include "app/completion.h"

#include <CLI/CLI.hpp>

#include "app/selection.h"
#include "app/tables.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/run/run_folder.h"
#include "core/upkeep/trash.h"

namespace forge::app {
namespace {

/// Where on the command line the last word stands.
struct Position {
  const CLI::App* command = nullptr;
  const CLI::Option* awaited = nullptr;  ///< the option whose value the word is
  int positionals = 0;                   ///< words before it that are no options
  std::string project;                   ///< value of -p
  std::vector<std::string> positional_words;
};

const CLI::App* subcommand_called(const CLI::App& command, const std::string& name) {
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (child->get_name() == name) return child;
  }
  return nullptr;
}

Position position_of_last(const CLI::App& app, const std::vector<std::string>& words) {
  Position position;
  position.command = &app;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (position.awaited) {
      if (position.awaited->check_name("--project")) position.project = word;
      position.awaited = nullptr;
    } else if (starts_with(word, "-")) {
      const CLI::Option* option = position.command->get_option_no_throw(word);
      if (option && option->get_items_expected_min() > 0) position.awaited = option;
    } else if (const CLI::App* child = subcommand_called(*position.command, word)) {
      position.command = child;
    } else {
      ++position.positionals;
      position.positional_words.push_back(word);
    }
  }
  return position;
}

void add_projects(const Context& context, std::vector<Completion>& found) {
  const project::ProjectList list =
      project::load_projects(context.workspace(), context.surroundings());
  for (const project::Project& project : list.projects)
    found.push_back({project.path, project.name});
}

/// Configs of the project at hand, or of the whole workspace outside any.
void add_configs(const Context& context, std::vector<Completion>& found) {
  std::vector<project::Project> projects;
  if (context.project_folder()) {
    projects.push_back(context.project());
  } else {
    projects = project::load_projects(context.workspace(), context.surroundings()).projects;
  }
  for (const project::Project& project : projects) {
    for (const project::Config& config : project.configs)
      found.push_back({config.name, project.name});
  }
}

void add_keys(const std::string& ending, std::vector<Completion>& found) {
  for (const config::Key& key : config::all_keys()) found.push_back({key.path + ending, key.help});
}

void add_runs(const Context& context, std::vector<Completion>& found) {
  for (const run::RunFolder& run : run::list_runs(context.runs_dir()))
    found.push_back({run.id(), ""});
}

/// The words of a choice such as "TEXT:{text,markdown}".
void add_choices(const CLI::Option& option, std::vector<Completion>& found) {
  const std::string type = option.get_type_name();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open == std::string::npos || close == std::string::npos) return;
  for (const std::string& word : split(type.substr(open + 1, close - open - 1), ','))
    found.push_back({word, ""});
}

void add_values(const CLI::Option& option, const Context& context, std::vector<Completion>& found) {
  const std::string name = option.get_single_name();
  if (name == "project") {
    add_projects(context, found);
  } else if (name == "set") {
    add_keys("=", found);
  } else if (name == "table") {
    for (const std::string& table : table_names(context.project())) found.push_back({table, ""});
  } else if (name == "sweep") {
    for (const std::string& sweep : sweep_names(context.project())) found.push_back({sweep, ""});
    add_keys("=", found);
  } else if (name == "config" || name == "from" || name == "a" || name == "b") {
    add_configs(context, found);
  } else if (name == "key") {
    add_keys("", found);
  } else if (starts_with(option.get_type_name(), "RUN")) {
    add_runs(context, found);
  } else if (option.get_type_name() == "REMOVAL") {
    for (const upkeep::Removal& removal : upkeep::list_removals(context.runs_dir()))
      found.push_back({removal.name, removal.command});
  } else {
    add_choices(option, found);
  }
}

void add_subcommands(const CLI::App& command, std::vector<Completion>& found) {
  for (const CLI::App* child : command.get_subcommands([](const CLI::App*) { return true; })) {
    if (!child->get_group().empty()) found.push_back({child->get_name(), child->get_description()});
  }
}

void add_options(const CLI::App& command, std::vector<Completion>& found) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional() || option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames())
      found.push_back({"--" + name, option->get_description()});
  }
}

/// The positional that a further word would be: the last one where it takes many.
const CLI::Option* next_positional(const CLI::App& command, int place) {
  const CLI::Option* last = nullptr;
  int index = 0;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    last = option;
    if (index++ == place) return option;
  }
  const bool takes_many = last && last->get_expected_max() > 1;
  return takes_many ? last : nullptr;
}

std::vector<Completion> candidates(const CLI::App& app,
                                   GlobalOptions globals,
                                   const std::vector<std::string>& words) {
  const Position position = position_of_last(app, words);
  if (!position.project.empty()) globals.project = position.project;
  const Context context("", globals);
  std::vector<Completion> found;
  if (position.awaited) {
    add_values(*position.awaited, context, found);
    return found;
  }
  if (!words.empty() && starts_with(words.back(), "-")) {
    add_options(*position.command, found);
    return found;
  }
  add_subcommands(*position.command, found);
  if (const CLI::Option* option = next_positional(*position.command, position.positionals))
    add_values(*option, context, found);
  return found;
}

constexpr const char* bash_script = R"(# bash completion of forge
_forge() {
  local words=("${COMP_WORDS[@]:1:COMP_CWORD}") line
  COMPREPLY=()
  # Readline takes ':' and '=' for separators of words.
  local current=${COMP_WORDS[COMP_CWORD]}
  while IFS=$'\t' read -r line _; do
    COMPREPLY+=("$line")
  done < <("${COMP_WORDS[0]}" __complete -- "${words[@]}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
  if [[ ${#COMPREPLY[@]} -eq 0 ]]; then mapfile -t COMPREPLY < <(compgen -f -- "$current"); fi
}
complete -F _forge forge
)";

constexpr const char* zsh_script = R"(#compdef forge
# zsh completion of forge
_forge() {
  local -a found described
  local word help
  while IFS=$'\t' read -r word help; do
    found+=("$word")
    described+=("${word}${help:+  -- $help}")
  done < <("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( ${#found} )); then
    compadd -l -d described -a found
  else
    _files
  fi
}
if [ "$funcstack[1]" = _forge ]; then _forge "$@"; else compdef _forge forge; fi
)";

constexpr const char* fish_script = R"(# fish completion of forge
function __forge_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete -- $words[2..-1] 2>/dev/null
end
complete -c forge -f -a '(__forge_complete)'
)";

}  // namespace

std::vector<Completion> complete(const CLI::App& app,
                                 const GlobalOptions& globals,
                                 const std::vector<std::string>& words) {
  std::vector<Completion> found;
  try {
    found = candidates(app, globals, words);
  } catch (const Error&) {
    return {};  // a broken project must not spoil typing
  }
  const std::string begun = words.empty() ? "" : words.back();
  found.erase(std::remove_if(found.begin(),
                             found.end(),
                             [&](const Completion& c) { return !starts_with(c.word, begun); }),
              found.end());
  return found;
}

std::string completion_script(const std::string& shell) {
  if (shell == "bash") return bash_script;
  if (shell == "zsh") return zsh_script;
  return fish_script;
}

}  // namespace forge::app
