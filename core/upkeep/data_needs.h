#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config/experiment.h"

namespace forge::upkeep {

/// A text that a run was trained on, and where it comes from.
struct DataNeed {
  std::string source;  ///< "toy_stories", "task", or the name of a source of a mixture
  std::string path;    ///< where it lay, "": forge makes it
  std::string how;     ///< to get it
  bool is_here = true;
};
nlohmann::json to_json(const DataNeed& need);

/// What the data of an experiment is made from; `is_here` of this machine.
std::vector<DataNeed> data_needs(const config::Experiment& experiment);

}  // namespace forge::upkeep
