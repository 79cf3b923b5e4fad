#include "app/help.h"

#include <algorithm>

#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

constexpr int widest_text = 100;
constexpr int widest_heading = 28;  ///< of an option; a longer one gets a line of its own

const char* const options_heading = "Options";

/// Paragraphs broken into lines of at most `width`; indented lines stay as they are.
std::string wrapped(const std::string& text, int width) {
  std::string lines;
  for (const std::string& paragraph : split(text, '\n')) {
    if (paragraph.empty() || starts_with(paragraph, "  ")) {
      lines += paragraph + "\n";
      continue;
    }
    for (const std::string& line : tables::wrap(paragraph, width)) lines += line + "\n";
  }
  return lines;
}

/// Two columns: what is named, and what it means.
std::string listing(const std::vector<std::pair<std::string, std::string>>& entries, int width) {
  int column = 0;
  for (const auto& [name, help] : entries) {
    const int columns = tables::display_width(name);
    if (columns <= widest_heading) column = std::max(column, columns);
  }
  const std::string indent(size_t(column) + 4, ' ');
  std::string text;
  for (const auto& [name, help] : entries) {
    const bool fits = tables::display_width(name) <= column;
    text += "  " + (fits ? tables::pad_right(name, column) + "  " : name + "\n" + indent);
    text += join(tables::wrap(help, width - column - 4), "\n" + indent) + "\n";
  }
  return text;
}

std::string option_heading(const CLI::Option& option, const Program& program) {
  const std::string value = value_text(option, program);
  return (option.get_snames().empty() ? "    " : "") + join(option_names(option), ", ") +
         (value.empty() ? "" : " " + value);
}

/// Headings of the options in the order of their declaration, "Options" last.
std::vector<std::string> option_groups(const CLI::App& command) {
  std::vector<std::string> groups;
  for (const CLI::Option* option : listed_options(command)) {
    const std::string& group = option->get_group();
    if (group != options_heading && std::find(groups.begin(), groups.end(), group) == groups.end())
      groups.push_back(group);
  }
  groups.emplace_back(options_heading);
  return groups;
}

std::string options_text(const CLI::App& command, const Program& program, int width) {
  std::string text;
  std::vector<std::pair<std::string, std::string>> entries;
  for (const CLI::Option* option : positionals(command))
    entries.emplace_back(value_text(*option, program), option_help(*option, program));
  if (!entries.empty()) text += "\nArguments:\n" + listing(entries, width);
  for (const std::string& group : option_groups(command)) {
    entries.clear();
    for (const CLI::Option* option : listed_options(command)) {
      if (option->get_group() == group)
        entries.emplace_back(option_heading(*option, program), option_help(*option, program));
    }
    text += "\n" + group + ":\n" + listing(entries, width);
  }
  return text;
}

/// Subcommands under the headings of their groups.
std::string commands_text(const CLI::App& command, int width) {
  std::string text, group;
  std::vector<std::pair<std::string, std::string>> entries;
  const auto finish = [&] {
    if (!entries.empty()) text += "\n" + group + ":\n" + listing(entries, width);
    entries.clear();
  };
  for (const CLI::App* child : listed_commands(command)) {
    const std::string heading = command.get_parent() ? "Commands" : child->get_group();
    if (heading != group) finish();
    group = heading;
    entries.emplace_back(child->get_name(), child->get_description());
  }
  finish();
  return text;
}

/// The part of a message of CLI11 that names the option.
std::string name_in(const std::string& message) { return message.substr(0, message.find(": ")); }

Error unknown_argument(const CLI::App& chosen,
                       const std::string& word,
                       const std::string& help_hint) {
  if (!starts_with(word, "-")) {
    const bool takes_table = chosen.get_option_no_throw("--table") != nullptr;
    return Error(
        "unexpected argument '" + word + "'",
        takes_table ? "a table is named by an option: --table " + shell_quoted(word) : help_hint);
  }
  const std::string name = word.substr(0, word.find('='));
  return Error("unknown option '" + name + "'",
               did_you_mean(name, long_names(listed_options(chosen)), help_hint));
}

}  // namespace

std::vector<const CLI::App*> listed_commands(const CLI::App& command) {
  return command.get_subcommands([](const CLI::App* child) { return !child->get_group().empty(); });
}

std::vector<const CLI::Option*> listed_options(const CLI::App& command) {
  const CLI::Option* help = command.get_help_ptr();
  auto options = command.get_options([help](const CLI::Option* option) {
    return !option->get_positional() && !option->get_group().empty() && option != help;
  });
  options.push_back(help);
  return options;
}

std::vector<const CLI::Option*> positionals(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

std::vector<std::string> long_names(const std::vector<const CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> option_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

CommandTexts command_texts(const CLI::App& command, const Program& program) {
  const auto found = program.commands.find(&command);
  return found == program.commands.end() ? CommandTexts() : found->second;
}

const CLI::App* find_command(const CLI::App& command, const std::string& name) {
  const auto found =
      command.get_subcommands([&](const CLI::App* child) { return child->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

std::string value_text(const CLI::Option& option, const Program& program) {
  const auto texts = program.arguments.find(&option);
  if (option.get_items_expected_max() == 0 || texts == program.arguments.end()) return "";
  if (!option.get_positional()) return "<" + texts->second.value_name + ">";
  const std::string name = option.get_name(true);
  const std::string many = option.get_expected_max() > 1 ? "..." : "";
  return (option.get_required() ? "<" + name + ">" : "[" + name + "]") + many;
}

std::string option_help(const CLI::Option& option, const Program& program) {
  std::string help = option.get_description();
  const auto found = program.arguments.find(&option);
  if (found == program.arguments.end()) return help;
  const ArgumentTexts& texts = found->second;
  const bool repeats = !option.get_positional() &&
                       option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
  if (repeats) help += "; may be repeated";
  if (!texts.choices.empty()) help += " [possible values: " + join(texts.choices, ", ") + "]";
  if (!texts.default_text.empty()) help += " [default: " + texts.default_text + "]";
  return help;
}

std::vector<std::string> usage_lines(const CLI::App& command,
                                     const std::string& path,
                                     const Program& program) {
  std::vector<std::string> lines;
  if (command.get_parent() && command.get_require_subcommand_min() == 0) {
    lines.push_back(path + " [OPTIONS]");
    for (const CLI::Option* option : positionals(command))
      lines.back() += " " + value_text(*option, program);
  }
  if (!listed_commands(command).empty()) lines.push_back(path + " [OPTIONS] <COMMAND>");
  return lines;
}

std::string help_text(const CLI::App& command, const std::string& path, const Program& program) {
  const int width = std::min(terminal_width(), widest_text);
  const auto [details, examples, see_also] = command_texts(command, program);
  std::string text = "Usage: " + join(usage_lines(command, path, program), "\n       ") + "\n\n" +
                     wrapped(command.get_description() + ".", width);
  if (!details.empty()) text += "\n" + wrapped(details, width);
  text += commands_text(command, width) + options_text(command, program, width);
  if (!examples.empty()) {
    text += "\nExamples:\n";
    for (const std::string& line : split(examples, '\n')) text += "  " + line + "\n";
  }
  if (!see_also.empty()) text += "\n" + wrapped("See also: " + see_also, width);
  if (!listed_commands(command).empty())
    text += "\n'" + path + " <COMMAND> --help' describes a command.\n";
  return text;
}

Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* chosen = &app;
  std::string path = "forge";
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
    path += " " + chosen->get_name();
  }
  const std::string hint = "'" + path + " --help' shows what it takes";
  const std::string message = error.what();
  if (dynamic_cast<const CLI::ValidationError*>(&error)) {
    const std::string name = name_in(message);
    return Error(name + message.substr(std::min(message.size(), name.size() + 1)), hint);
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error)) {
    const std::vector<std::string> words = app.remaining(true);
    return unknown_argument(*chosen, words.empty() ? message : words.front(), hint);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) {
    const bool too_many = message.find("At Most") != std::string::npos;
    return Error(name_in(message) + (too_many ? " may be given only once" : " needs a value"),
                 hint);
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error)) {
    const size_t between = message.find(" excludes ");
    return Error(message.substr(0, between) + " and " + message.substr(between + 10) +
                     " cannot be used together",
                 hint);
  }
  const bool lacks_command =
      dynamic_cast<const CLI::RequiredError*>(&error) && chosen->get_require_subcommand_min() > 0;
  if (lacks_command) {
    return Error("'" + path + "' needs a command",
                 "one of " + join(texts_of(listed_commands(*chosen), &CLI::App::get_name), ", "));
  }
  return Error(message, hint);
}

}  // namespace forge::app
