#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/run/halving.h"
#include "core/run/sweep.h"

namespace forge::run {

/// Runs that a project declares in a file of its own, sweeps/NAME.yaml, so that they are asked for
/// by a name (docs/SWEEPS.md).
struct SweepFile {
  std::string name;  ///< of the file, without .yaml
  std::string title;
  std::vector<std::string> configs;    ///< names and patterns; none: those of the command line
  std::vector<Sweep> sweeps;           ///< seeds first, then the keys in the order of the file
  std::vector<RandomKey> random_keys;  ///< keys whose values are drawn, in the order of the file
  SampleCount samples;                 ///< of these, drawn together
  std::optional<HalvingRule> halving;
};

/// Reads and checks a sweep file. Throws Error at the place of what is wrong.
SweepFile read_sweep_file(const std::string& path);

}  // namespace forge::run
