#include "core/config/kind.h"

#include <algorithm>

#include "core/config/from_project.h"
#include "core/config/keys.h"

namespace forge::config {

bool is_experiment(const yaml::Node& root) {
  // Targets that Forgather's tools ask for, which the schema does not have.
  if (!root.is_mapping() || root.find("meta") || root.find("main")) return false;
  return std::any_of(root.entries.begin(), root.entries.end(), [](const yaml::Entry& entry) {
    const bool is_plain = entry.value->tag.empty() || is_from_project(*entry.value);
    return is_plain && is_known_path(entry.key.substr(0, entry.key.find('.')));
  });
}

}  // namespace forge::config
