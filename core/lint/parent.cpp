#include <algorithm>

#include "core/lint/rules.h"

namespace forge::lint {

void check_parent(const Subject& subject, Findings& findings) {
  const auto& loaded = subject.rendered.templates;
  const bool alone =
      std::all_of(loaded.begin(), loaded.end(), [&](const templating::LoadedTemplate& other) {
        return other.source->name == loaded.front().source->name;
      });
  if (loaded.empty() || !alone) return;
  findings.push_back({Severity::warning,
                      "stands-alone",
                      make_span(loaded.front().source, loaded.front().source->first_line, 1),
                      "the config extends and includes no other template: it has nothing in common "
                      "with its project",
                      "begin it with -- extends 'TEMPLATE'",
                      subject.config.name});
}

}  // namespace forge::lint
