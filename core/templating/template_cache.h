#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/templating/template_file.h"

namespace forge::templating {

/// The path below a search folder that a template's name stands for; nothing for a name that leads
/// out of it.
std::optional<std::string> path_below_folder(const std::string& name);

/// Template files by path: each is looked for and read once, and a template in it parsed once.
/// Renders that share a cache see the files as they were then. Which inline templates a render
/// knows is its own affair (see Loader): nothing leaks from one to another. Any thread may call.
class TemplateCache {
 public:
  TemplateCache() = default;
  TemplateCache(const TemplateCache&) = delete;
  TemplateCache& operator=(const TemplateCache&) = delete;

  /// The file at a path below a folder, or null where there is none; it lives as long as the cache.
  /// Throws Error for one that cannot be read.
  const TemplateFile* find(const std::filesystem::path& folder, const std::string& below);
  /// The first file of a template's name on a search path, or null.
  const TemplateFile* find(const std::vector<std::filesystem::path>& search_path,
                           const std::string& name);

 private:
  struct Slot {
    std::mutex mutex;
    bool was_looked_for = false;
    std::unique_ptr<const TemplateFile> file;  ///< null: there is none
  };

  std::mutex mutex_;  ///< of slots_ alone: files are read side by side
  std::unordered_map<std::string, std::unique_ptr<Slot>> slots_;
};

}  // namespace forge::templating
