#include "core/config/paths.h"

#include <unistd.h>

#include <cstdlib>

#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/config/complaint.h"

namespace forge::config {

fs::path meant_path(const Setting& setting, const std::string& path, const PathBases& bases) {
  const char* home = std::getenv("HOME");
  if (starts_with(path, "~/") && home) return fs::path(home) / path.substr(2);
  if (starts_with(path, corpora_prefix)) {
    return corpora_dir() / path.substr(std::string_view(corpora_prefix).size());
  }
  const bool typed = setting.layer == command_line_layer;
  return ((typed ? bases.working_directory : bases.project_folder) / path).lexically_normal();
}

bool is_json_lines(const fs::path& path) {
  const bool compressed = path.extension() == ".gz" || path.extension() == ".zst";
  const fs::path extension = (compressed ? path.stem() : path).extension();
  return extension == ".jsonl" || extension == ".ndjson";
}

void complete_path(Draft& draft,
                   const std::string& key,
                   std::string& path,
                   const PathBases& bases) {
  if (path.empty()) return;
  const Setting& setting = draft.origins.at(key).set_by;
  const fs::path meant = meant_path(setting, path, bases);
  const bool is_public = starts_with(path, corpora_prefix);
  path = meant.string();
  std::error_code ignored;
  if (!fs::exists(meant, ignored)) {
    if (is_public) {
      const std::string name = meant.parent_path().filename().string();
      throw complaint(
          draft, {key}, "no file " + shown_path(meant), "'forge data get " + name + "' gets it");
    }
    throw complaint(draft,
                    {key},
                    "no file " + shown_path(meant),
                    setting.layer == command_line_layer
                        ? "a path on the command line is relative to the current folder"
                        : "a path in a template is relative to its project's folder");
  }
  if (::access(meant.c_str(), R_OK) != 0) {
    throw complaint(draft, {key}, "no permission to read " + shown_path(meant));
  }
}

}  // namespace forge::config
