#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/base/fs.h"
#include "core/queue/queue.h"
#include "core/run/run_folder.h"

namespace forge::upkeep {

/// A run that nobody works on, held so that nobody begins to.
struct Idle {
  std::optional<FileLock> lock;  ///< the run's; none where somebody works on it
  std::string obstacle;          ///< then "is running" or "waits in the queue"
};

/// `queue` is of the run's folder: while it is locked nothing is started from it.
Idle hold_idle(const queue::Queue& queue, const run::RunFolder& folder);

/// Bytes of all files below a path, or of the file that it is. Links count as themselves.
int64_t tree_bytes(const fs::path& path);

/// Whether a name is that of a folder directly below another: no separator, no "." in front.
bool is_plain_name(const std::string& name);

}  // namespace forge::upkeep
