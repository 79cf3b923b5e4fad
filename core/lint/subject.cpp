#include "core/lint/subject.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace forge::lint {

using templating::LoadedTemplate;
using templating::PartSurvey;
using templating::TemplateFile;

const UsedTemplate* Subject::find(const std::string& name) const {
  const auto found =
      std::find_if(templates.begin(), templates.end(), [&](const UsedTemplate& used) {
        return used.loaded->name == name;
      });
  return found == templates.end() ? nullptr : &*found;
}

void survey_templates(Subject& subject, Surveys& surveys) {
  std::unordered_map<const SourceText*, const PartSurvey*> survey_of;
  std::unordered_set<const TemplateFile*> seen;
  for (const LoadedTemplate& loaded : subject.rendered.templates) {
    if (!loaded.source->inline_name.empty()) continue;
    const TemplateFile* file =
        subject.project.shared->templates.find(subject.project.search_path, loaded.name);
    if (!file || !seen.insert(file).second) continue;
    for (const PartSurvey& part : surveys.of(*file)) {
      survey_of[part.source.get()] = &part;
      subject.parts.push_back(&part);
    }
  }
  for (const LoadedTemplate& loaded : subject.rendered.templates) {
    const auto found = survey_of.find(loaded.source.get());
    if (found != survey_of.end()) subject.templates.push_back({&loaded, found->second});
  }
}

}  // namespace forge::lint
