#include "app/template_arguments.h"

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

bool is_option(const std::string& word) { return starts_with(word, "--") && word.size() > 2; }

}  // namespace

std::vector<std::string> take_template_arguments(const CLI::App& app,
                                                 Program& program,
                                                 const std::vector<std::string>& words) {
  size_t place = 0;
  const CLI::App* command = chosen_command(app, words, place);
  if (!command || program.takes_template_arguments.count(command) == 0) return words;
  std::vector<std::string> kept;
  bool taking = false;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > place && starts_with(words[i], "-")) {
      const std::string name = words[i].substr(0, words[i].find('='));
      taking = is_option(words[i]) && !command->get_option_no_throw(name);
    }
    (taking ? program.globals.template_arguments : kept).push_back(words[i]);
  }
  return kept;
}

}  // namespace forge::app
