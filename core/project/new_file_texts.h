#pragma once

#include <string>
#include <utility>
#include <vector>

namespace forge::project {

/// Paths below a folder and what the files hold.
using NewFiles = std::vector<std::pair<std::string, std::string>>;

/// The template of forge's library in which every config of its own ends.
inline constexpr const char* library_root = "base/config.yaml";

/// The files of a new workspace's forge_workspace/. A library is an absolute folder or one below
/// the workspace's root.
NewFiles workspace_files(const std::string& name,
                         const std::string& description,
                         const std::vector<std::string>& libraries);

struct ProjectTexts {
  std::string name, description, folder_name, config_prefix, default_config;
  std::string copied_config;  ///< text of the default config, "" where it is made
};

std::string meta_text(const ProjectTexts& texts);

/// The files of a new project; with the library, ones that train.
NewFiles project_files(const ProjectTexts& texts, bool has_library);

/// A config that extends `parent` ("": nothing), with a block for its changes where it has one.
std::string config_text(const std::string& name,
                        const std::string& description,
                        const std::string& parent,
                        bool has_overrides);

}  // namespace forge::project
