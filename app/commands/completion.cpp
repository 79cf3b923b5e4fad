#include <cctype>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "app/command_line.h"
#include "app/help.h"
#include "app/select_runs.h"
#include "app/tables.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/manage/run_edits.h"
#include "core/run/run_folder.h"
#include "core/run/runs_dir.h"

namespace forge::app {
namespace {

/// A candidate for the last word of the command line.
struct Completion {
  std::string word;
  std::string description;  ///< one line, may be ""
};
using Completions = std::vector<Completion>;

/// A word as it was typed into a shell: what it means, and the quote that is still open.
struct TypedWord {
  std::string text;
  char quote = '\0';
  size_t quoted_from = 0;  ///< where that quote stands
};

TypedWord read_typed(const std::string& typed) {
  TypedWord word;
  for (size_t i = 0; i < typed.size(); ++i) {
    const char c = typed[i];
    const bool in_double = word.quote == '"';
    const bool is_escape =
        c == '\\' && i + 1 < typed.size() && word.quote != '\'' &&
        (!in_double || std::string_view("\\\"$`").find(typed[i + 1]) != std::string_view::npos);
    if (is_escape) {
      word.text += typed[++i];
    } else if (c == word.quote) {
      word.quote = '\0';
    } else if (word.quote == '\0' && (c == '\'' || c == '"')) {
      word.quote = c;
      word.quoted_from = i;
    } else if (c != '\\' || word.quote != '\0') {
      word.text += c;
    }
  }
  return word;
}

/// The text as bash reads it back behind an open quote, which bash itself closes, or behind none.
/// Backslashes, so that words which begin alike still do.
std::string quoted_for_bash(const std::string& text, char open_quote) {
  std::string quoted;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || (c & 0x80) != 0 ||
                          std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
    if (open_quote == '\'') {
      quoted += c == '\'' ? "'\\''" : std::string(1, c);
    } else if (open_quote == '"' && c == '!') {
      quoted += "\"\\!\"";  // within the quotes it would be of the history
    } else if (open_quote == '"') {
      if (std::string_view("\\\"$`").find(c) != std::string_view::npos) quoted += '\\';
      quoted += c;
    } else {
      if (!is_plain) quoted += '\\';
      quoted += c;
    }
  }
  return quoted;
}

/// The position of the last word of the command line.
struct Position {
  const CLI::App* command = nullptr;
  const CLI::Option* awaited = nullptr;  ///< the option whose value the word is
  int positionals = 0;                   ///< positional words before it
  std::string project;                   ///< value of -p
};

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
    } else if (const CLI::App* child = find_command(*position.command, word)) {
      position.command = child;
    } else {
      ++position.positionals;
    }
  }
  return position;
}

/// Configs of the current project, or of the whole workspace outside of any.
void offer_configs(const Context& context, Completions& found) {
  std::vector<project::Project> projects;
  if (context.project_folder()) {
    projects.push_back(context.project());
  } else {
    projects = project::load_projects(project::projects_of(context.workspace()),
                                      context.host_environment())
                   .projects;
  }
  for (const project::Project& project : projects) {
    for (const project::Config& config : project.configs)
      found.push_back({config.name, project.name});
  }
}

/// Candidates by the value name that the help shows: "CONFIG|RUN", "KEY=VALUE".
void offer_values(const CLI::Option& option,
                  const Program& program,
                  const Context& context,
                  Completions& found) {
  const ArgumentTexts& texts = program.arguments.at(&option);
  const auto offer = [&](const std::string& word) { found.push_back({word, ""}); };
  const auto offer_all = [&](const std::vector<std::string>& words) {
    for (const std::string& word : words) offer(word);
  };
  offer_all(texts.choices);
  for (const std::string& kind : split(texts.value_name, '|')) {
    if (kind == "PROJECT") {
      const project::ProjectList list = project::load_projects(
          project::projects_of(context.workspace()), context.host_environment());
      for (const project::Project& project : list.projects)
        found.push_back({project.path, project.name});
    } else if (kind == "CONFIG") {
      offer_configs(context, found);
    } else if (kind == "RUN" || kind == "MODEL") {
      for (const run::RunFolder& run : run::list_runs(context.runs_dir())) offer(run.id());
    } else if (kind == "KEY" || starts_with(kind, "KEY=")) {
      for (const config::Key& key : config::all_keys())
        found.push_back({key.path + (kind == "KEY" ? "" : "="), key.help});
    } else if (kind == "TABLE") {
      offer_all(table_names(context.project()));
    } else if (kind == "SWEEP") {
      offer_all(sweep_names(context.project()));
    } else if (kind == "REMOVAL") {
      for (const manage::Removal& removal : manage::list_removals(context.runs_dir()))
        found.push_back({removal.name, removal.command});
    }
  }
}

/// The positional that a further word would be: the last one where it takes many.
const CLI::Option* next_positional(const CLI::App& command, int place) {
  const std::vector<const CLI::Option*> options = positionals(command);
  if (size_t(place) < options.size()) return options[size_t(place)];
  const bool takes_many = !options.empty() && options.back()->get_expected_max() > 1;
  return takes_many ? options.back() : nullptr;
}

/// What the last of `words`, which are those behind the program's name up to the cursor, may begin.
Completions candidates(const CLI::App& app,
                       const Program& program,
                       const std::vector<std::string>& words) {
  const Position position = position_of_last(app, words);
  GlobalOptions globals = program.globals;
  if (!position.project.empty()) globals.project = position.project;
  const Context context("", globals);
  Completions found;
  if (position.awaited) {
    offer_values(*position.awaited, program, context, found);
    return found;
  }
  if (!words.empty() && starts_with(words.back(), "-")) {
    for (const CLI::Option* option : listed_options(*position.command)) {
      for (const std::string& name : option->get_lnames())
        found.push_back({"--" + name, option->get_description()});
    }
    return found;
  }
  for (const CLI::App* child : listed_commands(*position.command))
    found.push_back({child->get_name(), child->get_description()});
  if (const CLI::Option* option = next_positional(*position.command, position.positionals))
    offer_values(*option, program, context, found);
  return found;
}

// What a shell inserts into the command line it reads again on Enter, so a name that somebody else
// chose is quoted for it: in bash by forge, in zsh and fish by the shell. Words reach forge without
// their quotes.

constexpr const char* bash_script = R"(# bash completion of forge
_forge() {
  local words=("${COMP_WORDS[@]:1:COMP_CWORD}") line program=${COMP_WORDS[0]}
  # What lies in the folder that one is in starts on Enter, not before.
  if [[ $program == */* && $program != /* ]]; then program=forge; fi
  COMPREPLY=()
  while IFS=$'\t' read -r line _; do
    COMPREPLY+=("$line")
  done < <("$program" __complete --as-typed -- "${words[@]}" 2>/dev/null)
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace; fi
}
complete -o default -F _forge forge  # where forge offers nothing: files
)";

constexpr const char* zsh_script = R"(#compdef forge
# zsh completion of forge
_forge() {
  local -a found described
  local word help program=${words[1]}
  if [[ $program == */* && $program != /* ]]; then program=forge; fi  # as in bash
  while IFS=$'\t' read -r word help; do
    found+=("$word")
    described+=("${word}${help:+  -- $help}")
  done < <("$program" __complete -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)
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
    set -l words (commandline -opc)
    set -l program $words[1]
    if string match -qr '^[^/].*/' -- $program  # as in bash
        set program forge
    end
    set -l last (string replace -r '^["\']' '' -- (commandline -ct))
    $program __complete -- $words[2..-1] (string unescape -- $last) 2>/dev/null
end
complete -c forge -f -a '(__forge_complete)'
)";

int print_script(const Context&, const std::string& shell) {
  std::cout << (shell == "bash" ? bash_script : shell == "zsh" ? zsh_script : fish_script);
  return 0;
}

struct CompleteOptions {
  std::vector<std::string> words;
  bool as_typed = false;  ///< words and completions have the quotes of bash
};

/// Prints "WORD<tab>DESCRIPTION" for everything that the last word may become. Never throws: where
/// nothing can be found out, nothing is offered.
void print_completions(const CLI::App& app, const Program& program, CompleteOptions options) {
  std::vector<std::string>& words = options.words;
  TypedWord last;
  if (options.as_typed) {
    for (std::string& word : words) word = (last = read_typed(word)).text;
    if (last.quote != '\0' && last.quoted_from > 0) return;  // bash completes what follows it alone
  }
  Completions found;
  try {
    found = candidates(app, program, words);
  } catch (const Error&) {
    return;  // a broken project must not disturb typing
  }
  for (const auto& [word, description] : found) {
    if (tables::printable(word) != word) continue;  // nobody wants that on a command line
    if (!words.empty() && !starts_with(word, words.back())) continue;
    std::cout << (options.as_typed ? quoted_for_bash(word, last.quote) : word) << "\t"
              << tables::printable(description) << "\n";
  }
}

/// What the scripts call.
void add_complete_command(const Command& app) {
  auto options = std::make_shared<CompleteOptions>();
  const Command command = app.add_command("__complete", "").hidden();
  command.add_option("WORDS", options->words, "");
  command.add_flag("--as-typed", options->as_typed, "");
  command.set_action([app, options](const Context&) {
    print_completions(app.app(), app.program(), *options);
    return 0;
  });
}

}  // namespace

void add_completion(const Command& app) {
  add_complete_command(app);
  const auto [command, shell] = app.add_command(
      "completion", "Print the script that completes forge's command lines", print_script);
  command.examples(
      "source <(forge completion bash)             # now, or as a line of ~/.bashrc\n"
      "forge completion zsh > ~/.zfunc/_forge      # a folder of zsh's $fpath\n"
      "forge completion fish > ~/.config/fish/completions/forge.fish");
  command.add_option("SHELL", shell, "Shell").required().one_of({"bash", "zsh", "fish"});
}

}  // namespace forge::app
