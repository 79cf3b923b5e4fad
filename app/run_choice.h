#pragma once

#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/context.h"
#include "core/run/run_folder.h"

namespace forge::app {

/// Which runs a command is about.
struct RunChoice {
  std::vector<std::string> names;       ///< ids, their beginnings, patterns, folders
  std::vector<std::string> conditions;  ///< --where
};

/// RUN… and --where.
void add_run_choice(const Command& command, RunChoice& choice);

/// The runs: those named, or where none is all, that meet the conditions; archived ones too. Throws
/// Error where nothing was chosen, for a name that is no run's, and for a pattern that fits none.
std::vector<run::RunFolder> chosen_runs(const Context& context, const RunChoice& choice);

}  // namespace forge::app
