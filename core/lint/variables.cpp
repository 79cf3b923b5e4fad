#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>
#include <unordered_set>

#include "core/base/text.h"
#include "core/lint/rules.h"
#include "core/templating/globals.h"

namespace forge::lint {
namespace {

using templating::PartSurvey;
using templating::VariableRead;
using templating::VariableWrite;

using Views = std::unordered_set<std::string_view>;  ///< of strings that the subject owns

/// What a config's templates can see besides what they set themselves.
Views given_names(const Subject& subject) {
  Views names;
  for (const auto& [name, value] : subject.variables) names.insert(name);
  for (const auto& argument : subject.arguments) names.insert(argument.variable);
  return names;
}

std::string owner_of(const std::string& path) {
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

/// The first read of each path that is never read without a fallback.
std::vector<const VariableRead*> reads_with_fallback(const Subject& subject) {
  std::vector<const VariableRead*> first;
  Views seen;
  Views relied_on;
  for (const UsedTemplate& used : subject.templates) {
    for (const VariableRead& read : used.survey->reads) {
      if (!read.has_fallback) {
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
bool is_slip(const std::string& written, const std::string& meant) {
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

/// Takes out what some template of the config sets, whether or not it took part, and attributes of
/// what is no namespace: they may come from anywhere.
void take_out_set(const Subject& subject, std::vector<const VariableRead*>& reads) {
  Views wanted;
  for (const VariableRead* read : reads) wanted.insert(read->path);
  Views namespaces;
  for (const PartSurvey* part : subject.parts) {
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
std::vector<std::string> known_paths(const Subject& subject, const Views& given) {
  std::set<std::string> paths(given.begin(), given.end());
  for (const PartSurvey* part : subject.parts) {
    for (const VariableWrite& write : part->writes) paths.insert(write.path);
  }
  return {paths.begin(), paths.end()};
}

}  // namespace

void check_variables(const Subject& subject, Findings& findings) {
  std::vector<const VariableRead*> reads = reads_with_fallback(subject);
  take_out_set(subject, reads);
  if (reads.empty()) return;
  const Views given = given_names(subject);
  const std::set<std::string>& built_in = templating::known_names();
  const std::vector<std::string> known = known_paths(subject, given);
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
