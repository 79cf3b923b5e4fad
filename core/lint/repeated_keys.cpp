#include <algorithm>

#include "core/base/text.h"
#include "core/lint/rules.h"

namespace forge::lint {
namespace {

using templating::PartSurvey;

const PartSurvey* part_of(const Subject& subject, const SourceSpan& span) {
  for (const PartSurvey* part : subject.parts) {
    if (part->source == span.source) return part;
  }
  return nullptr;
}

/// Whether nothing suggests that the second was meant to replace the first: both stand, without a
/// condition, in the same block of the same template.
bool looks_accidental(const Subject& subject, const SourceSpan& first, const SourceSpan& second) {
  if (!first || first.source != second.source || first.line >= second.line) return false;
  const PartSurvey* part = part_of(subject, first);
  if (!part || part->block_at(first.line) != part->block_at(second.line)) return false;
  return !part->is_conditional(first.line) && !part->is_conditional(second.line);
}

void check_entry(const Subject& subject, const yaml::Entry& entry, Findings& findings) {
  if (starts_with(entry.key, ".")) return;
  const size_t repeats = std::min(entry.repeats, entry.overridden.size());
  for (size_t i = 0; i < repeats; ++i) {
    const SourceSpan& first = entry.overridden[i]->origin;
    if (!looks_accidental(subject, first, entry.value->origin)) continue;
    findings.push_back({Severity::warning,
                        "repeated-key",
                        entry.key_origin,
                        "'" + entry.key + "' is given twice here: line " +
                            std::to_string(first.line) + " is overridden",
                        "keep one of them",
                        entry.key});
    return;
  }
}

}  // namespace

void check_repeated_keys(const Subject& subject, Findings& findings) {
  for (const yaml::Node* node : subject.nodes) {
    for (const yaml::Entry& entry : node->entries) check_entry(subject, entry, findings);
  }
}

}  // namespace forge::lint
