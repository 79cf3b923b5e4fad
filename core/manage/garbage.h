#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/progress.h"

namespace forge::manage {

/// Why something can be deleted.
enum class GarbageKind {
  removed_run,          ///< in the trash for long enough
  surplus_checkpoint,   ///< more than its completed run should keep
  damaged_checkpoint,   ///< no run can resume from it
  misnamed_checkpoint,  ///< whole, and no run resumes from it: its folder names another step
  leftover,             ///< of interrupted work
  prepared_data,        ///< in the user's cache; forge makes it again when needed
};
const std::string& name_of(GarbageKind kind);

struct Garbage {
  GarbageKind kind = GarbageKind::leftover;
  std::filesystem::path path;
  int64_t bytes = 0;
  std::string run;     ///< id of the run whose lock keeps it, ""
  std::string reason;  ///< "removed 9 days ago"
  uint64_t inode = 0;  ///< of what was found: nothing else is freed in its place
};
nlohmann::json to_json(const Garbage& garbage);

struct GarbageOptions {
  double days = 7;        ///< how long removed runs and unused prepared data are kept
  bool read_all = false;  ///< every byte of checkpoints, not only their manifests and sizes
  std::filesystem::path cache_dir;  ///< whose prepared data is looked at, "": none is
  double now = 0;                   ///< seconds since 1970
};

struct GarbageSearch {
  std::vector<Garbage> garbage;
  std::vector<std::string> left_out;  ///< "RUN: why nobody could look into it"
};

/// What can be freed below `runs_dir` and in the cache, without running and queued runs. Changes
/// nothing. `progress` counts the runs that were looked at.
GarbageSearch find_garbage(const std::filesystem::path& runs_dir,
                           const GarbageOptions& options,
                           const CountProgress& progress = {});

struct Freed {
  int64_t count = 0;
  int64_t bytes = 0;
  std::vector<std::string> kept;  ///< what could not be freed, and why
};

/// Frees what was found, but for what is in use by now. `progress` counts what was found.
Freed free_garbage(const std::filesystem::path& runs_dir,
                   const std::vector<Garbage>& garbage,
                   const CountProgress& progress = {});

}  // namespace forge::manage
