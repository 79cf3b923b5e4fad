#pragma once

#include <string>
#include <vector>

#include "app/context.h"
#include "app/launch.h"

namespace forge::app {

/// Which runs a command line asks for.
struct Selection {
  std::vector<std::string> configs;  ///< names and patterns
  bool all = false;                  ///< every training config of the project
  std::string table;                 ///< what this table shows, ""
  std::string seeds;                 ///< "1,2,3" or "1..3", "": the config's own
  int seed_count = 0;                ///< as many from the config's own on; 0: not asked for
  std::vector<std::string> sweeps;   ///< "optimizer.lr=1e-3,3e-3", or one that the project declares
};

/// Names of the sweeps that a project declares: the files sweeps/*.yaml, sorted.
std::vector<std::string> sweep_names(const project::Project& project);

/// All launches: first every config with its first seed or value, then with the next, so that what
/// is compared is there early. A run that two selections ask for is launched once.
std::vector<Launch> selected_launches(const Context& context,
                                      const Selection& selection,
                                      const LaunchOptions& options);

}  // namespace forge::app
