#include "app/template_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/base/text.h"

namespace forge::app {
namespace {

/// The command that the words name, with its place; options of the program itself come before it.
const CLI::App* chosen_command(const CLI::App& app,
                               const std::vector<std::string>& words,
                               size_t& place) {
  const std::vector<const CLI::App*> commands =
      app.get_subcommands([](const CLI::App*) { return true; });
  for (place = 0; place < words.size(); ++place) {
    if (starts_with(words[place], "-")) {
      const CLI::Option* option = app.get_option_no_throw(words[place]);
      if (option && option->get_items_expected_min() > 0) ++place;
      continue;
    }
    const auto found = std::find_if(commands.begin(), commands.end(), [&](const CLI::App* command) {
      return command->get_name() == words[place];
    });
    return found == commands.end() ? nullptr : *found;
  }
  return nullptr;
}

/// The command below it that the next word names, if there is one.
const CLI::App* below(const CLI::App* command,
                      const std::vector<std::string>& words,
                      size_t place) {
  if (!command || place + 1 >= words.size()) return command;
  for (const CLI::App* inner : command->get_subcommands([](const CLI::App*) { return true; })) {
    if (inner->get_name() == words[place + 1]) return inner;
  }
  return command;
}

/// A word that begins like an option and is no negative number.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word[1] != '.' && (word[1] < '0' || word[1] > '9');
}

/// Whether the command has the option itself; behind a short one its value may follow at once.
bool is_own(const CLI::App& command, const std::string& word) {
  const bool is_long = starts_with(word, "--");
  if (word == "--") return true;
  const std::string name = is_long ? word.substr(0, word.find('=')) : word.substr(0, 2);
  return command.get_option_no_throw(name) != nullptr;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::vector<std::string> take_template_arguments(const CLI::App& app,
                                                 Program& program,
                                                 const std::vector<std::string>& words) {
  size_t place = 0;
  const CLI::App* command = below(chosen_command(app, words, place), words, place);
  if (!command || program.takes_template_arguments.count(command) == 0) return words;
  program.globals.command_options = option_names(*command);
  std::vector<std::string> kept;
  bool taking = false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > place && is_option(words[i])) taking = !is_own(*command, words[i]);
    (taking ? program.globals.template_arguments : kept).push_back(words[i]);
  }
  return kept;
}

}  // namespace forge::app
