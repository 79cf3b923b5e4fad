#include <algorithm>
#include <map>

#include "core/lint/rules.h"

namespace forge::lint {
namespace {

using templating::PartSurvey;
using templating::Reference;

bool is_used(const Subject& subject, const PartSurvey& part) {
  return std::any_of(subject.templates.begin(),
                     subject.templates.end(),
                     [&](const UsedTemplate& used) { return used.survey == &part; });
}

bool is_named(const Subject& subject, const std::string& name) {
  const auto names_it = [&](const Reference& reference) {
    return std::find(reference.names.begin(), reference.names.end(), name) != reference.names.end();
  };
  return std::any_of(subject.parts.begin(), subject.parts.end(), [&](const PartSurvey* part) {
    return std::any_of(part->references.begin(), part->references.end(), names_it);
  });
}

/// Of several templates of one name the one that is used, else the one loaded last.
const PartSurvey& winner_of(const Subject& subject, const std::vector<const PartSurvey*>& parts) {
  const auto used = std::find_if(
      parts.begin(), parts.end(), [&](const PartSurvey* part) { return is_used(subject, *part); });
  return used == parts.end() ? *parts.back() : **used;
}

void check_duplicates(const Subject& subject,
                      const std::vector<const PartSurvey*>& parts,
                      Findings& findings) {
  const PartSurvey& winner = winner_of(subject, parts);
  for (const PartSurvey* part : parts) {
    if (part == &winner || part->source->text == winner.source->text) continue;
    findings.push_back({Severity::warning,
                        "duplicate-inline",
                        part->marker,
                        "another inline template '" + part->inline_name +
                            "' is used in place of this one: " + winner.marker.describe(),
                        "the file that is loaded last wins, a parent over the template that "
                        "extends it; give one of them another name",
                        part->inline_name});
  }
}

/// `#---- Title ----` was meant as a comment, and cuts the file.
bool looks_like_a_title(const std::string& name) {
  return name.find_first_of("./") == std::string::npos;
}

}  // namespace

void check_inline_templates(const Subject& subject, Findings& findings) {
  std::map<std::string, std::vector<const PartSurvey*>> by_name;
  for (const PartSurvey* part : subject.parts) {
    if (!part->inline_name.empty()) by_name[part->inline_name].push_back(part);
  }
  for (const auto& [name, parts] : by_name) {
    if (parts.size() > 1) check_duplicates(subject, parts, findings);
    for (const PartSurvey* part : parts) {
      if (!looks_like_a_title(name) || is_used(subject, *part) || is_named(subject, name)) continue;
      findings.push_back({Severity::note,
                          "unused-inline",
                          part->marker,
                          "this line ends the template above: what follows is the inline template "
                          "'" +
                              name + "', which nothing uses",
                          "a comment of two words or without dashes behind it cuts nothing",
                          name});
    }
  }
}

}  // namespace forge::lint
