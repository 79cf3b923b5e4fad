#pragma once

#include <string>
#include <vector>

#include "app/context.h"

namespace CLI {
class App;
}

namespace forge::app {

/// A word that may stand next on the command line.
struct Completion {
  std::string word;
  std::string description;  ///< one line, may be ""
};

/// What may stand for the last of `words`, which are those behind the program's name up to the
/// cursor; the last may be "". Never throws: where nothing can be found out, nothing is offered.
std::vector<Completion> complete(const CLI::App& app,
                                 const GlobalOptions& globals,
                                 const std::vector<std::string>& words);

/// The script that teaches a shell ("bash", "zsh" or "fish") to ask forge.
std::string completion_script(const std::string& shell);

}  // namespace forge::app
