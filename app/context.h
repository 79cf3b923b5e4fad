#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/experiment.h"
#include "core/project/names.h"
#include "core/project/workspace.h"
#include "core/run/backend.h"
#include "core/templating/render.h"

namespace forge::app {

/// What the command line says for every command alike.
struct GlobalOptions {
  std::string project;  ///< -p: a folder or a name, "" where none is given
  std::string config;   ///< -t before the command: stands in for the command's own
  std::string now;      ///< --now: the time that templates see, "" for the clock's
  /// Options that the command does not know: arguments for the config's templates, as typed.
  std::vector<std::string> template_arguments;
  /// Options that the command does know, one of which may have been meant.
  std::vector<std::string> command_options;
};

/// A config with the variables that the command line gives its templates.
struct ChosenConfig : project::NamedConfig {
  templating::Variables variables;
};

/// Where the program was called and what it finds from there. Everything is looked up on demand:
/// a command pays only for what it uses.
class Context {
 public:
  Context(std::string command_line, GlobalOptions globals);

  const std::string& command_line() const { return command_line_; }  ///< as typed
  const std::filesystem::path& here() const { return here_; }
  const std::filesystem::path& program() const { return program_; }
  const templating::Surroundings& surroundings() const { return surroundings_; }

  /// The workspace around the folder of -p, else around the current one, else the one that came
  /// with the program.
  const project::Workspace& workspace() const;
  /// Folder of the project of -p, else of the one around the current folder, if there is one.
  std::optional<std::filesystem::path> project_folder() const;
  /// All projects below the folder of -p, else of the workspace around the current folder; outside
  /// any, those below that folder where `search_here` says so, else those that came with the
  /// program.
  project::ProjectList all_projects(bool search_here) const;
  /// The project of -p, else the one around the current folder, else the workspace's default.
  project::Project project() const;
  /// A config by name, of the project of -p where that is given, else of the whole workspace; ""
  /// is that of -t, else the project's default config.
  ChosenConfig config(const std::string& name) const;
  /// The config with what the command line gives its templates, whose arguments it declares.
  ChosenConfig chosen(project::NamedConfig named) const;

  std::filesystem::path runs_dir() const;
  /// The backend of a resolved config.
  std::unique_ptr<run::Backend> backend(const config::Experiment& experiment) const;

 private:
  std::string command_line_;
  GlobalOptions globals_;
  std::filesystem::path here_;
  std::filesystem::path program_;
  templating::Surroundings surroundings_;
  mutable std::optional<project::Workspace> workspace_;
};

}  // namespace forge::app
