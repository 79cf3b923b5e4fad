#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/run/identity.h"

/// A plan in a file, so that it can be read, kept and executed later, or on another machine.
namespace forge::run {

/// A resolved run of a plan: everything that decides what it computes.
struct SavedRun {
  std::string label;  ///< what to call it
  std::string project;
  std::string workspace;  ///< its root
  std::string config;
  std::string id;             ///< of the run that it is or would become
  std::string revision;       ///< git commit of the workspace, ""
  nlohmann::json experiment;  ///< resolved, complete
  nlohmann::json origins;     ///< who set each value
  Identity identity;
  std::vector<int64_t> planned_seeds;                                     ///< see RunInputs
  std::vector<std::string> planned_claims;                                ///< the same
  std::optional<std::map<std::string, std::string>> planned_tables = {};  ///< the same
  std::string planned_config = {};                                        ///< the same
  std::string drawn_order = {};                                           ///< the same
};

/// A plan of runs that can be read, kept and executed as it is, even if its templates change.
struct SavedPlan {
  std::string created;  ///< UTC
  std::string command;  ///< that made it, as typed
  std::string device = "auto";
  int threads = 0;           ///< 0: all cores
  std::string continue_run;  ///< of --continue, ""
  std::vector<SavedRun> runs;
};

/// Writes the plan aside and renames it. Throws Error where that fails.
void write_plan(const std::filesystem::path& file, const SavedPlan& plan);

/// Throws Error for a file that is not a plan, or is of another version.
SavedPlan read_plan(const std::filesystem::path& file);

}  // namespace forge::run
