#include "core/templating/template_cache.h"

#include "core/base/text.h"

namespace forge::templating {

namespace fs = std::filesystem;

std::optional<std::string> path_below_folder(const std::string& name) {
  if (name.find('\0') != std::string::npos) return std::nullopt;
  std::string path;
  for (const std::string& segment : split(name, '/')) {
    if (segment == "..") return std::nullopt;
    if (!segment.empty() && segment != ".") path += "/" + segment;
  }
  if (path.empty()) return std::nullopt;
  return path.substr(1);
}

const TemplateFile* TemplateCache::find(const fs::path& folder, const std::string& below) {
  const std::string path = folder.native() + "/" + below;
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Slot>& known = slots_[path];
    if (!known) known = std::make_unique<Slot>();
    slot = known.get();
  }
  const std::lock_guard lock(slot->mutex);
  if (slot->was_looked_for) return slot->file.get();
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) {
    slot->file = std::make_unique<const TemplateFile>(read_template_file(path));
  }
  slot->was_looked_for = true;
  return slot->file.get();
}

const TemplateFile* TemplateCache::find(const std::vector<fs::path>& search_path,
                                        const std::string& name) {
  const std::optional<std::string> below = path_below_folder(name);
  if (!below) return nullptr;
  for (const fs::path& folder : search_path) {
    if (const TemplateFile* file = find(folder, *below)) return file;
  }
  return nullptr;
}

}  // namespace forge::templating
