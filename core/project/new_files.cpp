#include "core/project/new_files.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/jinja/loader.h"
#include "core/project/project.h"

namespace forge::project {

/// Paths below a folder and what the files hold.
using NewFiles = std::vector<std::pair<std::string, std::string>>;

/// The template of forge's library in which every config of its own ends.
inline constexpr const char* library_root = "base/config.yaml";

/// The text of new_files.txt, a part of the program.
extern const char* const new_files_text;

namespace {

/// Text as a YAML and template string: in double quotes, on one line.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result + "\"";
}

/// `text` with every "@KEY@" replaced.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& keys) {
  for (const auto& [key, value] : keys) {
    const std::string mark = "@" + key + "@";
    for (size_t at = text.find(mark); at != std::string::npos;
         at = text.find(mark, at + value.size())) {
      text.replace(at, mark.size(), value);
    }
  }
  return text;
}

/// A file of new_files.txt.
const std::string& file_text(const std::string& name) {
  static const auto texts = [] {
    std::map<std::string, std::string> parts;
    // The newline before a marker belongs to the marker.
    const std::string whole = std::string(new_files_text) + "#--- end ---\n";
    for (jinja::TemplatePart& part : jinja::split_inline_templates(whole))
      parts[part.inline_name] = std::move(part.text) + "\n";
    return parts;
  }();
  return texts.at(name);
}

struct ProjectTexts {
  std::string name, description, folder_name, config_prefix, default_config;
  std::string copied_config;  ///< text of the default config, "" where it is made
};

std::string paragraph(const std::string& text) { return text.empty() ? "" : text + "\n\n"; }

std::vector<std::pair<std::string, std::string>> keys_of(const ProjectTexts& texts) {
  return {{"NAME", texts.name},
          {"QUOTED_NAME", quoted(texts.name)},
          {"DESCRIPTION", paragraph(texts.description)},
          {"QUOTED_DESCRIPTION", quoted(texts.description)},
          {"PREFIX", texts.config_prefix},
          {"DEFAULT", texts.default_config}};
}

/// The files of a new workspace's forge_workspace/. A library is an absolute folder or one below
/// the workspace's root.
NewFiles workspace_files(const std::string& name,
                         const std::string& description,
                         const std::vector<std::string>& libraries) {
  std::string lines;
  for (const std::string& library : libraries) {
    lines += "- {{ joinpath(workspace_root, " + quoted(library) + ") | toyaml }}\n";
  }
  return {{"README.md",
           filled(file_text("workspace/README.md"),
                  {{"NAME", name}, {"DESCRIPTION", paragraph(description)}})},
          {"base_directories.yaml", file_text("workspace/base_directories.yaml")},
          {"meta_defaults.yaml",
           filled(file_text("workspace/meta_defaults.yaml"), {{"LIBRARIES", lines}})},
          {"workspace.yaml", file_text("workspace/workspace.yaml")}};
}

std::string meta_text(const ProjectTexts& texts) {
  std::string configs = texts.config_prefix == "configs"
                            ? "== super()"
                            : "config_prefix: " + quoted(texts.config_prefix);
  if (!texts.default_config.empty()) {
    configs += "\ndefault_config: " + quoted(texts.default_config + ".yaml");
  }
  auto keys = keys_of(texts);
  keys.emplace_back("CONFIGS", configs);
  return filled(file_text("project/meta.yaml"), keys);
}

/// The files of a new project; with the library, ones that train.
NewFiles project_files(const ProjectTexts& texts, bool has_library) {
  const auto keys = keys_of(texts);
  const std::string configs = "templates/" + texts.config_prefix + "/";
  const std::string default_file = configs + texts.default_config + ".yaml";
  const bool trains = has_library && texts.copied_config.empty();
  NewFiles files = {
      {"README.md",
       filled(trains ? file_text("training/README.md") : file_text("project/README.md"), keys)},
      {"meta.yaml", meta_text(texts)}};
  if (!texts.copied_config.empty()) {
    files.emplace_back(default_file, texts.copied_config);
  } else if (!has_library) {
    files.emplace_back(default_file, file_text("project/default.yaml"));
  } else {
    files.emplace_back("templates/project.yaml", file_text("training/project.yaml"));
    files.emplace_back(configs + "model.yaml", file_text("training/model.yaml"));
    files.emplace_back(default_file, file_text("training/train_baseline.yaml"));
    files.emplace_back(configs + "train_variant.yaml", file_text("training/train_variant.yaml"));
    files.emplace_back("tables/variants.yaml", filled(file_text("training/variants.yaml"), keys));
  }
  return files;
}

/// A config that extends `parent` ("": nothing), with a block for its changes where it has one.
std::string config_text(const std::string& name,
                        const std::string& description,
                        const std::string& parent,
                        bool has_overrides) {
  if (parent.empty()) {
    return "name: " + quoted(name) + "\ndescription: " + quoted(description) + "\n";
  }
  std::string text = "-- extends '" + parent + "'\n\n";
  if (!has_overrides) return text;
  text += "[config_metadata]\n== super()\n";
  text += "-- set ns.config_name = " + quoted(name) + "\n";
  text += "-- set ns.config_description = " + quoted(description) + "\n\n";
  text +=
      "## Keys as 'forge keys' lists them, for example:\n##   model.canon.set: AC\n[overrides]\n";
  return text;
}

bool is_taken(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));  // what cannot be looked at is not known
}

/// Writes files into a new folder, which appears whole.
std::vector<fs::path> write_folder(const fs::path& folder, const NewFiles& files) {
  if (is_taken(folder)) throw Error("'" + shown_path(folder) + "' exists already");
  make_directories(folder.parent_path());
  FolderWriter writer(folder);
  std::vector<fs::path> written;
  for (const auto& [name, text] : files) {
    make_directories((writer.path() / name).parent_path());
    write_file_atomic(writer.path() / name, text);
    written.push_back(folder / name);
  }
  writer.create();
  return written;
}

/// Refuses a name that would be an option, a pattern or a path that leads elsewhere.
void check_name(const std::string& name, const std::string& what) {
  if (!is_plain_name(name))
    throw Error("'" + tables::printable(name) + "' cannot name " + what, plain_name_rule);
}

/// The folder that a project of this display name gets.
std::string folder_for(const NewProject& request) {
  if (!request.folder_name.empty()) return request.folder_name;
  if (request.name.find('/') == std::string::npos) return folder_name_of(request.name);
  fs::path path(request.name);
  if (!path.has_filename()) path = path.parent_path();  // "x/"
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  throw Error("'" + tables::printable(request.name) + "' is a path, and NAME is the name alone",
              quoted_command("forge project create " + shell_quoted(path.filename().string()) +
                             " --in " + shell_quoted(parent)) +
                  " makes it in that folder; --project-dir-name names the folder of a name with "
                  "'/'");
}

/// A name that may stand in a path below a folder.
void check_relative(const std::string& name, const std::string& what) {
  const fs::path path(name);
  const bool leads_up = std::find(path.begin(), path.end(), "..") != path.end();
  if (leads_up || path.is_absolute() || path.empty())
    throw Error("'" + name + "' cannot name " + what, "give a path without '..'");
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
              "'forge init' makes one in the current folder");
}

/// The project as its meta.yaml will make it, before anything is written in its place.
Project load_preview(const Workspace& workspace,
                     const fs::path& parent,
                     const std::string& meta,
                     const jinja::HostEnvironment& host_environment) {
  const ScratchFolder folder(parent / (".forge-preview-" + process_digits()));
  write_file_atomic(folder.path() / "meta.yaml", meta);
  return load_project(workspace, folder.path(), host_environment);
}

/// Whether a template ends its chain at forge's root of all configs, so that [overrides] works.
bool extends_library_root(const Project& project,
                          const Config& config,
                          const jinja::HostEnvironment& host_environment) {
  for (const auto& loaded : render_config(project, config, host_environment).templates) {
    if (loaded.name == library_root) return true;
  }
  return false;
}

}  // namespace

bool has_library(const Project& project) {
  for (const fs::path& folder : project.search_path) {
    if (is_file(folder / library_root)) return true;
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
  require_printable_path(root, "the workspace", "choose another name");
  for (const char* settings : {"forge_workspace", "forgather_workspace"}) {
    if (is_taken(root / settings)) {
      throw Error("'" + shown_path(root) + "' is a workspace already: it holds " + settings + "/",
                  "'forge project create NAME' adds a project to it");
    }
  }
  std::vector<std::string> libraries;
  for (const fs::path& library : request.libraries) {
    if (!is_folder(library)) {
      throw Error("no folder '" + library.string() + "' to search for templates");
    }
    // What lies in the workspace is named from its root, so that the whole can be moved.
    const fs::path folder = absolute_folder(library);
    libraries.push_back(lies_below(folder, root) ? folder.lexically_relative(root).generic_string()
                                                 : folder.string());
  }
  const std::string name = request.name.empty() ? root.filename().string() : request.name;
  std::vector<fs::path> written =
      write_folder(root / "forge_workspace", workspace_files(name, request.description, libraries));
  // What git does not know 'git clean' removes, and what is added fills the repository.
  const fs::path ignored = root / ".gitignore";
  if (is_taken(ignored)) return written;
  write_file_atomic(ignored, "/runs/\n");
  written.push_back(ignored);
  return written;
}

CreatedProject create_project(const NewProject& request,
                              const jinja::HostEnvironment& host_environment) {
  const fs::path parent = absolute_folder(request.parent);
  const Workspace workspace = workspace_around(parent);
  ProjectTexts texts;
  check_text(request.name, "name");
  check_text(request.description, "description");
  texts.name = request.name;
  texts.description = request.description;
  texts.config_prefix = request.config_prefix.empty() ? "configs" : request.config_prefix;
  check_relative(texts.config_prefix, "the folder of the configs");
  texts.folder_name = folder_for(request);
  check_name(texts.folder_name.empty() ? request.name : texts.folder_name, "the project's folder");
  require_printable_path(parent / texts.folder_name, "the project", "choose another name");
  make_directories(parent);
  const bool library =
      has_library(load_preview(workspace, parent, meta_text(texts), host_environment));
  const bool runs = library && request.copied_config.empty();
  texts.default_config = !request.default_config.empty() ? without_yaml(request.default_config)
                         : runs                          ? "train_baseline"
                                                         : "default";
  check_name(texts.default_config, "a config");
  if (!request.copied_config.empty()) texts.copied_config = read_file(request.copied_config);

  CreatedProject created;
  created.folder = parent / texts.folder_name;
  created.files = write_folder(created.folder, project_files(texts, library));
  created.default_config = texts.default_config;
  created.trains = runs;
  return created;
}

fs::path create_config(const NewConfig& request, const jinja::HostEnvironment& host_environment) {
  const Workspace workspace = workspace_around(request.project);
  const Project project = load_project(workspace, request.project, host_environment);
  const std::string name = without_yaml(request.name);
  check_name(name, "a config");
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
    const bool overrides = from_default && extends_library_root(project, *base, host_environment);
    text = config_text(name, request.description, parent, overrides);
  }
  make_directories(file.parent_path());
  write_file_atomic(file, text);
  return file;
}

namespace {

/// my_mixer -> MyMixer, as backends/pytorch/own_blocks.py looks for it.
std::string class_name_of(const std::string& name) {
  std::string text;
  bool begins_word = true;
  for (const char c : name) {
    if (c != '_') {
      const auto byte = static_cast<unsigned char>(c);
      text += begins_word ? static_cast<char>(std::toupper(byte)) : c;
    }
    begins_word = c == '_';
  }
  return text;
}

void check_block_name(const std::string& name) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  const bool is_name = !name.empty() && name.size() <= 64 && name[0] >= 'a' && name[0] <= 'z' &&
                       std::all_of(name.begin(), name.end(), is_part);
  if (!is_name)
    throw Error("'" + name + "' cannot name a block",
                "small letters, digits and _, beginning with a letter: my_mixer");
  for (const char* taken : {"attention",
                            "gla5",
                            "gdn2",
                            "mamba2",
                            "swiglu",
                            "geglu",
                            "gelu",
                            "relu_squared",
                            "mlp",
                            "canon",
                            "norm",
                            "parts",
                            "torch"}) {
    if (name == taken) throw Error("the name '" + name + "' is taken", "forge has such a block");
  }
}

std::string use_of(const NewBlock& request) {
  if (request.place == BlockPlace::mixer) return "model.layers: [" + request.name + "]";
  if (request.place == BlockPlace::mlp) return "model.mlp.kind: " + request.name;
  return "model.blocks." + request.name + ".at: A  # before every mixer; C: before every MLP";
}

}  // namespace

CreatedBlock create_block(const NewBlock& request, const jinja::HostEnvironment& host_environment) {
  check_block_name(request.name);
  const Workspace workspace = workspace_around(request.project);
  const Project project = load_project(workspace, request.project, host_environment);
  const Config* base = project.find(project.default_config);
  if (!base || !extends_library_root(project, *base, host_environment)) {
    throw Error("the project has no default config that a block could change",
                "'forge project create NAME' makes a project that trains");
  }
  CreatedBlock created;
  created.config = "train_" + request.name;
  const fs::path parts =
      fs::path(host_environment.library_dir).parent_path() / "backends" / "pytorch";
  const std::vector<std::pair<std::string, std::string>> keys = {
      {"NAME", request.name},
      {"CLASS", class_name_of(request.name)},
      {"CONFIG", created.config},
      {"DEFAULT", without_yaml(project.default_config)},
      {"TEMPLATE", base->template_name},
      {"USE", use_of(request)},
      {"PARTS", nlohmann::json(parts.string()).dump()}};
  const fs::path templates =
      project.search_path.empty() ? project.folder / "templates" : project.search_path.front();
  created.test = project.folder / "tests" / ("test_" + request.name + ".py");
  const char* code = request.place == BlockPlace::mlp ? "block/mlp.py" : "block/mixer.py";
  const std::vector<std::pair<fs::path, std::string>> files = {
      {project.folder / "blocks" / (request.name + ".py"), code},
      {templates / project.config_prefix / (created.config + ".yaml"), "block/config.yaml"},
      {project.folder / "tables" / (request.name + ".yaml"), "block/table.yaml"},
      {created.test, "block/test.py"}};
  for (const auto& [file, text] : files) {
    if (is_taken(file)) throw Error("'" + shown_path(file) + "' exists already");
  }
  for (const auto& [file, text] : files) {
    make_directories(file.parent_path());
    write_file_atomic(file, filled(file_text(text), keys));
    created.files.push_back(file);
  }
  return created;
}

}  // namespace forge::project
