#pragma once

#include <string>

#include "core/base/files.h"

namespace forge {

/// A folder that is held open: whatever somebody puts in its place meanwhile, path() leads into the
/// folder that was opened. For what forge makes, changes and removes in a runs folder, which others
/// may write to.
class PinnedFolder {
 public:
  /// Opens `inner`, names below `root`, one in the other. `root` may be a link, and none of the
  /// others. Throws Error where one of them is a link or anything else but a folder, or not there.
  PinnedFolder(const fs::path& root, const fs::path& inner);

  /// For this process, as long as the object is there. Errors say what the folder is called.
  const fs::path& path() const { return path_; }
  /// Throws Error where it is another one that is called so by now.
  void require_at(const fs::path& name) const;

 private:
  FileDescriptor folder_;
  fs::path path_;
};

/// The same of a folder of a run, the last `depth` names of whose path must be no links.
PinnedFolder pinned_below(const fs::path& folder, int depth);

/// The text with what people call the folders in place of paths of pinned ones.
std::string without_pins(std::string text);

}  // namespace forge
