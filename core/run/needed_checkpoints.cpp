#include "core/run/needed_checkpoints.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/run/request.h"

namespace forge::run {

RunFolder NeededCheckpoint::origin() const { return RunFolder(run_of_checkpoint(checkpoint)); }

bool NeededCheckpoint::is_needed() const { return !run.find_checkpoint().recorded; }

std::vector<NeededCheckpoint> needed_checkpoints(const fs::path& runs_dir) {
  std::vector<NeededCheckpoint> needed;
  for (const RunFolder& run : list_runs(runs_dir)) {
    if (path_exists(run.done_file())) continue;
    try {
      const worker::Request request = read_request(run);
      for (const std::string& checkpoint : {request.initial_weights, request.resume_from}) {
        if (!run_of_checkpoint(checkpoint).empty()) needed.push_back({run, checkpoint});
      }
    } catch (const Error&) {
      // Said where the run is begun.
    }
  }
  return needed;
}

bool is_needed(const fs::path& checkpoint, const fs::path& runs_dir) {
  const std::vector<NeededCheckpoint> all = needed_checkpoints(runs_dir);
  return std::any_of(all.begin(), all.end(), [&](const NeededCheckpoint& needed) {
    std::error_code gone;
    return fs::equivalent(needed.checkpoint, checkpoint, gone) && needed.is_needed();
  });
}

}  // namespace forge::run
