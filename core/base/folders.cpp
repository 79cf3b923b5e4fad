#include "core/base/folders.h"

#include <algorithm>
#include <cerrno>

#include "core/base/error.h"
#include "core/base/files.h"

namespace forge {

void require_read(const fs::path& folder, const std::error_code& problem) {
  if (!problem || problem.value() == ENOENT || problem.value() == ENOTDIR) return;
  throw system_error("read the folder '" + shown_path(folder) + "'",
                     problem.value(),
                     problem.value() == EACCES
                         ? "its owner can make it readable: chmod u+rx, or g+rx for others"
                         : "");
}

std::vector<fs::path> required_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code problem;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end;
       entry.increment(problem))
    entries.push_back(entry->path());
  require_read(folder, problem);
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace forge
