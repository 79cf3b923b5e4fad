#include "core/run/runs_dir.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "core/base/error.h"
#include "core/base/fs.h"

namespace forge::run {
namespace {

/// Whether a file could be made in the folder, or the folder itself in the nearest one above.
bool could_write(fs::path folder) {
  std::error_code unreadable;
  while (!fs::exists(folder, unreadable) && folder.has_relative_path())
    folder = folder.parent_path();
  return ::access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

fs::path runs_dir(const fs::path& workspace_root) {
  const char* chosen = std::getenv("FORGE_RUNS_DIR");
  if (chosen && *chosen) return fs::absolute(chosen);
  const fs::path in_workspace = fs::absolute(workspace_root / "runs");
  return could_write(in_workspace) ? in_workspace : fs::absolute("runs");
}

void make_runs_dir(const fs::path& runs_dir) {
  const std::string hint = "set FORGE_RUNS_DIR to a folder that you can write to";
  std::error_code failure;
  fs::create_directories(runs_dir, failure);
  if (failure) {
    throw system_error("make the runs folder '" + runs_dir.string() + "'", failure.value(), hint);
  }
  if (::access(runs_dir.c_str(), W_OK | X_OK) != 0) {
    throw system_error("write to the runs folder '" + runs_dir.string() + "'", errno, hint);
  }
}

}  // namespace forge::run
