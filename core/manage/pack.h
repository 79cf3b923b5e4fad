#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/progress.h"
#include "core/config/experiment.h"
#include "core/run/run_folder.h"

namespace forge::manage {

/// A text or tokenizer that a run needs, and where it comes from.
struct RequiredData {
  std::string source;  ///< "toy_stories", "task", or the name of a source of a mixture
  std::string path;    ///< where it lay, "": forge makes it
  std::string how;     ///< to get it
  bool is_here = true;
};
nlohmann::json to_json(const RequiredData& need);

/// What the data of an experiment is made from; `is_here` of this machine.
std::vector<RequiredData> required_data(const config::Experiment& experiment);

constexpr const char* pack_manifest = "pack.json";
constexpr int pack_version = 1;

struct PackOptions {
  std::filesystem::path file;  ///< to be written
  bool checkpoints = false;    ///< all of them, with the optimizer's state
  std::string forge_version;
  /// Templates that the config is made of: name below templates/, and file.
  std::vector<std::pair<std::string, std::filesystem::path>> templates;
  /// Counts bytes: every file is read twice. What it throws ends the work, and leaves nothing.
  CountProgress progress = {};
};

struct Packed {
  int64_t files = 0;
  int64_t bytes = 0;               ///< of the pack
  std::vector<std::string> notes;  ///< what was left out
};

/// Writes all that reproduces a run into one file, a tar compressed with zstd:
///
///     pack.json     what it is: run, config, command, revision, fingerprints of the data and how
///                   to get it, and of every file its size and hash
///     run/          files of the run folder: of checkpoints the newest without the optimizer's
///                   state where the run is completed, else or with `checkpoints` all of them whole
///     templates/    what the config is made of
///
/// Throws Error where the run is running or waits in the queue.
Packed pack_run(const run::RunFolder& folder, const PackOptions& options);

/// Names of the files of a run folder that make the run, but for checkpoints: those that are there,
/// and no links.
std::vector<std::string> files_of_run(const run::RunFolder& folder);

struct ImportResult {
  run::RunFolder folder;
  bool created = false;               ///< false: the same run was here before
  std::vector<std::string> notes;     ///< what was left out or does not fit
  std::vector<RequiredData> missing;  ///< data that is not here
};

/// Imports a run from another runs folder, or from a pack (a file, or its unpacked folder). The
/// origin is not trusted: only a run's plain files are copied, no links; the run's key must be that
/// of its identity; every file of a pack must have the size and hash of pack.json; a damaged
/// checkpoint is left out. Nothing is replaced. Makes the runs folder, unless there is no origin.
/// Where a run of another project or workspace has its name it gets the next number of it. Throws
/// Error if another run of its project has that name, if the run is here with another config,
/// tokenizer or other events, if it is still running, for what is no run, and (exit code `storage`)
/// before anything is written where the disk has no room. `progress` counts bytes as they are
/// unpacked, compared with their hashes and copied; what it throws ends the work, and leaves
/// nothing. `workspace`: the root of the one that the run comes to, "": none.
ImportResult import_packed_run(const std::filesystem::path& origin,
                               const std::filesystem::path& runs_dir,
                               const CountProgress& progress = {},
                               const std::filesystem::path& workspace = {});

}  // namespace forge::manage
