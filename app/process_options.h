#pragma once

#include <string>
#include <vector>

#include "app/command_line.h"
#include "app/launch.h"

namespace forge::app {

/// --gpus and --processes of a command: by how many processes each config is trained.
struct ProcessOptions {
  std::string gpus;   ///< a number or auto, "": the config's own parallel.processes
  int processes = 0;  ///< the same on any device, 0: not given
};
/// `what`: "Train each run".
void add_process_options(const Command& command, ProcessOptions& options, const std::string& what);
/// They set a key of the config. Throws Error where --set sets it, too.
void take_process_options(const ProcessOptions& options, LaunchOptions& launch);

/// A GPU for each of several processes; empty for one, and on a CPU. Throws Error where there are
/// too few. `device`: what the user chose.
std::vector<std::string> devices_of_processes(int processes,
                                              const std::string& device,
                                              const worker::Environment& environment);

}  // namespace forge::app
