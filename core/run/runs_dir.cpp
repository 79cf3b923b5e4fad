#include "core/run/runs_dir.h"

#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/base/whole_id.h"
#include "core/python/unicode.h"

namespace forge::run {

namespace {

constexpr const char* choose_hint = "rename the folder, or set FORGE_RUNS_DIR to another one";

/// Whether a file could be made in the folder, or the folder itself in the nearest one above.
bool could_write(const fs::path& folder) { return can_write(existing_ancestor(folder)); }

}  // namespace

bool can_write(const fs::path& folder) { return ::access(folder.c_str(), W_OK | X_OK) == 0; }

fs::path runs_dir(const fs::path& workspace_root) {
  const char* chosen = std::getenv("FORGE_RUNS_DIR");
  const fs::path in_workspace = fs::absolute(workspace_root / "runs");
  fs::path folder = in_workspace;
  if (chosen && *chosen) {
    folder = fs::absolute(chosen);
  } else if (!is_folder(in_workspace) && !could_write(in_workspace)) {
    folder = fs::absolute("runs");
  }
  require_printable_path(folder, "the runs folder", choose_hint);
  return folder;
}

void make_runs_dir(const fs::path& runs_dir) {
  const std::string hint = "set FORGE_RUNS_DIR to a folder that you can write to";
  // Requests and events are JSON, which cannot name the folder: its first checkpoint would be lost.
  if (python::find_invalid_utf8(runs_dir.string()) != std::string::npos) {
    throw Error(
        "the path of the runs folder '" + tables::printable(runs_dir.string()) + "' is not UTF-8",
        choose_hint,
        ExitCode::failed);
  }
  std::error_code failure;
  fs::create_directories(runs_dir, failure);
  if (failure) {
    throw system_error("make the runs folder '" + runs_dir.string() + "'", failure.value(), hint);
  }
  if (!can_write(runs_dir)) {
    throw system_error("write to the runs folder '" + runs_dir.string() + "'", errno, hint);
  }
}

void require_runs_dir(const fs::path& runs_dir) {
  if (is_folder(runs_dir)) return;
  throw Error("the runs folder '" + shown_path(runs_dir) + "' is not there any more",
              "move it back, or let FORGE_RUNS_DIR name the folder that it is now",
              ExitCode::failed);
}

fs::path trash_folder(const fs::path& runs_dir) { return runs_dir / ".trash"; }

void require_listed(const fs::path& runs_dir) {
  if (::access(runs_dir.c_str(), R_OK) == 0 || errno == ENOENT || errno == ENOTDIR) return;
  throw system_error("list the runs folder '" + runs_dir.string() + "'", errno);
}

std::vector<RunFolder> list_runs(const fs::path& runs_dir) {
  require_listed(runs_dir);
  std::vector<RunFolder> runs;
  for (const fs::path& entry : folder_entries(runs_dir)) {
    RunFolder folder(entry);
    if (is_run_name(folder.id()) && path_exists(folder.record_file()) && !folder.is_linked())
      runs.push_back(std::move(folder));
  }
  return runs;
}

std::optional<RunFolder> find_run(const fs::path& runs_dir, const std::string& id) {
  const bool is_name = !id.empty() && id[0] != '.' && id.find('/') == std::string::npos;
  if (!is_name) return std::nullopt;
  // A whole id, which scripts give, needs no list of all runs.
  RunFolder whole(runs_dir / id);
  if (is_run_name(id) && whole.has_record()) {
    if (!whole.is_linked()) return whole;
    throw Error("'" + id + "' is no run: " + linked_run_text,
                "a run of another runs folder is named by its path, or listed with FORGE_RUNS_DIR");
  }
  if (is_whole_id(id)) return std::nullopt;
  std::vector<RunFolder> found;
  for (const fs::path& entry : folder_entries(runs_dir)) {
    RunFolder folder(entry);
    if (starts_with(folder.id(), id) && is_run_name(folder.id()) && !folder.is_linked() &&
        folder.has_record())
      found.push_back(std::move(folder));
  }
  if (found.empty()) return std::nullopt;
  if (found.size() == 1) return found.front();
  throw Error("'" + id + "' may mean several runs: " + join(texts_of(found, &RunFolder::id), ", "),
              "write enough of the id to tell them apart");
}

}  // namespace forge::run
