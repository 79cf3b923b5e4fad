#include "app/context.h"

#include "backends/backends.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/run/runs_dir.h"

namespace forge::app {

Context::Context(std::string command_line)
    : command_line_(std::move(command_line)),
      here_(std::filesystem::current_path()),
      program_(program_path()),
      surroundings_(templating::Surroundings::of_this_machine()) {}

const project::Workspace& Context::workspace() const {
  if (!workspace_) workspace_ = project::locate_workspace(here_, program_);
  return *workspace_;
}

project::Project Context::project(const std::string& chosen) const {
  if (!chosen.empty()) return project::find_project(workspace(), chosen, here_, surroundings_);
  if (const auto folder = project::enclosing_project_folder(workspace(), here_)) {
    return project::load_project(workspace(), *folder, surroundings_);
  }
  if (workspace().default_project.empty()) {
    throw Error("no project here, and the workspace names no default project",
                {},
                "go into a project's folder or name one with -p");
  }
  return project::load_project(
      workspace(), workspace().root / workspace().default_project, surroundings_);
}

project::NamedConfig Context::config(const std::string& name,
                                     const std::string& chosen_project) const {
  if (chosen_project.empty()) return project::find_config(workspace(), name, here_, surroundings_);
  const project::Project chosen = project(chosen_project);
  return {chosen, project::config_of(chosen, name)};
}

std::filesystem::path Context::runs_dir() const {
  // Nothing is written into the workspace that came with the program, even where it could be.
  return run::runs_dir(workspace().shipped ? here_ : workspace().root);
}

std::unique_ptr<run::Backend> Context::backend(const std::string& name) const {
  return backends::make_backend(name, program_);
}

}  // namespace forge::app
