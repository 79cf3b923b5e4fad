#include "core/project/new_files.h"

#include <unistd.h>

#include <cctype>

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/project/new_file_texts.h"
#include "core/project/project.h"

namespace forge::project {
namespace {

bool is_taken(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

/// Writes files into a folder beside the one they are for and renames that, so that it appears
/// whole.
std::vector<fs::path> write_folder(const fs::path& folder, const NewFiles& files) {
  if (is_taken(folder)) throw Error("'" + shown_path(folder) + "' exists already");
  make_directories(folder.parent_path());
  const fs::path aside = folder.parent_path() /
                         ("." + folder.filename().string() + ".tmp-" + std::to_string(::getpid()));
  std::vector<fs::path> written;
  try {
    for (const auto& [name, text] : files) {
      make_directories((aside / name).parent_path());
      write_file_atomic(aside / name, text);
      written.push_back(folder / name);
    }
    std::error_code error;
    fs::rename(aside, folder, error);
    if (error) throw system_error("make '" + shown_path(folder) + "'", error.value());
  } catch (...) {
    remove_tree(aside);
    throw;
  }
  sync_path(folder.parent_path());
  return written;
}

/// A name that may stand in a path below a folder.
void check_relative(const std::string& name, const std::string& what) {
  const fs::path path(name);
  bool leads_out = path.is_absolute() || path.empty();
  for (const fs::path& part : path) leads_out = leads_out || part == "..";
  if (leads_out) {
    throw Error("'" + name + "' cannot name " + what, {}, "give a path without '..'");
  }
}

/// Refuses what would be template code or a comment in the files made from it.
void check_text(const std::string& text, const std::string& what) {
  for (const char* mark : {"{{", "{%", "{#", "##"}) {
    if (text.find(mark) != std::string::npos) {
      throw Error("the " + what + " holds '" + mark + "', which means something in a template");
    }
  }
}

Workspace workspace_around(const fs::path& folder) {
  if (auto workspace = find_workspace(folder)) return *workspace;
  throw Error("no workspace around " + shown_path(folder),
              {},
              "'forge init' makes one in the current folder");
}

/// The project as its meta.yaml will make it, before anything is written in its place.
Project preview(const Workspace& workspace,
                const fs::path& parent,
                const std::string& meta,
                const templating::Surroundings& surroundings) {
  const fs::path folder = parent / (".forge-preview-" + std::to_string(::getpid()));
  make_directories(folder);
  try {
    write_file_atomic(folder / "meta.yaml", meta);
    Project project = load_project(workspace, folder, surroundings);
    remove_tree(folder);
    return project;
  } catch (...) {
    remove_tree(folder);
    throw;
  }
}

/// Whether a template ends its chain at forge's root of all configs, so that [overrides] works.
bool extends_library_root(const Project& project,
                          const Config& config,
                          const templating::Surroundings& surroundings) {
  for (const auto& loaded : render_config(project, config, surroundings).templates) {
    if (loaded.name == library_root) return true;
  }
  return false;
}

}  // namespace

bool has_library(const Project& project) {
  for (const fs::path& folder : project.search_path) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / library_root, ignored)) return true;
  }
  return false;
}

std::string folder_name_of(const std::string& name) {
  std::string folder;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || byte >= 0x80 || c == '-' || c == '.') {
      folder += static_cast<char>(std::tolower(byte));
    } else if (!folder.empty() && folder.back() != '_') {
      folder += '_';
    }
  }
  while (ends_with(folder, "_")) folder.pop_back();
  while (starts_with(folder, ".")) folder.erase(0, 1);
  return folder;
}

std::vector<fs::path> create_workspace(const NewWorkspace& request) {
  const fs::path root = absolute_folder(request.folder);
  for (const char* settings : {"forge_workspace", "forgather_workspace"}) {
    if (is_taken(root / settings)) {
      throw Error("'" + shown_path(root) + "' is a workspace already: it holds " + settings + "/",
                  {},
                  "'forge project create NAME' adds a project to it");
    }
  }
  std::vector<std::string> libraries;
  for (const fs::path& library : request.libraries) {
    std::error_code ignored;
    if (!fs::is_directory(library, ignored)) {
      throw Error("no folder '" + library.string() + "' to search for templates");
    }
    // What lies in the workspace is named from its root, so that the whole can be moved.
    const fs::path below = absolute_folder(library).lexically_relative(root);
    const bool inside = !below.empty() && *below.begin() != "..";
    libraries.push_back(inside ? below.generic_string() : absolute_folder(library).string());
  }
  const std::string name = request.name.empty() ? root.filename().string() : request.name;
  return write_folder(root / "forge_workspace",
                      workspace_files(name, request.description, libraries));
}

CreatedProject create_project(const NewProject& request,
                              const templating::Surroundings& surroundings) {
  const fs::path parent = absolute_folder(request.parent);
  const Workspace workspace = workspace_around(parent);
  ProjectTexts texts;
  check_text(request.name, "name");
  check_text(request.description, "description");
  texts.name = request.name;
  texts.description = request.description;
  texts.config_prefix = request.config_prefix.empty() ? "configs" : request.config_prefix;
  check_relative(texts.config_prefix, "the folder of the configs");
  texts.folder_name =
      request.folder_name.empty() ? folder_name_of(request.name) : request.folder_name;
  check_relative(texts.folder_name, "the project's folder");
  make_directories(parent);
  const bool library = has_library(preview(workspace, parent, meta_text(texts), surroundings));
  const bool runs = library && request.copied_config.empty();
  texts.default_config = !request.default_config.empty() ? without_yaml(request.default_config)
                         : runs                          ? "train_baseline"
                                                         : "default";
  check_relative(texts.default_config, "a config");
  if (!request.copied_config.empty()) texts.copied_config = read_file(request.copied_config);

  CreatedProject created;
  created.folder = parent / texts.folder_name;
  created.files = write_folder(created.folder, project_files(texts, library));
  created.default_config = texts.default_config;
  created.trains = runs;
  return created;
}

fs::path create_config(const NewConfig& request, const templating::Surroundings& surroundings) {
  const Workspace workspace = workspace_around(request.project);
  const Project project = load_project(workspace, request.project, surroundings);
  const std::string name = without_yaml(request.name);
  check_relative(name, "a config");
  check_text(name, "name");
  check_text(request.description, "description");
  const fs::path own =
      project.search_path.empty() ? project.folder / "templates" : project.search_path.front();
  const fs::path folder = request.kind == TemplateKind::config    ? own / project.config_prefix
                          : request.kind == TemplateKind::project ? own
                                                                  : workspace.settings;
  const fs::path file = folder / (name + ".yaml");
  if (is_taken(file)) throw Error("'" + shown_path(file) + "' exists already");

  std::string text;
  if (!request.copied_file.empty()) {
    text = read_file(request.copied_file);
  } else if (!request.text.empty()) {
    text = request.text;
  } else {
    const Config* base = project.find(project.default_config);
    const std::string parent = !request.extends.empty() ? request.extends
                               : base                   ? base->template_name
                                                        : "";
    const bool from_default = request.extends.empty() && base;
    const bool overrides = from_default && extends_library_root(project, *base, surroundings);
    text = config_text(name, request.description, parent, overrides);
  }
  make_directories(file.parent_path());
  write_file_atomic(file, text);
  return file;
}

}  // namespace forge::project
