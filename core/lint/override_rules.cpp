#include <algorithm>
#include <set>

#include "core/base/text.h"
#include "core/config/document.h"
#include "core/config/keys.h"
#include "core/config/tree.h"
#include "core/lint/rules.h"

namespace forge::lint {

using jinja::BlockInfo;

std::string root_key(std::string_view line) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  };
  const auto end = std::find_if_not(line.begin(), line.end(), is_part);
  if (end == line.begin() || end == line.end() || *end != ':') return "";
  return std::string(line.begin(), end);
}

namespace {

const UsedTemplate* template_of(const CheckedConfig& checked, const SourceSpan& span) {
  for (const UsedTemplate& used : checked.templates) {
    if (used.loaded->source == span.source) return &used;
  }
  return nullptr;
}

/// Whether `later` was written by one who saw `earlier` and meant to change it: below it in the
/// same template, or in one that extends its template.
bool was_written_after(const CheckedConfig& checked,
                       const SourceSpan& later,
                       const SourceSpan& earlier) {
  if (!later || !earlier) return false;
  if (later.source == earlier.source) return earlier.line < later.line;
  const UsedTemplate* own = template_of(checked, later);
  const UsedTemplate* other = template_of(checked, earlier);
  if (!own || !other) return false;
  const std::vector<const UsedTemplate*> ancestors = ancestors_of(*own, checked);
  return std::find(ancestors.begin(), ancestors.end(), other) != ancestors.end();
}

/// Finds the values of sections that a dotted key replaces.
class DottedKeyRule {
 public:
  DottedKeyRule(const CheckedConfig& checked, Findings& findings)
      : checked_(checked), findings_(findings) {}

  /// `path` is the dotted key's, as far as it was followed; `section` is what has it.
  void compare(const yaml::Node& section,
               const std::string& path,
               const std::string& prefix,
               const yaml::Entry& dotted) {
    const size_t dot = path.find('.');
    const yaml::Entry* entry = section.find_entry(path.substr(0, dot));
    if (!entry) return;
    const std::string whole = prefix + entry->key;
    if (dot == std::string::npos) {
      compare_values(*entry, *dotted.value, whole, dotted);
    } else if (entry->value->is_mapping()) {
      compare(*entry->value, path.substr(dot + 1), whole + ".", dotted);
    }
  }

 private:
  void compare_values(const yaml::Entry& entry,
                      const yaml::Node& winner,
                      const std::string& path,
                      const yaml::Entry& dotted) {
    if (entry.value->is_mapping() && winner.is_mapping()) {
      for (const yaml::Entry& inner : winner.entries) {
        if (const yaml::Entry* own = entry.value->find_entry(inner.key))
          compare_values(*own, *inner.value, path + "." + inner.key, dotted);
      }
      return;
    }
    const std::string text = config::short_text(*entry.value);
    if (text == config::short_text(winner)) return;
    if (!was_written_after(checked_, entry.key_origin, dotted.key_origin)) return;
    findings_.push_back(
        {Severity::warning,
         "dotted-key-wins",
         entry.key_origin,
         "'" + path + "' is ignored here: the dotted key '" + dotted.key +
             "' wins over every section: " + dotted.key_origin.describe(),
         entry.value->is_mapping() ? "give its keys with dots, too" : "write " + path + ": " + text,
         path});
  }

  const CheckedConfig& checked_;
  Findings& findings_;
};

/// What the profiles change, as mappings or by dotted keys such as profiles.quick.train.max_steps.
std::vector<yaml::NodePtr> changes_of_profiles(const yaml::Node& root) {
  std::vector<yaml::NodePtr> changes;
  const std::string prefix = "profiles.";
  for (const yaml::Entry* entry : config::dotted_entries(root, prefix)) {
    const size_t dot = entry->key.find('.', prefix.size());
    SourceSpan origin = entry->key_origin;
    if (dot != std::string::npos && origin.column > 0) origin.column += static_cast<int>(dot) + 1;
    changes.push_back(dot == std::string::npos
                          ? entry->value
                          : config::nest(entry->key.substr(dot + 1), origin, entry->value));
  }
  const yaml::Node* const profiles = root.find("profiles");
  if (!profiles || !profiles->is_mapping()) return changes;
  for (const yaml::Entry& profile : profiles->entries) changes.push_back(profile.value);
  return changes;
}

}  // namespace

void check_dotted_keys(const CheckedConfig& checked, Findings& findings) {
  if (!checked.is_experiment) return;
  const yaml::Node& root = *checked.parsed.root;
  const std::vector<yaml::NodePtr> profiles = changes_of_profiles(root);
  DottedKeyRule rule(checked, findings);
  for (const yaml::Entry& dotted : root.entries) {
    if (!config::is_dotted(dotted.key) || starts_with(dotted.key, ".")) continue;
    if (starts_with(dotted.key, "profiles.")) continue;
    rule.compare(root, dotted.key, "", dotted);
    for (const yaml::NodePtr& changes : profiles) rule.compare(*changes, dotted.key, "", dotted);
  }
}

namespace {

/// The block of the root template in which variants change what they inherit.
constexpr const char* overrides_name = "overrides";

const BlockInfo* overrides_of(const UsedTemplate& used) {
  for (const BlockInfo& block : used.analysis->blocks) {
    if (block.name == overrides_name && block.enclosing.empty()) return &block;
  }
  return nullptr;
}

/// The keys that a block gives, in its order.
std::vector<std::string> keys_of(const UsedTemplate& used, const BlockInfo& block) {
  const SourceText& source = *used.analysis->source;
  const std::vector<std::string> lines = split(source.text, '\n');
  std::vector<std::string> keys;
  for (int line = block.span.line + 1; line <= block.last_line; ++line) {
    const auto index = static_cast<size_t>(line - source.first_line);
    if (index >= lines.size()) break;
    const std::string key = root_key(lines[index]);
    if (!key.empty()) keys.push_back(key);
  }
  return keys;
}

/// Whether two sections are of different kinds, such as two optimizers, whose keys differ anyhow.
bool are_of_two_kinds(const yaml::Node& left, const yaml::Node& right) {
  const auto differ = [&](const char* key) {
    const yaml::Node *own = left.find(key), *other = right.find(key);
    return own && (!other || config::short_text(*own) != config::short_text(*other));
  };
  return differ("type") || differ("kind") || differ("source");
}

/// The keys of the section that the entry's has replaced, and that it lacks.
std::vector<std::string> lost_keys(const yaml::Entry& section) {
  std::vector<std::string> lost;
  if (section.overridden.empty() || !section.value->is_mapping()) return lost;
  const yaml::Node &own = *section.value, &inherited = *section.overridden.front();
  if (!inherited.is_mapping() || !own.tag.empty() || !inherited.tag.empty()) return lost;
  if (own.entries.empty() || are_of_two_kinds(own, inherited)) return lost;
  for (const yaml::Entry& entry : inherited.entries)
    if (!own.find(entry.key)) lost.push_back(entry.key);
  return lost;
}

bool lies_in(const SourceSpan& span, const UsedTemplate& used, const BlockInfo& block) {
  return span.source == used.loaded->source && span.line > block.span.line &&
         span.line <= block.last_line;
}

void check_replaced_sections(const CheckedConfig& checked,
                             const UsedTemplate& used,
                             const BlockInfo& own,
                             Findings& findings) {
  constexpr size_t most = 6;
  for (const yaml::Entry& section : checked.parsed.root->entries) {
    std::vector<std::string> lost = lost_keys(section);
    if (lost.empty() || config::is_dotted(section.key) || !config::is_known_path(section.key))
      continue;
    if (!lies_in(section.key_origin, used, own)) continue;
    if (lost.size() > most) {
      lost.resize(most);
      lost.emplace_back("…");
    }
    const yaml::Entry& first = section.value->entries.front();
    findings.push_back({Severity::warning,
                        "section-replaced",
                        section.key_origin,
                        "this section replaces the inherited section '" + section.key +
                            "', and with it " + join(lost, ", ") + ": " +
                            section.overridden.front()->origin.describe(),
                        "dotted keys change some and keep the others: " + section.key + "." +
                            first.key + ": " + config::short_text(*first.value),
                        section.key});
  }
}

}  // namespace

void check_overrides(const CheckedConfig& checked, Findings& findings) {
  if (checked.is_experiment) {
    for (const UsedTemplate& used : checked.templates)
      if (const BlockInfo* own = overrides_of(used))
        check_replaced_sections(checked, used, *own, findings);
  }
  for (const UsedTemplate& used : checked.templates) {
    const BlockInfo* own = overrides_of(used);
    if (!own || own->uses_super) continue;
    const std::vector<std::string> own_keys = keys_of(used, *own);
    const std::set<std::string> given(own_keys.begin(), own_keys.end());
    std::vector<std::string> lost;
    std::string of;
    for (const UsedTemplate* ancestor : ancestors_of(used, checked)) {
      const BlockInfo* inherited = overrides_of(*ancestor);
      if (!inherited) continue;
      for (const std::string& key : keys_of(*ancestor, *inherited)) {
        if (given.count(key) == 0 && std::find(lost.begin(), lost.end(), key) == lost.end())
          lost.push_back(key);
      }
      if (of.empty() && !lost.empty()) of = inherited->span.describe();
      if (!inherited->uses_super) break;
    }
    if (lost.empty()) continue;
    findings.push_back({Severity::warning,
                        "overrides-without-super",
                        own->span,
                        "this block replaces the inherited overrides, and with them " +
                            join(lost, ", ") + ": " + of,
                        "begin it with the line == super() to keep them",
                        lost.front()});
  }
}

}  // namespace forge::lint
