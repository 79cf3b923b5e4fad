#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/jinja/render.h"
#include "core/project/project.h"

/// Making workspaces, projects and configs. Nothing that exists is ever written over; a folder
/// appears whole or not at all.
namespace forge::project {

struct NewWorkspace {
  std::filesystem::path folder;  ///< made where it is missing
  std::string name;              ///< "": the folder's name
  std::string description;
  /// More folders with templates for every project, searched before forge's own library.
  std::vector<std::filesystem::path> libraries;
};

/// Makes FOLDER/forge_workspace/ with its files and returns their paths. Throws Error where the
/// folder is a workspace already.
std::vector<std::filesystem::path> create_workspace(const NewWorkspace& request);

struct NewProject {
  std::filesystem::path parent;  ///< folder, in a workspace, in which the project's own is made
  std::string name;              ///< display name
  std::string description;
  std::string folder_name;  ///< "": the name in lower case with '_' for what is no letter or digit
  std::string config_prefix;   ///< "": "configs"
  std::string default_config;  ///< "": "train_baseline", or "default" without forge's library
  /// A config whose text the default config takes; "" for a project that can be run as it is.
  std::filesystem::path copied_config;
};

struct CreatedProject {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> files;
  std::string default_config;
  bool trains = false;  ///< `forge run` can run the default config
};

/// Makes a project with a README, a default config and, where the workspace's templates hold
/// forge's library, a variant and a table to compare the two. Throws Error outside a workspace.
CreatedProject create_project(const NewProject& request,
                              const jinja::HostEnvironment& host_environment);

/// Where a new template of a project goes.
enum class TemplateKind { config, project, workspace };

struct NewConfig {
  std::filesystem::path project;  ///< its folder
  std::string name;               ///< with or without ".yaml"; may hold '/'
  std::string description;
  TemplateKind kind = TemplateKind::config;
  std::string extends;                ///< name of a template; "": the project's default config
  std::filesystem::path copied_file;  ///< the text to begin with instead; "": none
  std::string text;                   ///< all of its text instead; "": none
};

/// Makes a template file and returns its path. Throws Error where it exists.
std::filesystem::path create_config(const NewConfig& request,
                                    const jinja::HostEnvironment& host_environment);

/// Where a block of one's own stands in a layer.
enum class BlockPlace { mixer, mlp, canon };

struct NewBlock {
  std::filesystem::path project;  ///< its folder
  std::string name;               ///< of the file and the block: a name of a Python module
  BlockPlace place = BlockPlace::mixer;
};

struct CreatedBlock {
  std::vector<std::filesystem::path> files;
  std::string config;  ///< that uses it
  std::filesystem::path test;
};

/// Writes blocks/NAME.py, a config train_NAME that changes the project's default config by it, a
/// table of the two and a test, which pass as they are. Throws Error where one of them exists, the
/// name is none or the default config does not train with forge's library.
CreatedBlock create_block(const NewBlock& request, const jinja::HostEnvironment& host_environment);

/// Whether the project's templates can extend those of forge's library.
bool has_library(const Project& project);

/// "My Idea 2" -> "my_idea_2".
std::string folder_name_of(const std::string& name);

}  // namespace forge::project
