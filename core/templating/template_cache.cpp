#include "core/templating/template_cache.h"

namespace forge::templating {

namespace fs = std::filesystem;

const TemplateFile* TemplateCache::find(const fs::path& folder, const std::string& below) {
  const std::string path = folder.native() + "/" + below;
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Slot>& known = slots_[path];
    if (!known) known = std::make_unique<Slot>();
    slot = known.get();
  }
  std::call_once(slot->once, [&] {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return;
    slot->file = std::make_unique<const TemplateFile>(read_template_file(path));
  });
  return slot->file.get();
}

}  // namespace forge::templating
