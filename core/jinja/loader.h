#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/jinja/ast.h"
#include "core/jinja/line_preprocessor.h"
#include "core/python/traced_text.h"

namespace forge::jinja {

/// A part of a template file: what stands before the first marker `#--- NAME ---`, or between two.
struct TemplatePart {
  std::string inline_name;  ///< "" for the file's own template
  std::string text;
  int first_line = 1;
  std::string marker;   ///< the marker in front of it, without the newlines around; mostly one line
  int marker_line = 0;  ///< on which `marker` begins
};

/// Cuts a file (newlines normalised) at its markers of inline templates.
std::vector<TemplatePart> split_inline_templates(std::string_view file);

/// One template, parsed. Immutable: renders and threads share it.
class ParsedTemplate {
 public:
  /// Throws Error for a syntax error; `via` is the use that asked for the template.
  ParsedTemplate(std::shared_ptr<const SourceText> source,
                 const std::shared_ptr<const SourceSpan>& via);
  ParsedTemplate(const ParsedTemplate&) = delete;
  ParsedTemplate& operator=(const ParsedTemplate&) = delete;

  const ast::Template& tree() const { return tree_; }
  /// Place in the file of an offset into the preprocessed text.
  SourceSpan span(size_t position, std::shared_ptr<const SourceSpan> via) const;

 private:
  std::shared_ptr<const SourceText> source_;
  PreprocessedText preprocessed_;
  std::string_view text_;            ///< without the final newline
  std::vector<size_t> line_starts_;  ///< offsets into text_
  ast::Template tree_;
};

/// One template of a file as it was read. It is parsed when it is first used, by whichever thread.
class TemplateSource {
 public:
  explicit TemplateSource(std::shared_ptr<const SourceText> text, SourceSpan marker = {})
      : text_(std::move(text)), marker_(std::move(marker)) {}

  const std::shared_ptr<const SourceText>& text() const { return text_; }
  /// Place of an inline template's name in its marker; unknown for a file's own template.
  const SourceSpan& marker() const { return marker_; }
  /// Throws Error for a syntax error, in each call, with the use that led to the template.
  const ParsedTemplate& parsed(const std::shared_ptr<const SourceSpan>& via) const;

 private:
  std::shared_ptr<const SourceText> text_;
  SourceSpan marker_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const ParsedTemplate> parsed_;  ///< null until it is used
};
using TemplateSourcePtr = std::shared_ptr<const TemplateSource>;

/// A file with its inline templates.
struct TemplateFile {
  TemplateSourcePtr own;
  std::vector<TemplateSourcePtr> inlines;  ///< in order; each text knows its name
};

/// Reads a file. Throws Error for what cannot be read, is too large or is not UTF-8.
TemplateFile read_template_file(const std::filesystem::path& path);

/// The path below a search folder that a template's name stands for; nothing for a name that leads
/// out of it.
std::optional<std::string> path_below_folder(const std::string& name);

/// Template files by path: each is searched and read once, and a template in it parsed once.
/// Renders that share a cache see the files as they were then. Inline templates are per render (see
/// Loader). Any thread may call.
class TemplateCache {
 public:
  TemplateCache() = default;
  TemplateCache(const TemplateCache&) = delete;
  TemplateCache& operator=(const TemplateCache&) = delete;

  /// The file at a path below a folder, or null where there is none; it lives as long as the cache.
  /// Throws Error for one that cannot be read.
  const TemplateFile* find(const std::filesystem::path& folder, const std::string& below);
  /// The first file of a template's name on a search path, or null.
  const TemplateFile* find(const std::vector<std::filesystem::path>& search_path,
                           const std::string& name);

 private:
  struct CacheEntry {
    std::mutex mutex;
    bool is_loaded = false;
    std::unique_ptr<const TemplateFile> file;  ///< null: there is none
  };

  std::mutex mutex_;  ///< of entries_ alone: files are read side by side
  std::unordered_map<std::string, std::unique_ptr<CacheEntry>> entries_;
};

/// A template under the name by which one render asked for it.
class TemplateInstance {
 public:
  /// Throws Error for a syntax error; `via` is the use that asked for the template.
  TemplateInstance(std::string name,
                   TemplateSourcePtr source,
                   const std::shared_ptr<const SourceSpan>& via)
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

/// A template in one use: the same template may be reached by several includes.
struct TemplateUse {
  const TemplateInstance* instance = nullptr;
  std::shared_ptr<const SourceSpan> via;  ///< the extends, include or import that led to it
};

SourceSpan span_of(const Place& place);

/// The templates of one render and their uses: what a Place refers to. Addresses stay.
struct RenderedTemplates {
  std::deque<TemplateInstance> instances;
  std::deque<TemplateUse> uses;
};

/// Finds the templates of one render by name on a search path. Inline templates exist once the
/// file that holds them was loaded in this render; they go before files, the last file loaded wins,
/// and what was used once stays.
class Loader {
 public:
  /// Files are read through `cache`; the instances that were found are kept in `instances`. Both
  /// outlive the loader.
  Loader(const std::vector<std::filesystem::path>& search_path,
         TemplateCache& cache,
         std::deque<TemplateInstance>& instances)
      : search_path_(search_path), cache_(cache), instances_(instances) {}

  /// The template, or null where there is none; throws Error for what cannot be read or parsed.
  const TemplateInstance* find(const std::string& name,
                               const std::shared_ptr<const SourceSpan>& via);
  /// Throws Error that no template of these names is found.
  [[noreturn]] void fail_missing(const std::vector<std::string>& names,
                                 const SourceSpan& where) const;

 private:
  TemplateSourcePtr find_source(const std::string& name);
  std::vector<std::string> known_names() const;

  const std::vector<std::filesystem::path>& search_path_;
  TemplateCache& cache_;
  std::map<std::string, TemplateSourcePtr> inlines_;
  std::deque<TemplateInstance>& instances_;
  std::map<std::string, const TemplateInstance*> used_;  ///< by the requested name
};

}  // namespace forge::jinja
