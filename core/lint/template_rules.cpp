#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>

#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/jinja/builtins.h"
#include "core/lint/rules.h"

namespace forge::lint {

using jinja::BlockInfo;
using jinja::Reference;
using jinja::TemplateAnalysis;
using jinja::VariableRead;
using jinja::VariableWrite;

void check_parent(const CheckedConfig& checked, Findings& findings) {
  const auto& loaded = checked.parsed.rendered.templates;
  const bool alone =
      std::all_of(loaded.begin(), loaded.end(), [&](const jinja::LoadedTemplate& other) {
        return other.source->name == loaded.front().source->name;
      });
  if (loaded.empty() || !alone) return;
  findings.push_back({Severity::warning,
                      "stands-alone",
                      make_span(loaded.front().source, loaded.front().source->first_line, 1),
                      "the config extends and includes no other template: it has nothing in common "
                      "with its project",
                      "begin it with -- extends 'TEMPLATE'",
                      checked.config.name});
}

namespace {

/// The templates that this one extended in the render.
std::vector<const UsedTemplate*> parents_of(const UsedTemplate& used,
                                            const CheckedConfig& checked) {
  std::vector<const UsedTemplate*> parents;
  for (const Reference& reference : used.analysis->references) {
    if (reference.kind != Reference::Kind::extends) continue;
    for (const std::string& name : reference.names) {
      if (const UsedTemplate* parent = checked.find(name)) parents.push_back(parent);
    }
    if (!reference.is_expression()) continue;
    for (const UsedTemplate& other : checked.templates) {
      const bool is_parent =
          other.loaded->relation == "extends" && other.loaded->loaded_by == used.loaded->name;
      if (is_parent) parents.push_back(&other);
    }
  }
  return parents;
}

}  // namespace

std::vector<const UsedTemplate*> ancestors_of(const UsedTemplate& used,
                                              const CheckedConfig& checked) {
  std::vector<const UsedTemplate*> ancestors = parents_of(used, checked);
  for (size_t i = 0; i < ancestors.size(); ++i) {
    for (const UsedTemplate* next : parents_of(*ancestors[i], checked)) {
      const bool is_new =
          next != &used && std::find(ancestors.begin(), ancestors.end(), next) == ancestors.end();
      if (is_new) ancestors.push_back(next);
    }
  }
  return ancestors;
}

namespace {

std::vector<std::string> blocks_of(const std::vector<const UsedTemplate*>& templates) {
  std::vector<std::string> names;
  for (const UsedTemplate* used : templates) {
    for (const BlockInfo& block : used->analysis->blocks) names.push_back(block.name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

void check_blocks(const CheckedConfig& checked, Findings& findings) {
  for (const UsedTemplate& used : checked.templates) {
    const std::vector<const UsedTemplate*> ancestors = ancestors_of(used, checked);
    if (ancestors.empty()) continue;
    const std::vector<std::string> known = blocks_of(ancestors);
    for (const BlockInfo& block : used.analysis->blocks) {
      // A block within another is a place for others to fill.
      if (!block.enclosing.empty()) continue;
      if (std::binary_search(known.begin(), known.end(), block.name)) continue;
      const auto name = [](const UsedTemplate* ancestor) { return ancestor->loaded->name; };
      const std::string hint =
          did_you_mean(block.name, known, "it extends " + join(texts_of(ancestors, name), ", "));
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

void check_text_outside_blocks(const CheckedConfig& checked, Findings& findings) {
  for (const UsedTemplate& used : checked.templates) {
    if (ancestors_of(used, checked).empty()) continue;
    const SourceText& source = *used.analysis->source;
    int line = source.first_line;
    for (size_t at = 0; at < source.text.size(); ++line) {
      const size_t end = std::min(source.text.find('\n', at), source.text.size());
      const std::string_view text = std::string_view(source.text).substr(at, end - at);
      at = end + 1;
      if (used.analysis->block_at(line)) continue;
      const std::string key = root_key(text);
      if (key.empty() || !config::is_known_path(key.substr(0, key.find('.')))) continue;
      findings.push_back({Severity::warning,
                          "outside-blocks",
                          make_span(used.analysis->source, line, 1),
                          "'" + key +
                              "' is dropped: this template extends another one, and no "
                              "block holds this line",
                          "put the line [overrides] above it, by itself, and == super() below that",
                          key});
      break;  // what follows is most often dropped, too
    }
  }
}

namespace {

bool is_used(const CheckedConfig& checked, const TemplateAnalysis& part) {
  return std::any_of(checked.templates.begin(),
                     checked.templates.end(),
                     [&](const UsedTemplate& used) { return used.analysis == &part; });
}

bool is_named(const CheckedConfig& checked, const std::string& name) {
  const auto names_it = [&](const Reference& reference) {
    return std::find(reference.names.begin(), reference.names.end(), name) != reference.names.end();
  };
  return std::any_of(checked.parts.begin(), checked.parts.end(), [&](const TemplateAnalysis* part) {
    return std::any_of(part->references.begin(), part->references.end(), names_it);
  });
}

/// Of several templates of one name the one that is used, else the one loaded last.
const TemplateAnalysis& winner_of(const CheckedConfig& checked,
                                  const std::vector<const TemplateAnalysis*>& parts) {
  const auto used = std::find_if(parts.begin(), parts.end(), [&](const TemplateAnalysis* part) {
    return is_used(checked, *part);
  });
  return used == parts.end() ? *parts.back() : **used;
}

void check_duplicates(const CheckedConfig& checked,
                      const std::vector<const TemplateAnalysis*>& parts,
                      Findings& findings) {
  const TemplateAnalysis& winner = winner_of(checked, parts);
  for (const TemplateAnalysis* part : parts) {
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

/// Whether a line of it gives a key of forge's configs: without them another model is trained.
bool holds_settings(const TemplateAnalysis& part) {
  const std::vector<std::string> lines = split(part.source->text, '\n');
  return std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    const std::string key = root_key(line);
    return !key.empty() && config::is_known_path(key.substr(0, key.find('.')));
  });
}

}  // namespace

void check_inline_templates(const CheckedConfig& checked, Findings& findings) {
  std::map<std::string, std::vector<const TemplateAnalysis*>> by_name;
  for (const TemplateAnalysis* part : checked.parts) {
    if (!part->inline_name.empty()) by_name[part->inline_name].push_back(part);
  }
  for (const auto& [name, parts] : by_name) {
    if (parts.size() > 1) check_duplicates(checked, parts, findings);
    for (const TemplateAnalysis* part : parts) {
      if (!looks_like_a_title(name) || is_used(checked, *part) || is_named(checked, name)) continue;
      findings.push_back({holds_settings(*part) ? Severity::warning : Severity::note,
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

namespace {

using Views = std::unordered_set<std::string_view>;  ///< of strings that the checked config owns

/// What a config's templates can see besides what they set themselves.
Views given_names(const CheckedConfig& checked) {
  Views names;
  for (const auto& [name, value] : checked.variables) names.insert(name);
  for (const auto& argument : checked.arguments) names.insert(argument.variable);
  return names;
}

std::string owner_of(const std::string& path) {
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

/// The first read of each path that is never read without a fallback.
std::vector<const VariableRead*> reads_with_fallback(const CheckedConfig& checked) {
  std::vector<const VariableRead*> first;
  Views seen;
  Views relied_on;
  for (const UsedTemplate& used : checked.templates) {
    for (const VariableRead& read : used.analysis->reads) {
      if (!read.is_optional) {
        relied_on.insert(read.path);
      } else if (seen.insert(read.path).second) {
        first.push_back(&read);
      }
    }
  }
  const auto is_relied_on = [&](const VariableRead* read) {
    return relied_on.count(read->path) > 0;
  };
  first.erase(std::remove_if(first.begin(), first.end(), is_relied_on), first.end());
  return first;
}

std::string without_digits(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }),
             text.end());
  return text;
}

/// Near enough to be a slip of the keys, rather than the name of a sibling such as beta1 and beta2.
bool is_typo(const std::string& written, const std::string& meant) {
  constexpr size_t short_name = 8;
  const int most = written.size() < short_name ? 1 : 2;
  const auto longer = static_cast<int>(written.size()) - static_cast<int>(meant.size());
  if (std::abs(longer) > most) return false;
  return edit_distance(written, meant) <= most && without_digits(written) != without_digits(meant);
}

std::string last_name(const std::string& path) { return path.substr(path.find('.') + 1); }

/// The YAML key of the line on which a template prints a value: "  lr: {{ … }}" -> "lr".
std::string key_on_line(const SourceSpan& span) {
  const std::string line = span.line_text();
  const std::string_view text = trim(line);
  const size_t colon = text.find(':');
  const bool is_key = colon != std::string_view::npos && text.find_first_of("{ '\"") > colon;
  return is_key ? std::string(text.substr(0, colon)) : "";
}

/// The path that a read was most likely meant for, or "".
std::string meant_by(const std::string& path,
                     const std::vector<std::string>& known,
                     const std::string& key) {
  for (const std::string& other : known) {
    if (owner_of(other) == owner_of(path) && is_typo(path, other)) return other;
  }
  for (const std::string& other : known) {
    if (owner_of(other) != owner_of(path) && last_name(other) == last_name(path)) return other;
  }
  constexpr size_t telling = 6;  // characters of a key that are no coincidence within a name
  const std::string name = last_name(path);
  const bool holds_key = key.size() >= telling && name.find(key) != std::string::npos;
  const bool is_name_of_key = name == key;
  return !is_name_of_key && (holds_key || is_typo(name, key)) ? key : "";
}

/// Takes out what some template of the config sets, whether or not it took part, and attributes of
/// what is no namespace: they may come from anywhere.
void remove_assigned(const CheckedConfig& checked, std::vector<const VariableRead*>& reads) {
  Views wanted;
  for (const VariableRead* read : reads) wanted.insert(read->path);
  Views namespaces;
  for (const TemplateAnalysis* part : checked.parts) {
    for (const VariableWrite& write : part->writes) {
      wanted.erase(write.path);
      if (write.makes_namespace) namespaces.insert(write.path);
    }
  }
  const auto is_known = [&](const VariableRead* read) {
    const std::string owner = owner_of(read->path);
    return wanted.count(read->path) == 0 || (!owner.empty() && namespaces.count(owner) == 0);
  };
  reads.erase(std::remove_if(reads.begin(), reads.end(), is_known), reads.end());
}

/// Every path that is set or given, sorted.
std::vector<std::string> known_paths(const CheckedConfig& checked, const Views& given) {
  std::set<std::string> paths(given.begin(), given.end());
  for (const TemplateAnalysis* part : checked.parts) {
    for (const VariableWrite& write : part->writes) paths.insert(write.path);
  }
  return {paths.begin(), paths.end()};
}

Views paths_read(const CheckedConfig& checked) {
  Views paths;
  for (const TemplateAnalysis* part : checked.parts)
    for (const VariableRead& read : part->reads) paths.insert(read.path);
  return paths;
}

/// The name of the outermost block around a line, "".
std::string block_around(const TemplateAnalysis& part, int line) {
  const BlockInfo* const block = part.block_at(line);
  if (!block) return "";
  return block->enclosing.empty() ? block->name : block->enclosing;
}

/// The line in the block on which it calls super() first; 0: it does not.
int super_line(const TemplateAnalysis& part, const BlockInfo& block) {
  const SourceText& source = *part.source;
  if (!block.uses_super) return 0;
  size_t at = 0;
  for (int line = source.first_line; line < block.span.line; ++line)
    at = source.text.find('\n', at) + 1;  // the block is below it
  const size_t found = source.text.find("super()", at);
  if (found == std::string::npos) return 0;
  const auto begin = source.text.begin();
  return block.span.line + static_cast<int>(std::count(
                               begin + std::ptrdiff_t(at), begin + std::ptrdiff_t(found), '\n'));
}

/// Whether a block calls super() only below the line, and an inherited one of its name sets the
/// same path.
bool is_overwritten(const CheckedConfig& checked,
                    const UsedTemplate& used,
                    const VariableWrite& write) {
  const BlockInfo* const own = used.analysis->block_at(write.span.line);
  if (!own || super_line(*used.analysis, *own) <= write.span.line) return false;
  const std::vector<const UsedTemplate*> ancestors = ancestors_of(used, checked);
  return std::any_of(ancestors.begin(), ancestors.end(), [&](const UsedTemplate* ancestor) {
    const std::vector<VariableWrite>& writes = ancestor->analysis->writes;
    return std::any_of(writes.begin(), writes.end(), [&](const VariableWrite& other) {
      return other.path == write.path &&
             block_around(*ancestor->analysis, other.span.line) == own->name;
    });
  });
}

/// Whether a template reads the path in its block of that name.
bool is_read_in(const CheckedConfig& checked, const std::string& path, const std::string& block) {
  return std::any_of(checked.parts.begin(), checked.parts.end(), [&](const TemplateAnalysis* part) {
    return std::any_of(part->reads.begin(), part->reads.end(), [&](const VariableRead& read) {
      return read.path == path && block_around(*part, read.span.line) == block;
    });
  });
}

/// Why setting it changes nothing; "" where it may.
std::string why_unread(const CheckedConfig& checked,
                       const UsedTemplate& used,
                       const VariableWrite& write,
                       const Views& read) {
  if (read.count(write.path) == 0) return "no template of this config reads '" + write.path + "'";
  const bool is_last = block_around(*used.analysis, write.span.line) == "overrides";
  if (is_last && !is_read_in(checked, write.path, "overrides"))
    return "'" + write.path + "' is read only above the block 'overrides'";
  if (is_overwritten(checked, used, write))
    return "super() below it sets '" + write.path + "' again";
  return "";
}

/// "ns.mixer" for mixer or ns.mixers.
std::string read_in_place_of(const std::string& path, const Views& read) {
  const std::set<std::string> known(read.begin(), read.end());
  for (const std::string& other : known)
    if (last_name(other) == path) return "did you mean '" + other + "'?";
  return did_you_mean(path, {known.begin(), known.end()});
}

}  // namespace

void check_unread_variables(const CheckedConfig& checked, Findings& findings) {
  const Views read = paths_read(checked);
  for (const UsedTemplate& used : checked.templates) {
    for (const VariableWrite& write : used.analysis->writes) {
      if (write.kind != VariableWrite::Kind::assignment || write.makes_namespace) continue;
      const std::string why = why_unread(checked, used, write, read);
      if (why.empty()) continue;
      findings.push_back({Severity::warning,
                          "never-read",
                          write.span,
                          why + ": setting it here changes nothing",
                          read.count(write.path) > 0
                              ? "set it in [config_metadata], below == super()"
                              : read_in_place_of(write.path, read),
                          write.path});
    }
  }
}

void check_variables(const CheckedConfig& checked, Findings& findings) {
  std::vector<const VariableRead*> reads = reads_with_fallback(checked);
  remove_assigned(checked, reads);
  if (reads.empty()) return;
  const Views given = given_names(checked);
  const std::set<std::string>& built_in = jinja::known_names();
  const std::vector<std::string> known = known_paths(checked, given);
  for (const VariableRead* read : reads) {
    const std::string& path = read->path;
    if (given.count(path) || built_in.count(path)) continue;
    const std::string key = key_on_line(read->span);
    const std::string meant = meant_by(path, known, key);
    // `lr: {{ lr | toyaml(0.1) }}` is a place for others to fill, which nobody has to.
    if (meant.empty() && key == last_name(path)) continue;
    findings.push_back({meant.empty() ? Severity::note : Severity::warning,
                        "never-set",
                        read->span,
                        "nothing sets '" + path + "': its default is always used",
                        meant.empty() ? "" : "did you mean '" + meant + "'?",
                        path});
  }
}

}  // namespace forge::lint
