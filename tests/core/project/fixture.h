#pragma once

#include <filesystem>
#include <string>

#include "core/jinja/render.h"
#include "core/project/project.h"
#include "tests/support/support.h"

namespace forge::tests {

/// The same machine on every machine.
inline jinja::HostEnvironment fixed_surroundings(const std::filesystem::path& here = "/") {
  jinja::HostEnvironment host_environment;
  host_environment.working_directory = here.string();
  host_environment.home_directory = "/nowhere";
  host_environment.host_name = "host";
  return host_environment;
}

/// A workspace in a temporary folder, empty at first.
class TemporaryWorkspace {
 public:
  TemporaryWorkspace() { folder.write("forge_workspace/workspace.yaml", ""); }

  /// Writes projects/NAME/meta.yaml.
  void add_project(const std::string& name, const std::string& meta = "") const {
    folder.write("projects/" + name + "/meta.yaml", meta);
  }
  /// Writes a config of projects/NAME.
  void add_config(const std::string& project,
                  const std::string& config,
                  const std::string& text = "name: x\n") const {
    folder.write("projects/" + project + "/templates/configs/" + config + ".yaml", text);
  }
  project::Workspace workspace() const { return *project::find_workspace(folder.path()); }
  project::Project project(const std::string& name) const {
    return project::load_project(workspace(), folder / ("projects/" + name), fixed_surroundings());
  }

  TemporaryFolder folder;
};

/// The source tree's own workspace.
inline project::Workspace shipped_workspace() { return *project::find_workspace(tests_dir()); }

}  // namespace forge::tests
