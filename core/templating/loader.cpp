#include "core/templating/loader.h"

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/templating/template_cache.h"

namespace forge::templating {

SourceSpan span_of(const Place& place) {
  return place.usage ? place.usage->unit->span(place.position, place.usage->via) : SourceSpan{};
}

const Unit* Loader::find(const std::string& name, const std::shared_ptr<const SourceSpan>& via) {
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
  const Unit* unit = &units_.emplace_back(name, std::move(source), via);
  used_.emplace(name, unit);
  return unit;
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
  std::string wanted;
  for (const std::string& name : names) wanted += (wanted.empty() ? "'" : ", '") + name + "'";
  if (names.empty()) wanted = "of an empty list";
  std::string folders;
  for (const fs::path& folder : search_path_) {
    std::error_code ignored;
    if (fs::is_directory(folder, ignored))
      folders += (folders.empty() ? "" : ", ") + shown_path(folder);
  }
  std::string message = "no template " + wanted + " on the search path";
  message += folders.empty() ? ", which has no existing folder" : ": " + folders;
  std::string hint = names.empty() ? "" : did_you_mean(names[0], known_names());
  const bool leads_out = !names.empty() && !path_below_folder(names[0]);
  if (leads_out)
    hint = "a template's name is a path below a folder of the search path, without '..'";
  throw Error(message, where, hint);
}

}  // namespace forge::templating
