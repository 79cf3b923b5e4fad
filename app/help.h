#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "app/command_line.h"
#include "core/base/error.h"

/// What `--help`, the manual page and error messages say of the declared commands.
namespace forge::app {

/// Commands and options that help lists, in the order of their declaration.
std::vector<const CLI::App*> listed_commands(const CLI::App& command);
std::vector<const CLI::Option*> listed_options(const CLI::App& command);
std::vector<const CLI::Option*> positionals(const CLI::App& command);

/// "--set", "--json", …: every long name of the options.
std::vector<std::string> long_names(const std::vector<const CLI::Option*>& options);
/// "-o", "--output": all names of one option.
std::vector<std::string> option_names(const CLI::Option& option);

/// The details, examples and references of a command, "" where it has none.
CommandTexts command_texts(const CLI::App& command, const Program& program);

/// The subcommand of that name, hidden ones too; null where there is none.
const CLI::App* find_command(const CLI::App& command, const std::string& name);

/// "<FILE>", "[CONFIG]...", "" for a flag.
std::string value_text(const CLI::Option& option, const Program& program);
/// The help of an option with its default and its choices.
std::string option_help(const CLI::Option& option, const Program& program);
/// "forge run [OPTIONS] [CONFIG]...", a line for each form.
std::vector<std::string> usage_lines(const CLI::App& command,
                                     const std::string& path,
                                     const Program& program);

/// The whole help of a command; `path` is how it is called: "forge runs show".
std::string help_text(const CLI::App& command, const std::string& path, const Program& program);

/// The error of a command line that CLI11 does not accept, in plain words.
Error usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace forge::app
