#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/data_sources.h"
#include "core/config/resolve.h"
#include "core/data/corpus/text_files.h"
#include "core/data/tokenizer_file.h"
#include "core/lint/rules.h"

namespace forge::lint {
namespace {

using config::Problem;

const char* rule_of(Problem::Kind kind) {
  switch (kind) {
    case Problem::Kind::unknown_key: return "unknown-key";
    case Problem::Kind::wrong_value: return "wrong-value";
    case Problem::Kind::missing_key: return "missing-key";
    case Problem::Kind::disagreement: return "disagreement";
    case Problem::Kind::missing_file: return "missing-file";
    case Problem::Kind::unsupported: return "unsupported";
  }
  return "";
}

/// The config may be as meant and this machine the wrong one.
Severity severity_of(Problem::Kind kind) {
  switch (kind) {
    case Problem::Kind::missing_file: return Severity::warning;
    case Problem::Kind::unsupported: return Severity::note;
    default: return Severity::error;
  }
}

SourceSpan origin_of(const config::ResolvedConfig& resolved, const std::string& key) {
  return resolved.origins.at(key).set_by.origin;
}

/// A tokenizer of the user's own: that it can be read, and has as many entries as the config says.
void check_tokenizer(const config::ResolvedConfig& resolved, Findings& findings) {
  const config::TokenizerConfig& tokenizer = resolved.experiment.tokenizer;
  std::error_code ignored;
  const bool is_read = fs::exists(tokenizer.path, ignored);
  if (!is_read) return;
  const SourceSpan where = origin_of(resolved, "tokenizer.path");
  try {
    const int entries = data::read_tokenizer_file(tokenizer.path).vocab_size();
    if (entries <= resolved.experiment.model.vocab_size) return;
    findings.push_back({Severity::error,
                        "disagreement",
                        where,
                        "the tokenizer has " + with_thousands(entries) +
                            " entries, but model.vocab_size is " +
                            with_thousands(resolved.experiment.model.vocab_size),
                        "set model.vocab_size to " + std::to_string(entries),
                        "tokenizer.path"});
  } catch (const Error& error) {
    findings.push_back({Severity::error,
                        "unusable-tokenizer",
                        where,
                        error.message(),
                        error.hint(),
                        "tokenizer.path"});
  }
}

/// A folder of text must hold some, and none that forge does not read.
void check_text(const config::ResolvedConfig& resolved,
                const std::string& section,
                const config::DataConfig& data,
                Findings& findings) {
  const auto check = [&](const std::string& key, const std::string& path) {
    std::error_code ignored;
    if (path.empty() || !fs::exists(path, ignored)) return;  // resolving it has said that
    try {
      data::list_text_files(path, data::document_rule(data));
    } catch (const Error& error) {
      findings.push_back({Severity::error,
                          "missing-file",
                          origin_of(resolved, key),
                          error.message(),
                          error.hint(),
                          key});
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

void check_experiment(const Subject& subject, Findings& findings) {
  config::ResolveOptions options;
  options.surroundings = subject.surroundings;
  options.variables = subject.variables;
  bool wrong = false;
  options.on_problem = [&](const Problem& problem) {
    wrong = wrong || !problem.only_hinders_running();
    Finding finding = finding_of(problem.error, rule_of(problem.kind));
    finding.severity = severity_of(problem.kind);
    findings.push_back(std::move(finding));
  };
  try {
    const config::ResolvedConfig resolved =
        config::resolve(subject.project, subject.config.name, options);
    if (wrong || !resolved.trains) return;
    check_texts(resolved, findings);
    check_tokenizer(resolved, findings);
  } catch (const Error& error) {
    findings.push_back(finding_of(error, "does-not-resolve"));
  }
}

}  // namespace forge::lint
