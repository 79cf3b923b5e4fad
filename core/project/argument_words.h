#pragma once

#include <string>
#include <vector>

#include "core/project/template_arguments.h"

namespace forge::project {

/// Who is asked, for messages, and what a value may refer to.
struct ArgumentReader {
  std::string config;                        ///< the config's name
  std::vector<std::string> command_options;  ///< the command's own, one of which may be meant
  std::string home_directory;                ///< of `~` in a path
};

/// Reads the words of a command line ("--max-steps", "5", "--flag", "--name=value") by a config's
/// declarations. An argument that is not given is not in the result. Throws Error for an option
/// that the config does not declare, a word too many, a value that is missing, of the wrong type or
/// no choice, and an option that is given twice.
templating::Variables read_argument_words(const std::vector<TemplateArgument>& declared,
                                          const std::vector<std::string>& words,
                                          const ArgumentReader& reader);

}  // namespace forge::project
