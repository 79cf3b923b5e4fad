#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/templating/survey.h"
#include "core/templating/template_file.h"

namespace forge::lint {

/// Surveys of template files, each made once for all configs that use the file. Any thread may
/// call; what is returned lives as long as the object.
class Surveys {
 public:
  const std::vector<templating::PartSurvey>& of(const templating::TemplateFile& file);

 private:
  struct Slot {
    std::once_flag once;
    std::vector<templating::PartSurvey> parts;
  };

  std::mutex mutex_;  ///< of slots_ alone
  std::unordered_map<const templating::TemplateFile*, std::unique_ptr<Slot>> slots_;
};

}  // namespace forge::lint
