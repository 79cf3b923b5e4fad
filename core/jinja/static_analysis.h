#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/jinja/loader.h"

/// What can be said of a template file from its text alone, without rendering it.
namespace forge::jinja {

/// A mention of other templates.
struct Reference {
  enum class Kind { extends, include, import, from_import };
  Kind kind = Kind::include;
  /// Names that the text spells out: one, or the candidates of a list or of an inline `if`. Empty
  /// where an expression gives the name.
  std::vector<std::string> names;
  bool is_conditional = false;  ///< stands in an `if` or a loop: it may not take place
  bool ignores_missing = false;
  SourceSpan span;

  bool is_expression() const { return names.empty(); }
};

/// "extends", "include", "import", "from"
const char* name_of(Reference::Kind kind);

struct BlockInfo {
  std::string name;
  std::string enclosing;  ///< name of the block of the same template around it, ""
  bool required = false;
  bool uses_super = false;
  SourceSpan span;
  int last_line = 0;  ///< of the file, on which its body ends
};

/// A name that the template sets. Paths are "x", or "ns.x" for an attribute of a namespace.
struct VariableWrite {
  enum class Kind { assignment, parameter, loop, with, macro, import };
  std::string path;
  Kind kind = Kind::assignment;
  bool makes_namespace = false;  ///< `set x = namespace(…)`
  SourceSpan span;
};

/// A name that the template reads, by path as above; whether it is a global is not known here.
struct VariableRead {
  std::string path;
  /// Whether an undefined value is not an error here: in `x | default(…)`, `x | toyaml(…)`,
  /// `x is defined` and below `if x is defined`.
  bool is_optional = false;
  SourceSpan span;
};

/// Lines of the file, both ends included.
struct LineRange {
  int first = 0, last = 0;
  bool contains(int line) const { return first <= line && line <= last; }
};

/// Facts of one template: a file's own, or one of its inline templates. All in order of the text.
struct TemplateAnalysis {
  std::shared_ptr<const SourceText> source;
  std::string inline_name;       ///< "" for the file's own template
  SourceSpan marker;             ///< the inline template's name in its marker, else unknown
  std::optional<Error> problem;  ///< a syntax error: nothing else is known of this template
  std::vector<Reference> references;
  std::vector<BlockInfo> blocks;
  std::vector<VariableWrite> writes;
  std::vector<VariableRead> reads;
  std::vector<LineRange> conditionals;  ///< bodies of `if` and `for`

  /// The first `extends` by a name that the text spells out, or null.
  const Reference* parent() const;
  /// The innermost block around a line, or null.
  const BlockInfo* block_at(int line) const;
  bool is_conditional(int line) const;
};

TemplateAnalysis analyze_template(const TemplateSource& source);
/// The file's own template, then its inline ones in order.
std::vector<TemplateAnalysis> analyze_template(const TemplateFile& file);

}  // namespace forge::jinja
