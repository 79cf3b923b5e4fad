#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/source.h"
#include "core/templating/template_file.h"
#include "core/templating/traced_text.h"

namespace forge::templating {

class TemplateCache;

/// A template under the name by which one render asked for it.
class Unit {
 public:
  /// Throws Error for a syntax error; `via` is the use that asked for the template.
  Unit(std::string name, TemplateSourcePtr source, const std::shared_ptr<const SourceSpan>& via)
      : name_(std::move(name)), source_(std::move(source)), parsed_(source_->parsed(via)) {}

  const std::string& name() const { return name_; }
  const std::shared_ptr<const SourceText>& source() const { return source_->text(); }
  const ast::Template& tree() const { return parsed_.tree(); }
  /// Place in the file of an offset into the preprocessed text.
  SourceSpan span(size_t position, std::shared_ptr<const SourceSpan> via) const {
    return parsed_.span(position, std::move(via));
  }

 private:
  std::string name_;
  TemplateSourcePtr source_;
  const ParsedTemplate& parsed_;
};

SourceSpan span_of(const Place& place);

/// The templates of one render and their uses: what a Place refers to. Addresses stay.
struct RenderedUnits {
  std::deque<Unit> units;
  std::deque<Usage> usages;
};

/// Finds the templates of one render by name on a search path. Inline templates exist once the
/// file that holds them was loaded in this render; they go before files, the last file loaded wins,
/// and what was used once stays.
class Loader {
 public:
  /// Files are read through `cache`; the units that were found are kept in `units`. Both outlive
  /// the loader.
  Loader(const std::vector<std::filesystem::path>& search_path,
         TemplateCache& cache,
         std::deque<Unit>& units)
      : search_path_(search_path), cache_(cache), units_(units) {}

  /// The template, or null where there is none; throws Error for what cannot be read or parsed.
  const Unit* find(const std::string& name, const std::shared_ptr<const SourceSpan>& via);
  /// Throws Error that no template of these names is found.
  [[noreturn]] void fail_missing(const std::vector<std::string>& names,
                                 const SourceSpan& where) const;

 private:
  TemplateSourcePtr find_source(const std::string& name);
  std::vector<std::string> known_names() const;

  const std::vector<std::filesystem::path>& search_path_;
  TemplateCache& cache_;
  std::map<std::string, TemplateSourcePtr> inlines_;
  std::deque<Unit>& units_;
  std::map<std::string, const Unit*> used_;  ///< by the name that was asked for
};

}  // namespace forge::templating
