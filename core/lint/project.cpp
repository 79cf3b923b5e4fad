#include "core/base/text.h"
#include "core/lint/rules.h"

namespace forge::lint {

void check_project(const project::Project& project, Findings& findings) {
  static const std::vector<std::string> keys = {
      "name", "description", "searchdir", "config_prefix", "default_config", "system_path"};
  for (const project::UnknownKey& unknown : project.unknown_keys) {
    std::string hint = did_you_mean(unknown.key, keys);
    // Names that other tools have for the same.
    if (starts_with(unknown.key, "search")) hint = "did you mean 'searchdir'?";
    if (hint.empty()) hint = "the keys of meta.yaml are " + join(keys, ", ");
    findings.push_back({Severity::warning,
                        "unknown-meta-key",
                        unknown.origin,
                        "unknown key '" + unknown.key + "': it is ignored",
                        hint,
                        unknown.key});
  }
}

}  // namespace forge::lint
