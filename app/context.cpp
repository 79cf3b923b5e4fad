#include "app/context.h"

#include "backends/backends.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/project/template_arguments.h"
#include "core/run/run_folder.h"

namespace forge::app {
namespace {

/// The folder that -p names, where it names one.
std::optional<fs::path> chosen_folder(const std::string& project, const fs::path& here) {
  if (project.empty()) return std::nullopt;
  std::error_code ignored;
  const fs::path folder = project::absolute_folder(here / project);
  return fs::is_directory(folder, ignored) ? std::optional(folder) : std::nullopt;
}

}  // namespace

Context::Context(std::string command_line, GlobalOptions globals)
    : command_line_(std::move(command_line)),
      globals_(std::move(globals)),
      here_(std::filesystem::current_path()),
      program_(program_path()),
      host_environment_(jinja::HostEnvironment::current()) {
  host_environment_.library_dir = project::library_folder(program_).string();
  if (!globals_.now.empty()) host_environment_.unix_time = parse_time(globals_.now);
}

const project::Workspace& Context::workspace() const {
  if (!workspace_) {
    if (const auto folder = chosen_folder(globals_.project, here_)) {
      workspace_ = project::find_workspace(*folder);
    }
    if (!workspace_) workspace_ = project::locate_workspace(here_, program_);
  }
  return *workspace_;
}

std::optional<std::filesystem::path> Context::project_folder() const {
  if (globals_.project.empty()) return project::enclosing_project_folder(workspace(), here_);
  if (const auto folder = chosen_folder(globals_.project, here_)) {
    return project::enclosing_project_folder(workspace(), *folder);
  }
  return project::find_project(workspace(), globals_.project, here_, host_environment_).folder;
}

project::ProjectList Context::all_projects(bool search_here) const {
  if (const auto folder = chosen_folder(globals_.project, here_)) {
    return project::load_projects_below(*folder, host_environment_);
  }
  if (search_here && !project::find_workspace(here_)) {
    project::ProjectList below = project::load_projects_below(here_, host_environment_);
    if (!below.projects.empty() || !below.problems.empty()) return below;
  }
  return project::load_projects_below(workspace().root, host_environment_);
}

project::Project Context::project() const {
  if (const auto folder = project_folder()) {
    return project::load_project(workspace(), *folder, host_environment_);
  }
  if (!globals_.project.empty()) {
    throw Error("no project in or above the folder '" + globals_.project + "'",
                {},
                "a project is a folder with meta.yaml; 'forge ls -r -p " + globals_.project +
                    "' lists those below it");
  }
  if (workspace().default_project.empty()) {
    throw Error("no project here, and the workspace names no default project",
                {},
                "go into a project's folder, or name a project with -p");
  }
  return project::load_project(
      workspace(), workspace().root / workspace().default_project, host_environment_);
}

ChosenConfig Context::config(const std::string& name) const {
  const std::string& wanted = name.empty() ? globals_.config : name;
  if (!wanted.empty() && globals_.project.empty()) {
    return chosen(project::find_config(workspace(), wanted, here_, host_environment_));
  }
  const project::Project own = project();
  return chosen({own, project::config_of(own, wanted)});
}

ChosenConfig Context::chosen(project::NamedConfig named) const {
  if (globals_.template_arguments.empty()) return {std::move(named), {}};
  const auto declared =
      project::template_arguments_of(named.project, named.config, host_environment_);
  jinja::Variables variables = project::parse_template_arguments(
      declared,
      globals_.template_arguments,
      {named.config.name, globals_.command_options, host_environment_.home_directory});
  return {std::move(named), std::move(variables)};
}

config::ResolveOptions Context::resolve_options(const ChosenConfig& config,
                                                const std::vector<std::string>& overrides) const {
  config::ResolveOptions options;
  options.overrides = overrides;
  options.host_environment = host_environment_;
  options.variables = config.variables;
  return options;
}

config::ResolvedConfig Context::resolve(const ChosenConfig& config,
                                        const std::vector<std::string>& overrides) const {
  return config::resolve(config.project, config.config.name, resolve_options(config, overrides));
}

std::filesystem::path Context::runs_dir() const {
  // Nothing is written into the workspace that came with the program, even where it could be.
  return run::runs_dir(workspace().shipped ? here_ : workspace().root);
}

std::vector<std::filesystem::path> Context::backend_folders() const {
  return config::backend_folders(
      project_folder().value_or(fs::path()), workspace().root, host_environment_.library_dir);
}

std::unique_ptr<worker::Backend> Context::backend(const config::Experiment& experiment) const {
  return backends::make_backend(experiment, program_);
}

void require_training(const config::ResolvedConfig& resolved, const std::string& lacks) {
  if (resolved.trains) return;
  throw Error("'" + resolved.config_name + "' is a model for other configs to use: " + lacks,
              {},
              "name a training config; 'forge ls' lists them");
}

}  // namespace forge::app
