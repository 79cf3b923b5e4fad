#include <algorithm>

#include "core/base/text.h"
#include "core/lint/rules.h"

namespace forge::lint {
namespace {

using templating::BlockFact;
using templating::Reference;

/// The templates that this one extended in the render.
std::vector<const UsedTemplate*> parents_of(const UsedTemplate& used, const Subject& subject) {
  std::vector<const UsedTemplate*> parents;
  for (const Reference& reference : used.survey->references) {
    if (reference.kind != Reference::Kind::extends) continue;
    for (const std::string& name : reference.names) {
      if (const UsedTemplate* parent = subject.find(name)) parents.push_back(parent);
    }
    if (!reference.is_expression()) continue;
    for (const UsedTemplate& other : subject.templates) {
      const bool is_parent =
          other.loaded->relation == "extends" && other.loaded->loaded_by == used.loaded->name;
      if (is_parent) parents.push_back(&other);
    }
  }
  return parents;
}

/// All that it extended, nearest first.
std::vector<const UsedTemplate*> ancestors_of(const UsedTemplate& used, const Subject& subject) {
  std::vector<const UsedTemplate*> ancestors = parents_of(used, subject);
  for (size_t i = 0; i < ancestors.size(); ++i) {
    for (const UsedTemplate* next : parents_of(*ancestors[i], subject)) {
      const bool is_new =
          next != &used && std::find(ancestors.begin(), ancestors.end(), next) == ancestors.end();
      if (is_new) ancestors.push_back(next);
    }
  }
  return ancestors;
}

std::vector<std::string> blocks_of(const std::vector<const UsedTemplate*>& templates) {
  std::vector<std::string> names;
  for (const UsedTemplate* used : templates) {
    for (const BlockFact& block : used->survey->blocks) names.push_back(block.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

void check_blocks(const Subject& subject, Findings& findings) {
  for (const UsedTemplate& used : subject.templates) {
    const std::vector<const UsedTemplate*> ancestors = ancestors_of(used, subject);
    if (ancestors.empty()) continue;
    const std::vector<std::string> known = blocks_of(ancestors);
    for (const BlockFact& block : used.survey->blocks) {
      // A block within another is a place for others to fill.
      if (!block.enclosing.empty()) continue;
      if (std::binary_search(known.begin(), known.end(), block.name)) continue;
      std::vector<std::string> names;
      for (const UsedTemplate* ancestor : ancestors) names.push_back(ancestor->loaded->name);
      std::string hint = did_you_mean(block.name, known);
      if (hint.empty()) hint = "it extends " + join(names, ", ");
      findings.push_back({Severity::warning,
                          "unknown-block",
                          block.span,
                          "the block '" + block.name +
                              "' overrides nothing: no template that this one extends has it, so "
                              "its text is dropped",
                          hint,
                          block.name});
    }
  }
}

}  // namespace forge::lint
