#include <algorithm>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/config/experiment.h"
#include "core/config/resolve.h"
#include "core/data/corpus/text_files.h"
#include "core/data/tokenizer/tokenizer_file.h"
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
  for (const std::string& misnamed : project::misnamed_warnings(project))
    findings.push_back({Severity::warning, "config-name", {}, misnamed, "rename them", ""});
}

namespace {

using config::Problem;

/// The rule that reports such a problem, and its severity: the config may be right and this machine
/// the wrong one.
std::pair<const char*, Severity> rule_for(Problem::Kind kind) {
  switch (kind) {
    case Problem::Kind::unknown_key: return {"unknown-key", Severity::error};
    case Problem::Kind::wrong_value: return {"wrong-value", Severity::error};
    case Problem::Kind::missing_key: return {"missing-key", Severity::error};
    case Problem::Kind::disagreement: return {"disagreement", Severity::error};
    case Problem::Kind::missing_file: return {"missing-file", Severity::warning};
    case Problem::Kind::unsupported: return {"unsupported", Severity::note};
  }
  return {"", Severity::error};
}

SourceSpan origin_of(const config::ResolvedConfig& resolved, const std::string& key) {
  return resolved.origins.at(key).set_by.origin;
}

/// An error about the file or folder that a key names, at the key's value.
Finding finding_at(const config::ResolvedConfig& resolved,
                   const std::string& key,
                   const Error& error,
                   const std::string& rule) {
  Finding finding = finding_of(error, rule);
  finding.where = origin_of(resolved, key);
  finding.subject = key;
  return finding;
}

/// A tokenizer of the user's own must be readable and have no more entries than model.vocab_size.
void check_tokenizer(const config::ResolvedConfig& resolved, Findings& findings) {
  const config::TokenizerConfig& tokenizer = resolved.experiment.tokenizer;
  if (!path_exists(tokenizer.path)) return;
  try {
    const int entries = data::read_tokenizer_file(tokenizer.path).vocab_size();
    if (entries <= resolved.experiment.model.vocab_size) return;
    findings.push_back({Severity::error,
                        "disagreement",
                        origin_of(resolved, "tokenizer.path"),
                        "the tokenizer has " + with_thousands(entries) +
                            " entries, but model.vocab_size is " +
                            with_thousands(resolved.experiment.model.vocab_size),
                        "set model.vocab_size to " + std::to_string(entries),
                        "tokenizer.path"});
  } catch (const Error& error) {
    findings.push_back(finding_at(resolved, "tokenizer.path", error, "unusable-tokenizer"));
  }
}

/// A folder of text must hold some, and none that forge does not read.
void check_text(const config::ResolvedConfig& resolved,
                const std::string& section,
                const config::DataConfig& data,
                Findings& findings) {
  const auto check = [&](const std::string& key, const std::string& path) {
    if (path.empty() || !path_exists(path)) return;  // a missing file is reported by resolving it
    try {
      data::list_text_files(path, data::document_rule(data));
    } catch (const Error& error) {
      findings.push_back(finding_at(resolved, key, error, "missing-file"));
    }
  };
  check(section + ".path", data.path);
  check(section + ".evaluation_path", data.evaluation_path);
}

void check_texts(const config::ResolvedConfig& resolved, Findings& findings) {
  const config::DataConfig& data = resolved.experiment.data;
  check_text(resolved, "data", data, findings);
  for (const auto& [name, source] : data.sources) {
    check_text(resolved, "data.sources." + name, config::data_of_source(data, source), findings);
  }
}

}  // namespace

namespace {

/// A config whose files are here and whose keys are right builds the blocks of its own.
void check_own_blocks(const CheckedConfig& checked,
                      config::ResolvedConfig& resolved,
                      Findings& findings) {
  if (!checked.try_blocks) return;
  try {
    checked.try_blocks(resolved);
  } catch (const Error& error) {
    findings.push_back(finding_of(error, "own-block"));
  }
}

}  // namespace

void check_experiment(const CheckedConfig& checked, Findings& findings) {
  config::ResolveOptions options;
  options.host_environment = checked.host_environment;
  bool wrong = false, hindered = false;
  options.on_problem = [&](const Problem& problem) {
    wrong = wrong || !problem.only_hinders_running();
    hindered = true;
    const auto [rule, severity] = rule_for(problem.kind);
    findings.push_back(finding_of(problem.error, rule));
    findings.back().severity = severity;
  };
  try {
    config::ResolvedConfig resolved = config::resolve(
        config::read_document(
            checked.project, checked.config, checked.parsed, checked.host_environment),
        options);
    if (!hindered) check_own_blocks(checked, resolved, findings);
    if (wrong || !resolved.trains) return;
    check_texts(resolved, findings);
    check_tokenizer(resolved, findings);
  } catch (const Error& error) {
    findings.push_back(finding_of(error, "does-not-resolve"));
  }
}

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
  if (word == "!var") return;
  const std::string name = suffix.substr(1);
  const bool is_container =
      word == "!tuple" || word == "!list" || word == "!dict" || word == "!dlist";
  Finding finding{Severity::warning, "", node.origin, "", "", name};
  if (is_container) {
    finding.rule = "lost-identity";
    finding.message = "the identity '" + name + "' of " + node.tag + " is lost";
    finding.hint = "write " + word + ":" + suffix;
  } else {
    finding.rule = "identity-as-constructor";
    finding.message = node.tag + " names the constructor '" + name + "', not an identity";
    finding.hint = "write " + word + ":CONSTRUCTOR" + suffix;
  }
  findings.push_back(std::move(finding));
}

}  // namespace

void check_graph(const CheckedConfig& checked, Findings& findings) {
  for (const yaml::Node* node : checked.nodes) {
    if (!node->tag.empty()) check_tag(*node, findings);
  }
}

void check_arguments(const CheckedConfig& checked, Findings& findings) {
  for (const project::TemplateArgument& argument : checked.arguments) {
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

namespace {

using jinja::TemplateAnalysis;

const TemplateAnalysis* part_of(const CheckedConfig& checked, const SourceSpan& span) {
  for (const TemplateAnalysis* part : checked.parts) {
    if (part->source == span.source) return part;
  }
  return nullptr;
}

/// Whether nothing suggests that the second was meant to replace the first: both stand, without a
/// condition, in the same block of the same template.
bool looks_accidental(const CheckedConfig& checked,
                      const SourceSpan& first,
                      const SourceSpan& second) {
  if (!first || first.source != second.source || first.line >= second.line) return false;
  const TemplateAnalysis* part = part_of(checked, first);
  if (!part || part->block_at(first.line) != part->block_at(second.line)) return false;
  return !part->is_conditional(first.line) && !part->is_conditional(second.line);
}

void check_entry(const CheckedConfig& checked, const yaml::Entry& entry, Findings& findings) {
  if (starts_with(entry.key, ".")) return;
  const size_t repeats = std::min(entry.repeats, entry.overridden.size());
  for (size_t i = 0; i < repeats; ++i) {
    const SourceSpan& first = entry.overridden[i]->origin;
    if (!looks_accidental(checked, first, entry.value->origin)) continue;
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

void check_repeated_keys(const CheckedConfig& checked, Findings& findings) {
  for (const yaml::Node* node : checked.nodes) {
    for (const yaml::Entry& entry : node->entries) check_entry(checked, entry, findings);
  }
}

}  // namespace forge::lint
