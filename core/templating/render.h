#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/source.h"
#include "core/templating/python_versions.h"

namespace forge::templating {

/// What templates see of the machine. Pinned in tests, so that a rendering is reproducible.
struct Surroundings {
  double unix_time = 0;  ///< what now(), isotime(), filetime() … show
  std::string working_directory;
  std::string home_directory;
  std::string host_name;
  std::string library_dir;  ///< forge's own templates, as forge_library_dir; "": not known
  /// The user's folders by the XDG specification; "" is the usual place below the home directory.
  std::string config_home, data_home, cache_home;
  /// Called when a template reads `versions`; null: there is no Python.
  std::function<PythonVersions()> python_versions;
  /// Of this process now; SOURCE_DATE_EPOCH, where set, gives the time.
  static Surroundings of_this_machine();
};

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
  Surroundings surroundings;
};

/// Where a stretch of an output line was written.
struct OutputOrigin {
  int column = 1;         ///< 1-based column of the output line at which this stretch begins
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

class OutputMap;
class TemplateCache;

struct RenderedText {
  std::string text;
  std::vector<LoadedTemplate> templates;
  /// Who wrote which stretch of `text`; worked out only where somebody asks. Null: nothing is
  /// known.
  std::shared_ptr<const OutputMap> map;

  /// Place in a template of a 1-based line and column of `text`.
  SourceSpan origin(int line, int column) const;
  /// The stretches of every line of `text`, left to right.
  std::vector<std::vector<OutputOrigin>> lines() const;
};

/// Renders one template in an environment of its own (nothing leaks from one render to the next).
/// Throws Error with the place in the template.
RenderedText render(const RenderRequest& request);
/// The same for one of many renders: template files are read and parsed once for all that share
/// the cache, on any thread.
RenderedText render(const RenderRequest& request, TemplateCache& cache);

}  // namespace forge::templating
