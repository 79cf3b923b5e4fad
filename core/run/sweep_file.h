#pragma once

#include <string>
#include <vector>

#include "core/run/variations.h"
#include "core/yaml/node.h"

namespace forge::run {

/// Runs that a project declares in a file of its own, sweeps/NAME.yaml, so that they are asked for
/// by a name.
struct SweepFile {
  std::string name;  ///< of the file, without .yaml
  std::string title;
  std::vector<std::string> configs;  ///< names and patterns; none: those of the command line
  std::vector<Sweep> sweeps;         ///< seeds first, then the keys in the order of the file
};

/// Reads and checks a sweep file. Throws Error at the place of what is wrong.
SweepFile read_sweep_file(const std::string& path);

/// The same for a file that was parsed already.
SweepFile sweep_file_from_node(const yaml::Node& node);

}  // namespace forge::run
