#include "core/inspect/template_list.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/templating/survey.h"

namespace forge::inspect {
namespace {

bool is_template(const fs::path& file) {
  static const std::set<std::string> extensions = {".yaml", ".yml", ".jinja", ".jinja2", ".j2"};
  return extensions.count(file.extension().string()) == 1;
}

/// Names of the template files below a folder, sorted.
std::vector<std::string> names_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator entry(
      folder, fs::directory_options::skip_permission_denied, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    const bool is_hidden = starts_with(entry->path().filename().string(), ".");
    if (is_hidden) entry.disable_recursion_pending();
    std::error_code ignored;
    if (is_hidden || !is_template(entry->path()) || !entry->is_regular_file(ignored)) continue;
    names.push_back(entry->path().lexically_relative(folder).generic_string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

void add_parts(const std::string& name, const fs::path& file, std::vector<ListedTemplate>& list) {
  for (const templating::PartSurvey& part : survey(templating::read_template_file(file))) {
    ListedTemplate listed;
    listed.is_inline = !part.inline_name.empty();
    listed.name = listed.is_inline ? part.inline_name : name;
    listed.file = file;
    listed.line = listed.is_inline ? part.source->first_line : 1;
    listed.problem = part.problem;
    if (const templating::Reference* parent = part.parent()) {
      listed.extends = parent->names.front();
    } else {
      listed.is_dynamic =
          std::any_of(part.references.begin(),
                      part.references.end(),
                      [](const templating::Reference& reference) {
                        return reference.kind == templating::Reference::Kind::extends;
                      });
    }
    list.push_back(std::move(listed));
  }
}

std::string relative_to(const fs::path& file, const fs::path& here) {
  return fs::absolute(file).lexically_normal().lexically_relative(here).generic_string();
}

/// Puts every template below the one that it extends.
class Forest {
 public:
  Forest(const std::vector<ListedTemplate>& templates, const fs::path& here)
      : templates_(templates), here_(here), children_(templates.size()) {
    for (size_t i = 0; i < templates.size(); ++i) {
      const auto parent = parent_of(i);
      if (parent) {
        children_[*parent].push_back(i);
      } else {
        roots_.push_back(i);
      }
    }
  }

  std::string write() {
    for (const size_t root : roots_) write(root, 0);
    // What is left extends itself over others.
    for (size_t i = 0; i < templates_.size(); ++i) write(i, 0);
    return std::move(text_);
  }

 private:
  /// The template that a name means where one extends it: inline ones of the same file go first.
  std::optional<size_t> parent_of(size_t index) const {
    const ListedTemplate& child = templates_[index];
    if (child.extends.empty()) return std::nullopt;
    std::optional<size_t> found;
    for (size_t i = 0; i < templates_.size(); ++i) {
      const ListedTemplate& candidate = templates_[i];
      if (i == index || candidate.name != child.extends || candidate.is_shadowed) continue;
      if (candidate.is_inline && candidate.file == child.file) return i;
      const bool is_better = !found || (templates_[*found].is_inline && !candidate.is_inline);
      if (is_better) found = i;
    }
    return found;
  }

  void write(size_t index, size_t level) {
    if (!written_.insert(index).second) return;
    const ListedTemplate& listed = templates_[index];
    text_ += std::string(4 * level, ' ') + "- [" + listed.name + "](" +
             relative_to(listed.file, here_) + ")" + notes_on(listed, level) + "\n";
    for (const size_t child : children_[index]) write(child, level + 1);
  }

  static std::string notes_on(const ListedTemplate& listed, size_t level) {
    std::vector<std::string> notes;
    if (listed.is_inline) notes.push_back("inline at line " + std::to_string(listed.line));
    if (listed.is_shadowed) notes.push_back("shadowed by a folder before");
    if (listed.is_dynamic) notes.push_back("extends what an expression names");
    if (level == 0 && !listed.extends.empty()) notes.push_back("extends " + listed.extends);
    if (listed.problem) notes.push_back("broken: " + listed.problem->message());
    return notes.empty() ? "" : " (" + join(notes, "; ") + ")";
  }

  const std::vector<ListedTemplate>& templates_;
  const fs::path& here_;
  std::vector<std::vector<size_t>> children_;
  std::vector<size_t> roots_;
  std::set<size_t> written_;
  std::string text_;
};

}  // namespace

std::vector<ListedTemplate> list_templates(const std::vector<fs::path>& search_path) {
  std::vector<ListedTemplate> list;
  std::set<std::string> known;
  std::set<fs::path> seen;
  for (const fs::path& folder : search_path) {
    for (const std::string& name : names_below(folder)) {
      const fs::path file = folder / name;
      if (!seen.insert(file).second) continue;
      const size_t first = list.size();
      try {
        add_parts(name, file, list);
      } catch (const Error& error) {
        ListedTemplate broken;
        broken.name = name;
        broken.file = file;
        broken.problem = error;
        list.push_back(std::move(broken));
      }
      list[first].is_shadowed = !known.insert(name).second;
    }
  }
  return list;
}

std::string list_as_files(const std::vector<ListedTemplate>& templates, const fs::path& here) {
  std::string text;
  for (const ListedTemplate& listed : templates) {
    if (!listed.is_inline) text += relative_to(listed.file, here) + "\n";
  }
  return text;
}

std::string list_as_markdown(const std::vector<ListedTemplate>& templates, const fs::path& here) {
  return Forest(templates, here).write();
}

nlohmann::ordered_json to_json(const std::vector<ListedTemplate>& templates) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ListedTemplate& listed : templates) {
    nlohmann::ordered_json object = {{"name", listed.name},
                                     {"file", listed.file.generic_string()},
                                     {"line", listed.line},
                                     {"inline", listed.is_inline},
                                     {"extends", listed.extends},
                                     {"dynamic", listed.is_dynamic},
                                     {"shadowed", listed.is_shadowed}};
    if (listed.problem) object["problem"] = describe(*listed.problem);
    list.push_back(std::move(object));
  }
  return list;
}

}  // namespace forge::inspect
