#include "core/project/names.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <variant>

#include <fnmatch.h>

#include "core/base/files.h"
#include "core/base/parallel.h"
#include "core/base/text.h"

namespace forge::project {
namespace {

using jinja::HostEnvironment;

/// Whether a user may call the project so: "canon", "projects/canon" or its display name.
bool matches_name(const Project& project, std::string_view name) {
  while (ends_with(name, "/")) name.remove_suffix(1);
  return !name.empty() && (project.path == name || project.name == name ||
                           ends_with(project.path, "/" + std::string(name)));
}

/// How a name stands for a config: in full, or as a prefix.
enum class Match { whole, prefix };

/// The config of that name, or those with that prefix.
std::vector<const Config*> matching(const Project& project, std::string_view name, Match match) {
  std::vector<const Config*> found;
  if (match == Match::whole) {
    if (const Config* config = project.find(name)) found.push_back(config);
    return found;
  }
  for (const Config& config : project.configs) {
    if (!name.empty() && starts_with(config.name, name)) found.push_back(&config);
  }
  return found;
}

/// The configs of the project that `name` stands for, alone or behind the project's own name.
std::vector<const Config*> configs_named(const Project& project,
                                         const std::string& name,
                                         Match match) {
  std::vector<const Config*> found = matching(project, name, match);
  for (size_t at = name.find_first_of(":/"); found.empty() && at != std::string::npos;
       at = name.find_first_of(":/", at + 1)) {
    if (matches_name(project, std::string_view(name).substr(0, at))) {
      found = matching(project, std::string_view(name).substr(at + 1), match);
    }
  }
  return found;
}

std::string qualified(const NamedConfig& named) {
  return named.project.path + ":" + named.config.name;
}

/// A file that several projects list through their search paths belongs to the project nearest
/// above it.
void prefer_owning_project(std::vector<NamedConfig>& candidates) {
  const auto owned_better = [&](const NamedConfig& other, const NamedConfig& than) {
    if (other.config.file != than.config.file) return false;
    const bool other_holds = lies_below(other.config.file, other.project.folder);
    const bool than_holds = lies_below(than.config.file, than.project.folder);
    if (other_holds != than_holds) return other_holds;
    return other_holds && other.project.path.size() > than.project.path.size();
  };
  std::vector<NamedConfig> kept;
  for (const NamedConfig& candidate : candidates) {
    const bool beaten =
        std::any_of(candidates.begin(), candidates.end(), [&](const NamedConfig& other) {
          return owned_better(other, candidate);
        });
    if (!beaten) kept.push_back(candidate);
  }
  candidates = std::move(kept);
}

/// A project whose whole path was written is meant, and not one whose path ends so.
void prefer_whole_path(std::vector<NamedConfig>& candidates, const std::string& name) {
  const auto is_whole = [&](const NamedConfig& candidate) {
    const std::string& path = candidate.project.path;
    return starts_with(name, path + ":") || starts_with(name, path + "/");
  };
  std::vector<NamedConfig> whole;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(whole), is_whole);
  if (!whole.empty()) candidates = std::move(whole);
}

std::vector<NamedConfig> candidates(const std::vector<Project>& projects,
                                    const std::string& name,
                                    Match match) {
  std::vector<NamedConfig> found;
  for (const Project& project : projects) {
    for (const Config* config : configs_named(project, name, match))
      found.push_back({project, *config});
  }
  prefer_owning_project(found);
  prefer_whole_path(found, name);
  return found;
}

/// The only candidate, or nothing where there is none. Throws Error where there are more.
std::optional<NamedConfig> single_match(const std::vector<NamedConfig>& candidates,
                                        const std::string& name) {
  if (candidates.empty()) return std::nullopt;
  if (candidates.size() == 1) return candidates.front();
  const std::vector<std::string> names = texts_of(candidates, qualified);
  std::set<std::string> projects;
  for (const NamedConfig& candidate : candidates) projects.insert(candidate.project.path);
  if (projects.size() > 1) {
    throw Error("'" + name + "' is a config of several projects: " + join(names, ", "),
                "name one of these, or narrow with -p PROJECT");
  }
  throw Error("'" + name + "' may mean several configs: " + join(names, ", "),
              "write enough of the name to tell them apart");
}

/// Problems of other projects, which may be why a name is unknown.
std::string broken_project_hint(const std::vector<Error>& problems) {
  if (problems.empty()) return "";
  return "a project could not be read: " + problems.front().where().describe() + ": " +
         problems.front().message();
}

/// The projects that came with forge, unless this is their workspace.
std::vector<Project> shipped_projects(const Workspace& workspace,
                                      const HostEnvironment& host_environment,
                                      const std::shared_ptr<RenderCache>& shared) {
  const fs::path library = host_environment.library_dir;
  const auto shipped = library.empty() ? std::nullopt : find_workspace(library);
  if (!shipped || shipped->root == workspace.root) return {};
  return load_projects(projects_of(*shipped), host_environment, shared).projects;
}

/// What to type for a project that came with forge and is not one of this workspace.
std::string shipped_hint(const Project& project, const std::string& what) {
  return what + " came with forge: name its folder, -p " + shell_quoted(project.folder.string());
}

/// For "train.max_steps=5" in the place of a config.
std::string override_hint(const std::string& name) {
  const bool is_override = name.find('=') != std::string::npos && name[0] != '=';
  return is_override ? "a key of the config is set with --set " + shell_quoted(name) : "";
}

[[noreturn]] void throw_unknown_config(const std::string& name,
                                       const ProjectList& list,
                                       const std::vector<Project>& shipped) {
  std::vector<std::string> known;
  for (const Project& project : list.projects) {
    for (const Config& config : project.configs) {
      known.push_back(config.name);
      known.push_back(project.folder.filename().string() + "/" + config.name);
    }
  }
  std::string hint = override_hint(name);
  for (const NamedConfig& found : candidates(shipped, name, Match::whole))
    hint = shipped_hint(found.project, "the project '" + found.project.path + "' with that config");
  if (hint.empty()) hint = did_you_mean(without_yaml(name), known);
  if (hint.empty()) hint = broken_project_hint(list.problems);
  if (hint.empty()) hint = "'forge ls -r' lists every project's configs";
  throw Error("no config '" + name + "' in this workspace", hint);
}

}  // namespace

ProjectList load_projects(const std::vector<ProjectFolder>& folders,
                          const HostEnvironment& host_environment,
                          const std::shared_ptr<RenderCache>& known) {
  const auto shared = known ? known : std::make_shared<RenderCache>();
  std::vector<std::variant<Project, Error>> loaded(folders.size(), Project());
  parallel_for(folders.size(), [&](size_t i) {
    const ProjectFolder& project = folders[i];
    try {
      if (!project.workspace) {
        throw Error("no workspace around the project " + shown_path(project.folder),
                    "a folder above it must hold forge_workspace/ or forgather_workspace/");
      }
      loaded[i] = load_project(*project.workspace, project.folder, host_environment, shared);
    } catch (const Error& problem) {
      loaded[i] = problem;
    }
  });
  ProjectList list;
  for (auto& result : loaded) {
    if (auto* project = std::get_if<Project>(&result)) {
      list.projects.push_back(std::move(*project));
    } else {
      list.problems.push_back(std::get<Error>(std::move(result)));
    }
  }
  return list;
}

Project find_project(const Workspace& workspace,
                     const std::string& name,
                     const fs::path& here,
                     const HostEnvironment& host_environment,
                     const std::shared_ptr<RenderCache>& shared) {
  const fs::path folder = absolute_folder(here / name);
  if (is_project_folder(folder)) return load_project(workspace, folder, host_environment, shared);
  const ProjectList list = load_projects(projects_of(workspace), host_environment, shared);
  std::vector<Project> matches;
  std::vector<std::string> known;
  for (const Project& project : list.projects) {
    if (matches_name(project, name)) matches.push_back(project);
    known.push_back(project.path);
    known.push_back(project.folder.filename().string());
    known.push_back(project.name);
  }
  if (matches.size() == 1) return matches.front();
  if (matches.empty()) {
    for (const Project& project : shipped_projects(workspace, host_environment, shared)) {
      if (matches_name(project, name))
        throw Error("no project '" + name + "' in this workspace",
                    shipped_hint(project, "a project of that name"));
    }
    throw Error("no project '" + name + "' in this workspace",
                did_you_mean(name, known, broken_project_hint(list.problems)));
  }
  throw Error(
      "'" + name + "' may mean several projects: " + join(texts_of(matches, &Project::path), ", "),
      "give the path below the workspace");
}

NamedConfig find_config(const Workspace& workspace,
                        const std::string& name,
                        const fs::path& here,
                        const HostEnvironment& host_environment,
                        const std::shared_ptr<RenderCache>& shared) {
  std::optional<Project> own;
  if (const auto folder = enclosing_project_folder(workspace, here)) {
    own = load_project(workspace, *folder, host_environment, shared);
    const std::vector<const Config*> found = configs_named(*own, name, Match::whole);
    if (!found.empty()) return {*own, *found.front()};
    const std::vector<const Config*> prefixed = configs_named(*own, name, Match::prefix);
    if (prefixed.size() == 1) return {*own, *prefixed.front()};
  }
  const ProjectList list = load_projects(projects_of(workspace), host_environment, shared);
  if (const auto found = single_match(candidates(list.projects, name, Match::whole), name))
    return *found;
  if (own) {
    if (const auto found = single_match(candidates({*own}, name, Match::prefix), name))
      return *found;
  }
  if (const auto found = single_match(candidates(list.projects, name, Match::prefix), name))
    return *found;
  throw_unknown_config(name, list, shipped_projects(workspace, host_environment, shared));
}

const Config& config_of(const Project& project, const std::string& name) {
  const std::string& wanted = name.empty() ? project.default_config : name;
  if (wanted.empty()) throw Error("the project '" + project.path + "' has no configs");
  for (const Match match : {Match::whole, Match::prefix}) {
    const auto found = single_match(candidates({project}, wanted, match), wanted);
    if (found) return *project.find(found->config.name);
  }
  const std::vector<std::string> known = texts_of(project.configs, &Config::name);
  std::string hint = override_hint(wanted);
  if (hint.empty()) hint = did_you_mean(without_yaml(wanted), known);
  if (hint.empty() && !known.empty()) hint = "it has " + join(known, ", ");
  throw Error("the project '" + project.path + "' has no config '" + wanted + "'", hint);
}

bool is_pattern(const std::string& name) { return name.find_first_of("*?[") != std::string::npos; }

std::vector<Config> configs_matching(const Project& project, const std::string& pattern) {
  std::vector<Config> found;
  for (const Config& config : project.configs) {
    if (::fnmatch(pattern.c_str(), config.name.c_str(), 0) == 0) found.push_back(config);
  }
  if (!found.empty()) return found;
  throw Error("no config of the project '" + project.path + "' matches '" + pattern + "'",
              "'forge ls' lists them; quote a pattern, or the shell reads it first");
}

std::vector<ListedProject> list_configs(std::vector<Project> projects,
                                        const jinja::HostEnvironment& host_environment,
                                        const CountProgress& progress) {
  struct Task {
    size_t project, config;
  };
  std::vector<ListedProject> listing;
  std::vector<Task> tasks;
  for (Project& project : projects) {
    for (size_t i = 0; i < project.configs.size(); ++i) tasks.push_back({listing.size(), i});
    std::vector<ListedConfig> configs(project.configs.size());
    listing.push_back({std::move(project), std::move(configs)});
  }
  const auto list = [&](size_t i) {
    ListedProject& owner = listing[tasks[i].project];
    const Config& config = owner.project.configs[tasks[i].config];
    ListedConfig& listed = owner.configs[tasks[i].config];
    try {
      listed.summary = summarize(owner.project, config, host_environment);
    } catch (const Error& error) {
      listed.problem = error;
    }
    if (listed.summary.name.empty()) listed.summary.name = config.name;
  };
  parallel_for(tasks.size(), list, progress);
  return listing;
}

}  // namespace forge::project
