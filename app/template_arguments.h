#pragma once

#include <string>
#include <vector>

#include "app/commands.h"

namespace forge::app {

/// Takes the options that a command does not know, with the words behind each up to the next
/// option, out of the command line and into the program's template arguments: a config's templates
/// declare options of their own, and which ones is known only once the config is. Only for a
/// command that takes such arguments; the rest comes back for the parser, without the program's
/// name.
std::vector<std::string> take_template_arguments(const CLI::App& app,
                                                 Program& program,
                                                 const std::vector<std::string>& words);

}  // namespace forge::app
