#include "core/project/workspace.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/owner.h"
#include "core/base/staging.h"
#include "core/base/text.h"
#include "core/yaml/yaml.h"

namespace forge::project {
namespace {

constexpr const char* settings_folders[] = {"forge_workspace", "forgather_workspace"};

}  // namespace

std::optional<fs::path> settings_folder_of(const fs::path& folder) {
  for (const char* name : settings_folders) {
    if (is_folder(folder / name)) return folder / name;
  }
  return std::nullopt;
}

namespace {

void read_settings(Workspace& workspace) {
  const fs::path file = workspace.settings / "workspace.yaml";
  if (!path_exists(file)) return;
  const yaml::NodePtr root = yaml::parse_file(shown_path(file));
  if (root->is_null()) return;
  if (!root->is_mapping()) throw Error("a workspace's settings are a mapping", root->origin);
  for (const yaml::Entry& entry : root->entries) {
    if (entry.key != "default_project") {
      throw Error("unknown key '" + entry.key + "'",
                  entry.key_origin,
                  "a workspace has one setting, default_project");
    }
    if (entry.value->kind != yaml::Node::Kind::string) {
      throw Error("'default_project' is " + describe_kind(*entry.value),
                  entry.value->origin,
                  "give the project's path below the workspace");
    }
    workspace.default_project = entry.value->text;
    if (!is_project_folder(workspace.root / workspace.default_project)) {
      throw Error("no project '" + workspace.default_project + "' in the workspace",
                  entry.value->origin,
                  "a project is a folder with meta.yaml");
    }
  }
}

Workspace open_workspace(const fs::path& root, const fs::path& settings) {
  Workspace workspace{root, settings, "", false};
  read_settings(workspace);
  return workspace;
}

constexpr const char* trusted_variable = "FORGE_TRUSTED_WORKSPACES";

bool is_named_as_trusted(const fs::path& root) {
  const char* const named = std::getenv(trusted_variable);
  const std::vector<std::string> folders = split(named ? named : "", ':');
  return std::any_of(folders.begin(), folders.end(), [&](const std::string& folder) {
    return !folder.empty() && absolute_folder(folder) == root;
  });
}

/// A folder above may be anybody's, as /tmp is, and a workspace's configs start programs. Throws
/// Error where its settings are neither this user's nor root's, nor of whoever owns the folder that
/// the user chose.
void require_trusted(const fs::path& root, const fs::path& settings, const fs::path& from) {
  struct stat found {
  }, chosen{};
  if (::lstat(settings.c_str(), &found) != 0 || found.st_uid == 0 || found.st_uid == ::geteuid())
    return;
  const bool is_theirs =
      ::stat(existing_ancestor(from).c_str(), &chosen) == 0 && chosen.st_uid == found.st_uid;
  if (is_theirs || is_named_as_trusted(root)) return;
  throw Error("the workspace '" + shown_path(root) + "' belongs to " + owner_name(settings) +
                  ", and '" + shown_path(from) + "' does not",
              "'forge init' makes this folder a workspace of its own; " +
                  std::string(trusted_variable) + "=" + shell_quoted(root.string()) +
                  " lets that user's configs start programs in your name",
              ExitCode::usage);
}

/// share/forge beside an installed <prefix>/bin/forge, else "".
fs::path share_folder(const fs::path& program) {
  const fs::path bin = absolute_folder(program).parent_path();
  const fs::path share = bin.parent_path() / "share" / "forge";
  return bin.filename() == "bin" && settings_folder_of(share) ? share : fs::path();
}

/// Whether a folder of that name may hold projects.
bool is_entered(const std::string& name) {
  static const std::vector<std::string> outputs = {
      "runs", "output", "outputs", "output_models", "node_modules", "__pycache__"};
  const bool is_build =
      name == "build" || starts_with(name, "build-") || starts_with(name, "build_");
  return !starts_with(name, ".") && !is_build &&
         std::find(outputs.begin(), outputs.end(), name) == outputs.end();
}

void collect_projects(const fs::path& folder,
                      const std::optional<Workspace>& around,
                      int depth,
                      std::vector<ProjectFolder>& found) {
  constexpr int deepest = 32;
  if (is_project_folder(folder)) found.push_back({folder, around});
  if (depth == deepest) return;
  for (const fs::path& entry : folder_entries(folder)) {
    if (!is_entered(entry.filename().string()) || !is_folder(entry) || fs::is_symlink(entry))
      continue;
    const auto settings = settings_folder_of(entry);
    const auto inner = settings ? std::optional(open_workspace(entry, *settings)) : around;
    collect_projects(entry, inner, depth + 1, found);
  }
}

}  // namespace

namespace {

/// `require` may throw Error of the workspace that is found.
std::optional<Workspace> workspace_above(
    const fs::path& from,
    const std::function<void(const fs::path& root, const fs::path& settings)>& require) {
  for (fs::path folder = absolute_folder(from);; folder = folder.parent_path()) {
    if (const auto settings = settings_folder_of(folder)) {
      require_printable_path(folder, "the workspace", "rename the folder");
      require(folder, *settings);
      return open_workspace(folder, *settings);
    }
    if (folder == folder.parent_path()) return std::nullopt;
  }
}

/// That of the program's own tree, whoever owns it: the program itself is trusted.
std::optional<Workspace> workspace_of_program(const fs::path& program) {
  return workspace_above(absolute_folder(program).parent_path(),
                         [](const fs::path&, const fs::path&) {});
}

}  // namespace

std::optional<Workspace> find_workspace(const fs::path& from) {
  return workspace_above(from, [&](const fs::path& root, const fs::path& settings) {
    require_trusted(root, settings, absolute_folder(from));
  });
}

Workspace locate_workspace(const fs::path& here, const fs::path& program) {
  const fs::path share = share_folder(program);
  std::optional<Workspace> workspace = find_workspace(here);
  if (!workspace && !share.empty()) workspace = open_workspace(share, *settings_folder_of(share));
  if (!workspace) workspace = workspace_of_program(program);
  if (!workspace) {
    throw Error("no workspace: neither " + absolute_folder(here).string() +
                    " nor a folder above it holds forge_workspace/",
                "change to a workspace, or make the current folder one with 'forge init'");
  }
  workspace->shipped = is_shipped(*workspace, here, program);
  return *workspace;
}

bool is_shipped(const Workspace& workspace, const fs::path& here, const fs::path& program) {
  const fs::path share = share_folder(program);
  if (!share.empty()) return workspace.root == share;
  if (lies_below(absolute_folder(here), workspace.root)) return false;
  const auto source_tree = workspace_of_program(program);
  return source_tree && source_tree->root == workspace.root;
}

fs::path library_folder(const fs::path& program) {
  fs::path root = share_folder(program);
  for (fs::path folder = absolute_folder(program).parent_path(); root.empty();
       folder = folder.parent_path()) {
    if (settings_folder_of(folder)) root = folder;
    if (folder == folder.parent_path()) break;
  }
  return !root.empty() && is_folder(root / "templates") ? root / "templates" : fs::path();
}

fs::path absolute_folder(const fs::path& folder) {
  const fs::path absolute = fs::absolute(folder).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool lies_below(const fs::path& path, const fs::path& folder) {
  const fs::path below = path.lexically_relative(folder);
  return !below.empty() && *below.begin() != "..";
}

bool is_project_folder(const fs::path& folder) { return is_file(folder / "meta.yaml"); }

bool may_be_project_folder(const fs::path& folder) { return may_exist(folder / "meta.yaml"); }

std::optional<fs::path> enclosing_project_folder(const Workspace& workspace, const fs::path& from) {
  for (fs::path folder = absolute_folder(from); lies_below(folder, workspace.root);
       folder = folder.parent_path()) {
    if (is_project_folder(folder)) return folder;
    if (folder == folder.parent_path()) break;
  }
  return std::nullopt;
}

std::vector<ProjectFolder> projects_below(const fs::path& folder) {
  std::vector<ProjectFolder> found;
  const fs::path top = absolute_folder(folder);
  collect_projects(top, find_workspace(top), 0, found);
  std::sort(found.begin(), found.end(), [](const ProjectFolder& a, const ProjectFolder& b) {
    return a.folder.native() < b.folder.native();
  });
  return found;
}

std::vector<ProjectFolder> projects_of(const Workspace& workspace) {
  std::vector<ProjectFolder> found = projects_below(workspace.root);
  const auto is_foreign = [&](const ProjectFolder& project) {
    return project.workspace->root != workspace.root;
  };
  found.erase(std::remove_if(found.begin(), found.end(), is_foreign), found.end());
  return found;
}

}  // namespace forge::project
