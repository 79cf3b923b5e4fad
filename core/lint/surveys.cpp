#include "core/lint/surveys.h"

namespace forge::lint {

const std::vector<templating::PartSurvey>& Surveys::of(const templating::TemplateFile& file) {
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Slot>& known = slots_[&file];
    if (!known) known = std::make_unique<Slot>();
    slot = known.get();
  }
  std::call_once(slot->once, [&] { slot->parts = templating::survey(file); });
  return slot->parts;
}

}  // namespace forge::lint
