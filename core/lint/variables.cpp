#include <algorithm>
#include <map>
#include <set>

#include "core/base/text.h"
#include "core/lint/rules.h"
#include "core/project/template_arguments.h"
#include "core/templating/globals.h"

namespace forge::lint {
namespace {

using templating::PartSurvey;
using templating::VariableRead;
using templating::VariableWrite;

/// What a config's templates can see besides what they set themselves.
std::set<std::string> given_names(const Subject& subject) {
  std::set<std::string> names;
  for (const auto& [name, value] : subject.variables) names.insert(name);
  if (!subject.graph) return names;
  try {
    for (const auto& argument : project::read_template_arguments(*subject.graph)) {
      names.insert(argument.variable);
    }
  } catch (const Error&) {
    // Another rule tells what is wrong with the arguments.
  }
  return names;
}

/// Names that some template of the config sets, whether or not it took part.
struct Names {
  std::set<std::string> set;         ///< paths
  std::set<std::string> namespaces;  ///< variables that are made by namespace()
};
Names names_of(const Subject& subject) {
  Names names;
  for (const PartSurvey* part : subject.parts) {
    for (const VariableWrite& write : part->writes) {
      names.set.insert(write.path);
      if (write.makes_namespace) names.namespaces.insert(write.path);
    }
  }
  return names;
}

std::string owner_of(const std::string& path) {
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

/// Where each path that is never read without a fallback is read first.
std::map<std::string, SourceSpan> reads_with_fallback(const Subject& subject) {
  std::map<std::string, SourceSpan> first;
  std::set<std::string> relied_on;
  for (const UsedTemplate& used : subject.templates) {
    for (const VariableRead& read : used.survey->reads) {
      if (!read.has_fallback) relied_on.insert(read.path);
      first.emplace(read.path, read.span);
    }
  }
  for (const std::string& path : relied_on) first.erase(path);
  return first;
}

std::string without_digits(std::string text) {
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }),
             text.end());
  return text;
}

/// Near enough to be a slip of the keys, rather than the name of a sibling such as beta1 and beta2.
bool is_slip(const std::string& written, const std::string& meant) {
  constexpr size_t short_name = 8;
  const int most = written.size() < short_name ? 1 : 2;
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
    if (owner_of(other) == owner_of(path) && is_slip(path, other)) return other;
  }
  for (const std::string& other : known) {
    if (owner_of(other) != owner_of(path) && last_name(other) == last_name(path)) return other;
  }
  constexpr size_t telling = 6;  // characters of a key that are no coincidence within a name
  const std::string name = last_name(path);
  const bool holds_key = key.size() >= telling && name.find(key) != std::string::npos;
  const bool is_name_of_key = name == key;
  return !is_name_of_key && (holds_key || is_slip(name, key)) ? key : "";
}

}  // namespace

void check_variables(const Subject& subject, Findings& findings) {
  const std::map<std::string, SourceSpan> reads = reads_with_fallback(subject);
  if (reads.empty()) return;
  const Names names = names_of(subject);
  const std::set<std::string> given = given_names(subject);
  const std::set<std::string>& built_in = templating::known_names();
  std::vector<std::string> known(names.set.begin(), names.set.end());
  known.insert(known.end(), given.begin(), given.end());
  for (const auto& [path, span] : reads) {
    const std::string owner = owner_of(path);
    // Attributes of what is no namespace may come from anywhere.
    if (!owner.empty() && names.namespaces.count(owner) == 0) continue;
    if (names.set.count(path) || given.count(path) || built_in.count(path)) continue;
    const std::string key = key_on_line(span);
    const std::string meant = meant_by(path, known, key);
    // `lr: {{ lr | toyaml(0.1) }}` is a place for others to fill, which nobody has to.
    if (meant.empty() && key == last_name(path)) continue;
    findings.push_back({meant.empty() ? Severity::note : Severity::warning,
                        "never-set",
                        span,
                        "nothing sets '" + path + "': its default is always used",
                        meant.empty() ? "" : "did you mean '" + meant + "'?",
                        path});
  }
}

}  // namespace forge::lint
