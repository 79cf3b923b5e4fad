#include "core/base/text.h"
#include "core/lint/rules.h"

namespace forge::lint {
namespace {

/// What stands behind a tag's word, from ':' or '@' on.
std::string suffix_of(const std::string& tag) {
  const size_t at = tag.find_first_of(":@");
  return at == std::string::npos ? "" : tag.substr(at);
}

/// Behind the word one character is dropped, whatever it is: `!call@x` calls x.
void check_tag(const yaml::Node& node, Findings& findings) {
  const std::string suffix = suffix_of(node.tag);
  if (!starts_with(suffix, "@") || starts_with(node.tag, "!!")) return;
  const std::string word = node.tag.substr(0, node.tag.size() - suffix.size());
  const std::string name = suffix.substr(1);
  const bool is_container =
      word == "!tuple" || word == "!list" || word == "!dict" || word == "!dlist";
  if (is_container) {
    findings.push_back({Severity::warning,
                        "lost-identity",
                        node.origin,
                        "the identity '" + name + "' of " + node.tag + " is lost",
                        "write " + word + ":" + suffix,
                        name});
  } else if (word != "!var") {
    findings.push_back({Severity::warning,
                        "identity-as-constructor",
                        node.origin,
                        node.tag + " names the constructor '" + name + "', not an identity",
                        "write " + word + ":CONSTRUCTOR" + suffix,
                        name});
  }
}

}  // namespace

void check_graph(const Subject& subject, Findings& findings) {
  for (const yaml::Node* node : subject.nodes) {
    if (!node->tag.empty()) check_tag(*node, findings);
  }
  if (subject.graph_problem) {
    findings.push_back(finding_of(*subject.graph_problem, "invalid-graph"));
  }
}

void check_arguments(const Subject& subject, Findings& findings) {
  if (subject.arguments_problem) {
    findings.push_back(finding_of(*subject.arguments_problem, "invalid-arguments"));
  }
  for (const project::TemplateArgument& argument : subject.arguments) {
    if (!argument.has_stray_quote) continue;
    const std::string name = argument.names.empty() ? argument.variable : argument.names.front();
    findings.push_back({Severity::warning,
                        "stray-quote",
                        argument.origin,
                        "the name of the argument " + name + " ends with a quote",
                        "take the quote off",
                        argument.variable});
  }
}

}  // namespace forge::lint
