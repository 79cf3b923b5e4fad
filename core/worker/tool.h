#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/worker/launcher.h"

namespace forge::worker {

/// What a small tool said, and how it left.
struct ToolAnswer {
  int code = 0;
  std::vector<std::string> lines;  ///< of its stdout
};

/// Runs a small tool. None when it cannot be started, is killed or takes longer than ten seconds.
std::optional<ToolAnswer> run_tool(Launcher& launcher, const WorkerCommand& command);

/// Commit of the git repository that holds `folder`, "-dirty" appended where tracked files differ
/// from it; "" where there is none. The repository may be somebody else's, and what its config
/// names is not run: no monitor of files, hook, content filter, helper of a remote, and no config
/// of a bare repository that lies in the folder as files. A file behind a filter is compared
/// without it, so it may count as changed after it was touched.
std::string git_revision(Launcher& launcher, const std::filesystem::path& folder);

}  // namespace forge::worker
