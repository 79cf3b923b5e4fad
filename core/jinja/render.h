#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/jinja/host_environment.h"

namespace forge::jinja {

/// A string, integer, number, bool or none, or a list of such, that the caller passes to a template
/// by name.
struct Variable {
  enum class Kind { none, boolean, integer, real, string, list } kind = Kind::none;
  bool boolean = false;
  int64_t integer = 0;
  double real = 0;
  std::string string;
  std::vector<Variable> items = {};
};
using Variables = std::map<std::string, Variable>;

struct RenderRequest {
  /// Folders; the first hit wins and missing folders are skipped.
  std::vector<std::filesystem::path> search_path;
  std::string template_name;  ///< relative to the search path
  Variables variables;        ///< shadow the built-in globals
  std::string project_dir;
  std::string workspace_root;
  HostEnvironment host_environment;
};

/// Where a segment of an output line was written.
struct OutputSegment {
  int column = 1;         ///< 1-based column of the output line at which this segment begins
  SourceSpan span;        ///< place in the template that wrote it
  bool verbatim = false;  ///< template text: its columns run in step with the output's
};

/// A template that was read during a render, in order of loading.
struct LoadedTemplate {
  std::string name;
  std::shared_ptr<const SourceText> source;
  /// Name of the template whose extends, include or import named it; "" for the first.
  std::string loaded_by;
  std::string relation;  ///< "", "extends", "include", "import"
};

class SourceMap;
class TemplateCache;

struct RenderedText {
  std::string text;
  std::vector<LoadedTemplate> templates;
  /// Which template wrote which segment of `text`, computed on demand; null: unknown.
  std::shared_ptr<const SourceMap> map;

  /// Place in a template of a 1-based line and column of `text`.
  SourceSpan origin(int line, int column) const;
  /// The segments of every line of `text`, left to right.
  std::vector<std::vector<OutputSegment>> lines() const;
};

/// Renders one template in an environment of its own (nothing leaks from one render to the next).
/// Throws Error with the place in the template.
RenderedText render(const RenderRequest& request);
/// The same for one of many renders: template files are read and parsed once for all that share
/// the cache, on any thread.
RenderedText render(const RenderRequest& request, TemplateCache& cache);

}  // namespace forge::jinja
