#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/run/run_folder.h"

namespace forge::upkeep {

constexpr const char* pack_words = "pack.json";
constexpr int pack_version = 1;

struct PackOptions {
  std::filesystem::path file;  ///< to be written
  bool checkpoints = false;    ///< all of them, with the optimizer's state
  std::string forge_version;
  /// Templates that the config is made of: name below templates/, and file.
  std::vector<std::pair<std::string, std::filesystem::path>> templates;
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

/// Names of the files of a run folder that make the run, but for checkpoints.
const std::vector<std::string>& files_of_run();

}  // namespace forge::upkeep
