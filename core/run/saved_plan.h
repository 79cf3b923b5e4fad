#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/run/plan.h"

namespace forge::run {

/// A run of a plan, resolved: all that decides what it computes.
struct SavedRun {
  std::string label;  ///< what to call it
  std::string project;
  std::string config;
  std::string id;             ///< of the run that it is or would become
  std::string revision;       ///< git commit of the workspace, ""
  nlohmann::json experiment;  ///< resolved, complete
  nlohmann::json origins;     ///< who set each value
  Identity identity;
};

/// A plan of runs, to be looked at, kept, and executed as it is, whatever becomes of the templates
/// that it was made from.
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

/// Throws Error for what is no such file, or of another version.
SavedPlan read_plan(const std::filesystem::path& file);

/// The run as the plan has it, under the id that it has there: executed twice, a plan is done once.
/// Throws Error, which names the differences, where these inputs would make another run: the data,
/// the backend or the device are no longer those of the plan.
PlannedRun plan_as_saved(const RunInputs& inputs,
                         const SavedRun& saved,
                         const std::filesystem::path& runs_dir);

}  // namespace forge::run
