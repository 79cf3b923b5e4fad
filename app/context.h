#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/project/names.h"
#include "core/project/workspace.h"
#include "core/run/backend.h"
#include "core/templating/render.h"

namespace forge::app {

/// Where the program was called and what it finds from there. Everything is looked up on demand:
/// a command pays only for what it uses.
class Context {
 public:
  explicit Context(std::string command_line);

  const std::string& command_line() const { return command_line_; }  ///< as typed
  const std::filesystem::path& here() const { return here_; }
  const std::filesystem::path& program() const { return program_; }
  const templating::Surroundings& surroundings() const { return surroundings_; }

  const project::Workspace& workspace() const;
  /// The project of -p, else the one around the current folder, else the workspace's default.
  project::Project project(const std::string& chosen) const;
  /// A config by name, of the chosen project where -p names one, else of the whole workspace.
  project::NamedConfig config(const std::string& name, const std::string& chosen_project) const;

  std::filesystem::path runs_dir() const;
  std::unique_ptr<run::Backend> backend(const std::string& name) const;

 private:
  std::string command_line_;
  std::filesystem::path here_;
  std::filesystem::path program_;
  templating::Surroundings surroundings_;
  mutable std::optional<project::Workspace> workspace_;
};

}  // namespace forge::app
