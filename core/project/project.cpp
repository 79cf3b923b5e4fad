#include "core/project/project.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/folders.h"
#include "core/base/text.h"
#include "core/yaml/graph/read.h"
#include "core/yaml/yaml.h"

namespace forge::project {
namespace {

using jinja::HostEnvironment;
using jinja::RenderedText;

fs::path user_templates(const HostEnvironment& host_environment) {
  const char* config_home = std::getenv("XDG_CONFIG_HOME");
  const fs::path base = config_home && *config_home
                            ? fs::path(config_home)
                            : fs::path(host_environment.home_directory) / ".config";
  return base / "forgather" / "templates";
}

std::string entry_text(const yaml::Entry& entry) {
  if (entry.value->is_null()) return "";
  if (!entry.value->is_scalar()) {
    throw Error("'" + entry.key + "' is " + describe_kind(*entry.value),
                entry.value->origin,
                "give one line of text");
  }
  return entry.value->text;
}

/// Relative folders are taken from the project's own, whatever the current folder is.
std::vector<fs::path> folders_of(const yaml::Entry& entry, const fs::path& project_folder) {
  const yaml::Node& value = *entry.value;
  if (!value.is_sequence()) {
    throw Error(
        "'" + entry.key + "' is " + describe_kind(value), value.origin, "give a list of folders");
  }
  std::vector<fs::path> folders;
  for (const yaml::NodePtr& item : value.items) {
    if (item->kind != yaml::Node::Kind::string) {
      throw Error("a folder of '" + entry.key + "' is " + describe_kind(*item), item->origin);
    }
    folders.push_back((project_folder / item->text).lexically_normal());
  }
  return folders;
}

void read_key(const yaml::Entry& entry, Project& project) {
  if (entry.key == "name") {
    const std::string name = entry_text(entry);
    if (!name.empty()) project.name = name;
  } else if (entry.key == "description") {
    project.description = entry_text(entry);
  } else if (entry.key == "searchdir") {
    if (!entry.value->is_null()) project.search_path = folders_of(entry, project.folder);
  } else if (entry.key == "config_prefix") {
    if (!entry.value->is_null()) project.config_prefix = entry_text(entry);
  } else if (entry.key == "default_config") {
    project.default_config = without_yaml(entry_text(entry));
  } else if (entry.key != "system_path") {  // Forgather's own: where it looks for Python modules
    project.unknown_keys.push_back({entry.key, entry.key_origin});
  }
}

bool is_yaml(const fs::path& file) { return file.extension() == ".yaml"; }

void find_config_files(Project& project) {
  std::map<std::string, Config> found;
  for (const fs::path& folder : project.search_path) {
    const fs::path top = folder / project.config_prefix;
    for (const std::string& below : files_below(top, is_yaml)) {
      const std::string name = without_yaml(below);
      if (!is_plain_name(name)) {
        project.misnamed_configs.push_back(top / below);
        continue;
      }
      const fs::path template_name = (fs::path(project.config_prefix) / below).lexically_normal();
      found.emplace(name, Config{name, template_name.generic_string(), top / below});
    }
  }
  std::vector<Config> configs;
  for (auto& [name, config] : found) configs.push_back(std::move(config));
  project.configs = ConfigList(std::move(configs));
}

/// A summary tells no origins, and they cost as much as the rest; but an error has its place.
yaml::NodePtr parse_without_origins(const Project& project, const RenderedText& rendered) {
  const auto no_origin = [](int, int) { return SourceSpan(); };
  try {
    return yaml::parse(rendered.text, no_origin, project.shared->sections);
  } catch (const Error&) {
    return parse_rendered(project, rendered);
  }
}

std::string scalar_under(const yaml::Node& mapping, std::string_view key) {
  const yaml::Node* value = mapping.find(key);
  return value && value->is_scalar() && !value->is_null() ? value->text : "";
}

Project read_project(const Workspace& workspace,
                     const fs::path& folder,
                     const HostEnvironment& host_environment,
                     std::shared_ptr<RenderCache> shared) {
  Project project;
  project.shared = std::move(shared);
  project.folder = folder;
  project.workspace_root = workspace.root;
  project.path = project.folder.lexically_relative(workspace.root).generic_string();
  project.name = project.folder.filename().string();
  project.search_path = {project.folder / "templates"};
  const yaml::NodePtr root =
      parse_rendered(project, render_meta(project, workspace, host_environment));
  if (!root->is_mapping() && !root->is_null()) {
    throw Error("meta.yaml is " + describe_kind(*root), root->origin, "it is a mapping of keys");
  }
  for (const yaml::Entry& entry : root->entries) read_key(entry, project);
  find_config_files(project);
  if (project.default_config.empty() && !project.configs.empty()) {
    project.default_config = project.configs.front().name;
  }
  return project;
}

}  // namespace

std::vector<std::string> files_below(const fs::path& folder, bool (*is_wanted)(const fs::path&)) {
  std::vector<std::string> names;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (const fs::recursive_directory_iterator end; !error && entry != end; entry.increment(error)) {
    const bool is_hidden = starts_with(entry->path().filename().string(), ".");
    if (is_hidden) entry.disable_recursion_pending();
    std::error_code ignored;
    if (is_hidden || !is_wanted(entry->path()) || !entry->is_regular_file(ignored)) continue;
    names.push_back(entry->path().lexically_relative(folder).generic_string());
  }
  require_read(folder, error);
  std::sort(names.begin(), names.end());
  return names;
}

std::string without_yaml(std::string_view name) {
  if (ends_with(name, ".yaml")) name.remove_suffix(5);
  return std::string(name);
}

const char* const plain_name_rule =
    "names have letters, digits, '_', '-' and '.', and begin with a letter, digit or '_'";

bool is_plain_name(const std::string& name) {
  const auto is_letter = [](char c) {  // those beyond ASCII too
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x80 || std::isalnum(byte) || c == '_';
  };
  const auto is_plain = [&](char c) { return is_letter(c) || c == '-' || c == '.'; };
  for (const std::string& part : split(name, '/')) {
    if (part.empty() || !is_letter(part[0]) || !std::all_of(part.begin(), part.end(), is_plain))
      return false;
  }
  return tables::printable(name) == name;
}

std::vector<std::string> misnamed_warnings(const Project& project) {
  constexpr size_t most = 3;
  const std::vector<fs::path>& files = project.misnamed_configs;
  if (files.empty()) return {};
  std::vector<std::string> shown;
  for (const fs::path& file : files) {
    if (shown.size() < most) shown.push_back(shell_quoted(shown_path(file)));
  }
  if (files.size() > most) shown.emplace_back("…");
  return {counted(files.size(), "file") + " of the project '" + project.path +
          "' cannot be a config because of the name (" + join(shown, ", ") +
          "): " + plain_name_rule};
}

const Config* Project::find(std::string_view config_name) const {
  const std::string wanted = without_yaml(config_name);
  const auto found = std::lower_bound(
      configs.begin(), configs.end(), wanted, [](const Config& config, const std::string& name) {
        return config.name < name;
      });
  return found != configs.end() && found->name == wanted ? &*found : nullptr;
}

RenderedText render_meta(const Project& project,
                         const Workspace& workspace,
                         const HostEnvironment& host_environment) {
  jinja::RenderRequest request;
  request.search_path = {project.folder, workspace.settings, user_templates(host_environment)};
  request.template_name = "meta.yaml";
  request.project_dir = project.folder.string();
  request.workspace_root = workspace.root.string();
  request.host_environment = host_environment;
  return jinja::render(request, project.shared->templates);
}

Project load_project(const Workspace& workspace,
                     const fs::path& project_folder,
                     const HostEnvironment& host_environment,
                     std::shared_ptr<RenderCache> shared) {
  if (!shared) shared = std::make_shared<RenderCache>();
  const fs::path folder = absolute_folder(project_folder);
  require_printable_path(folder, "the project", "rename the folder");
  {
    const std::lock_guard lock(shared->mutex);
    const auto known = shared->projects.find({workspace.root, folder});
    if (known != shared->projects.end()) {
      Project project = known->second;
      project.shared = std::move(shared);
      return project;
    }
  }
  Project project = read_project(workspace, folder, host_environment, shared);
  project.shared = nullptr;  // the cache must not hold itself
  const std::lock_guard lock(shared->mutex);
  shared->projects.emplace(std::make_pair(workspace.root, folder), project);
  project.shared = std::move(shared);
  return project;
}

RenderedText render_config(const Project& project,
                           const Config& config,
                           const HostEnvironment& host_environment,
                           const jinja::Variables& variables) {
  jinja::RenderRequest request;
  request.search_path = project.search_path;
  request.template_name = config.template_name;
  request.variables = variables;
  request.project_dir = project.folder.string();
  request.workspace_root = project.workspace_root.string();
  request.host_environment = host_environment;
  return jinja::render(request, project.shared->templates);
}

yaml::NodePtr parse_rendered(const Project& project, const RenderedText& rendered) {
  const auto origin = [&](int line, int column) { return rendered.origin(line, column); };
  return yaml::parse(rendered.text, origin, project.shared->sections);
}

ConfigSummary summary_of(const yaml::Node& root) {
  if (!root.is_mapping()) return {};
  const bool trains = root.find("train") != nullptr;
  const yaml::Node* meta = root.find("meta");
  if (meta && meta->is_mapping()) {
    return {scalar_under(*meta, "config_name"), scalar_under(*meta, "config_description"), trains};
  }
  return {scalar_under(root, "name"), scalar_under(root, "description"), trains};
}

ConfigSummary summarize(const Project& project,
                        const Config& config,
                        const HostEnvironment& host_environment) {
  return summary_of(
      *parse_without_origins(project, render_config(project, config, host_environment)));
}

graph::Graph load_graph(const Project& project,
                        const Config& config,
                        const jinja::HostEnvironment& host_environment,
                        const jinja::Variables& variables) {
  return graph::read_graph(
      parse_rendered(project, render_config(project, config, host_environment, variables)));
}

}  // namespace forge::project
