#include <algorithm>

#include "core/base/text.h"
#include "core/lint/rules.h"
#include "core/lint/yaml_versions.h"

namespace forge::lint {
namespace {

/// What was written at a place; a key keeps no record of its quotes.
bool is_quoted(const SourceSpan& place) {
  const std::string line = place.line_text();
  const auto at = static_cast<size_t>(std::max(place.column, 1)) - 1;
  return at < line.size() && (line[at] == '"' || line[at] == '\'');
}

class ScalarCheck {
 public:
  ScalarCheck(const Subject& subject, Findings& findings)
      : is_experiment_(subject.is_experiment), findings_(findings) {}

  void check_value(const yaml::Node& node) {
    if (node.is_scalar() && node.plain && node.tag.empty()) check(node.text, node.origin, "");
  }

  void check_key(const yaml::Entry& entry) {
    if (entry.key.size() > 64) return;
    const bool may_differ = !entry.key_is_string || is_letter(entry.key);
    if (may_differ && !is_quoted(entry.key_origin)) check(entry.key, entry.key_origin, "the key ");
  }

 private:
  /// Booleans of YAML 1.1 that PyYAML takes for text.
  static bool is_letter(const std::string& text) {
    return text == "y" || text == "Y" || text == "n" || text == "N";
  }

  void check(const std::string& text, const SourceSpan& where, const std::string& what) {
    if (is_letter(text)) {
      add(Severity::note,
          where,
          what + "'" + text + "' is a boolean to some readers of YAML 1.1",
          "quote it",
          text);
    } else if (const auto readings = two_readings(text)) {
      // forge's own reader takes 1e-3 for the number that it is, wherever one is wanted.
      if (is_experiment_ && readings->is_text_or_real) return;
      add(is_experiment_ ? Severity::note : Severity::warning,
          where,
          what + "'" + text + "' is " + readings->in_1_1 + " in YAML 1.1 (PyYAML) and " +
              readings->in_1_2 + " in YAML 1.2",
          readings->advice,
          text);
    }
  }

  void add(Severity severity,
           const SourceSpan& where,
           const std::string& message,
           const std::string& hint,
           const std::string& subject) {
    findings_.push_back({severity, "yaml-versions", where, message, hint, subject});
  }

  bool is_experiment_;
  Findings& findings_;
};

}  // namespace

void check_scalars(const Subject& subject, Findings& findings) {
  ScalarCheck check(subject, findings);
  for (const yaml::Node* node : subject.nodes) {
    check.check_value(*node);
    for (const yaml::Entry& entry : node->entries) check.check_key(entry);
  }
}

}  // namespace forge::lint
