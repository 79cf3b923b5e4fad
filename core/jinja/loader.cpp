#include "core/jinja/loader.h"

#include <algorithm>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/jinja/lexer.h"
#include "core/jinja/parser.h"
#include "core/python/string_functions.h"
#include "core/python/unicode.h"

namespace forge::jinja {
namespace {

constexpr size_t max_file_size = size_t{16} << 20;

struct Marker {
  size_t begin, end;  ///< with the newlines around it
  std::string name;
};

/// Skips three or more '-' and the white space around them; false where there are fewer.
bool skip_dashes(std::string_view text, size_t& position) {
  position += leading_space(text.substr(position));
  size_t end = position;
  while (end < text.size() && text[end] == '-') ++end;
  if (end - position < 3) return false;
  position = end;
  return true;
}

/// The marker whose first newline stands at `begin`: `\n#\s*-{3,}\s*([\w./]+)\s*-{3,}\n`.
std::optional<Marker> marker_at(std::string_view text, size_t begin) {
  size_t position = begin + 1;
  if (position >= text.size() || text[position] != '#') return std::nullopt;
  ++position;
  if (!skip_dashes(text, position)) return std::nullopt;
  position += leading_space(text.substr(position));
  const size_t name = position;
  for (size_t next = name; next < text.size(); position = next) {
    const int32_t c = next_code_point(text, next);
    if (!is_word(c) && c != '.' && c != '/') break;
  }
  const size_t name_end = position;
  if (name_end == name || !skip_dashes(text, position)) return std::nullopt;
  if (position >= text.size() || text[position] != '\n') return std::nullopt;
  return Marker{begin, position + 1, std::string(text.substr(name, name_end - name))};
}

std::optional<Marker> next_marker(std::string_view text, size_t from) {
  for (size_t at = text.find("\n#", from); at != std::string_view::npos;
       at = text.find("\n#", at + 1)) {
    if (auto marker = marker_at(text, at)) return marker;
  }
  return std::nullopt;
}

/// Line of the file on which the character at `offset` stands.
int line_of(std::string_view file, size_t offset) {
  return 1 + static_cast<int>(std::count(
                 file.begin(), file.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

void require_utf8(const std::string& text, const std::shared_ptr<const SourceText>& source) {
  const size_t bad = find_invalid_utf8(text);
  if (bad == std::string::npos) return;
  throw Error("the template is not UTF-8 text", make_span(source, line_of(text, bad), 0));
}

/// Place of the name in a part's marker.
SourceSpan name_span(const TemplatePart& part, const std::string& file_name) {
  auto source = std::make_shared<SourceText>();
  source->name = file_name;
  source->text = part.marker;
  source->first_line = part.marker_line;
  const size_t name = part.marker.find(part.inline_name);
  const size_t newline = part.marker.rfind('\n', name);
  const size_t line_begin = newline == std::string::npos ? 0 : newline + 1;
  const int line = part.marker_line + line_of(part.marker, name) - 1;
  return make_span(std::move(source), line, static_cast<int>(name - line_begin) + 1);
}

}  // namespace

std::vector<TemplatePart> split_inline_templates(std::string_view file) {
  std::vector<TemplatePart> parts;
  TemplatePart part;
  size_t begin = 0;
  int line = 1;  // on which `begin` stands
  while (true) {
    const std::optional<Marker> marker = next_marker(file, begin);
    part.text = file.substr(begin, marker ? marker->begin - begin : std::string_view::npos);
    parts.push_back(part);
    if (!marker) return parts;
    part.inline_name = marker->name;
    part.marker = file.substr(marker->begin + 1, marker->end - marker->begin - 2);
    part.marker_line = line + line_of(part.text, part.text.size());
    part.first_line = part.marker_line + line_of(part.marker, part.marker.size());
    line = part.first_line;
    begin = marker->end;
  }
}

ParsedTemplate::ParsedTemplate(std::shared_ptr<const SourceText> source,
                               const std::shared_ptr<const SourceSpan>& via)
    : source_(std::move(source)), preprocessed_(preprocess_lines(source_->text)) {
  text_ = preprocessed_.text;
  if (ends_with(text_, "\n")) text_.remove_suffix(1);
  line_starts_.push_back(0);
  for (size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
  try {
    tree_ = parse_template(text_);
    find_unassigned_names(tree_);
  } catch (const SyntaxError& error) {
    throw Error(error.what(), span(error.position, via), error.hint);
  }
}

SourceSpan ParsedTemplate::span(size_t position, std::shared_ptr<const SourceSpan> via) const {
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), position);
  const auto index = static_cast<size_t>(next - line_starts_.begin()) - 1;
  const LineOrigin& origin = preprocessed_.lines[std::min(index, preprocessed_.lines.size() - 1)];
  const int line = source_->first_line + origin.line - 1;
  const int column = static_cast<int>(position - line_starts_[index]) + 1 + origin.column_shift;
  return {source_, line, std::min(std::max(column, 1), origin.length + 1), std::move(via)};
}

const ParsedTemplate& TemplateSource::parsed(const std::shared_ptr<const SourceSpan>& via) const {
  // Not std::call_once, whose function should not throw, as parsing does.
  const std::lock_guard lock(mutex_);
  if (!parsed_) parsed_ = std::make_unique<const ParsedTemplate>(text_, via);
  return *parsed_;
}

TemplateFile read_template_file(const fs::path& path) {
  auto whole = std::make_shared<SourceText>();
  whole->name = shown_path(path);
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (!error && size > max_file_size) {
    throw Error("the template '" + whole->name + "' is larger than " + human_bytes(max_file_size));
  }
  whole->text = with_line_feeds(read_file(path));
  require_utf8(whole->text, whole);
  TemplateFile file;
  for (TemplatePart& part : split_inline_templates(whole->text)) {
    auto text = std::make_shared<SourceText>();
    text->name = whole->name;
    text->inline_name = part.inline_name;
    text->text = std::move(part.text);
    text->first_line = part.first_line;
    if (part.inline_name.empty()) {
      file.own = std::make_shared<const TemplateSource>(std::move(text));
    } else {
      file.inlines.push_back(
          std::make_shared<const TemplateSource>(std::move(text), name_span(part, whole->name)));
    }
  }
  return file;
}

std::optional<std::string> path_below_folder(const std::string& name) {
  if (name.find('\0') != std::string::npos) return std::nullopt;
  std::string path;
  for (const std::string& segment : split(name, '/')) {
    if (segment == "..") return std::nullopt;
    if (!segment.empty() && segment != ".") path += "/" + segment;
  }
  if (path.empty()) return std::nullopt;
  return path.substr(1);
}

const TemplateFile* TemplateCache::find(const fs::path& folder, const std::string& below) {
  const std::string path = folder.native() + "/" + below;
  CacheEntry* entry = nullptr;
  {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<CacheEntry>& known = entries_[path];
    if (!known) known = std::make_unique<CacheEntry>();
    entry = known.get();
  }
  const std::lock_guard lock(entry->mutex);
  if (entry->is_loaded) return entry->file.get();
  if (is_seen_file(path)) {
    entry->file = std::make_unique<const TemplateFile>(read_template_file(path));
  }
  entry->is_loaded = true;
  return entry->file.get();
}

const TemplateFile* TemplateCache::find(const std::vector<fs::path>& search_path,
                                        const std::string& name) {
  const std::optional<std::string> below = path_below_folder(name);
  if (!below) return nullptr;
  for (const fs::path& folder : search_path) {
    if (const TemplateFile* file = find(folder, *below)) return file;
  }
  return nullptr;
}

SourceSpan span_of(const Place& place) {
  return place.use ? place.use->instance->span(place.position, place.use->via) : SourceSpan{};
}

const TemplateInstance* Loader::find(const std::string& name,
                                     const std::shared_ptr<const SourceSpan>& via) {
  const auto known = used_.find(name);
  if (known != used_.end()) return known->second;
  TemplateSourcePtr source;
  try {
    source = find_source(name);
  } catch (const Error& error) {
    if (error.where()) throw;
    throw Error(error.message(), via ? *via : SourceSpan{}, error.hint(), error.exit_code());
  }
  if (!source) return nullptr;
  const TemplateInstance* instance = &instances_.emplace_back(name, std::move(source), via);
  used_.emplace(name, instance);
  return instance;
}

TemplateSourcePtr Loader::find_source(const std::string& name) {
  const auto found = inlines_.find(name);
  if (found != inlines_.end()) return found->second;
  const TemplateFile* file = cache_.find(search_path_, name);
  if (!file) return nullptr;
  for (const TemplateSourcePtr& source : file->inlines) {
    inlines_[source->text()->inline_name] = source;
  }
  return file->own;
}

std::vector<std::string> Loader::known_names() const {
  constexpr size_t enough = 5000;  // names for a hint; a huge folder need not be walked to its end
  std::vector<std::string> names;
  for (const auto& [name, source] : inlines_) names.push_back(name);
  for (const fs::path& folder : search_path_) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator entry(folder, options, error), end;
         !error && entry != end;
         entry.increment(error)) {
      if (names.size() >= enough) return names;
      std::error_code ignored;
      if (entry->is_regular_file(ignored))
        names.push_back(entry->path().lexically_relative(folder).generic_string());
    }
  }
  return names;
}

void Loader::fail_missing(const std::vector<std::string>& names, const SourceSpan& where) const {
  const std::string wanted =
      names.empty() ? "of an empty list" : "'" + forge::join(names, "', '") + "'";
  std::string folders;
  for (const fs::path& folder : search_path_) {
    if (is_folder(folder)) folders += (folders.empty() ? "" : ", ") + shown_path(folder);
  }
  std::string message = "no template " + wanted + " on the search path";
  message += folders.empty() ? ", which has no existing folder" : ": " + folders;
  std::string hint = names.empty() ? "" : did_you_mean(names[0], known_names());
  const bool leads_out = !names.empty() && !path_below_folder(names[0]);
  if (leads_out)
    hint = "a template's name is a path below a folder of the search path, without '..'";
  throw Error(message, where, hint);
}

}  // namespace forge::jinja
