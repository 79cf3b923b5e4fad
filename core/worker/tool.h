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

/// How long a tool is waited for.
struct ToolPatience {
  std::string what;           ///< "git, which …": what a person reads
  double silent_seconds = 3;  ///< after which it is said that it is waited for
  double longest_seconds = 10;
};

/// Runs a small tool. None when it cannot be started or is killed, and when it takes too long,
/// which is said. Throws Error after a Ctrl-C (core/base/waiting.h).
std::optional<ToolAnswer> run_tool(Launcher& launcher,
                                   const WorkerCommand& command,
                                   const ToolPatience& patience);

/// Commit of the git repository that holds `folder`, "-dirty" appended where tracked files differ
/// from it; "" where there is none. The repository may be somebody else's, and what its config
/// names is not run: no monitor of files, hook, content filter, helper of a remote, and no config
/// of a bare repository that lies in the folder as files. A file behind a filter is compared
/// without it, so it may count as changed after it was touched. Where a filter cannot be turned off
/// for certain, the answer is "".
std::string git_revision(Launcher& launcher, const std::filesystem::path& folder);

}  // namespace forge::worker
