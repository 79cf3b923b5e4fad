#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/text.h"
#include "core/project/names.h"
#include "core/project/new_files.h"

namespace forge::app {
namespace {

using project::ListedConfig;
using project::ListedProject;

struct LsOptions {
  bool all = false;
  bool json = false;
};

void print_configs(const ListedProject& listing, const fs::path& workspace) {
  std::cout << styled(tables::printable(listing.project.name), Style::bold) << "  "
            << tables::printable(listing.project.workspace_root == workspace
                                     ? listing.project.path
                                     : shown_path(listing.project.folder));
  if (!listing.project.description.empty())
    std::cout << "  " << tables::printable(listing.project.description);
  std::cout << "\n";
  std::vector<std::vector<std::string>> lines;
  for (size_t i = 0; i < listing.configs.size(); ++i) {
    const ListedConfig& row = listing.configs[i];
    const std::string& config = listing.project.configs[i].name;
    const std::string shown =
        config == listing.project.default_config ? "[" + config + "]" : config;
    if (row.problem) {
      const std::string problem = describe(*row.problem);
      lines.push_back({"  " + shown, "broken", problem.substr(0, problem.find('\n'))});
      continue;
    }
    lines.push_back({"  " + shown, row.summary.name, row.summary.description});
  }
  std::cout << aligned(lines);
}

nlohmann::json listing_json(const ListedProject& listing) {
  nlohmann::json configs = nlohmann::json::array();
  for (size_t i = 0; i < listing.configs.size(); ++i) {
    const ListedConfig& row = listing.configs[i];
    nlohmann::json entry = {
        {"config", listing.project.configs[i].name},
        {"name", row.summary.name},
        {"description", row.summary.description},
        {"trains", row.summary.trains},
        {"default", listing.project.configs[i].name == listing.project.default_config}};
    if (row.problem) entry["problem"] = describe(*row.problem);
    configs.push_back(std::move(entry));
  }
  return {{"project", listing.project.path},
          {"folder", listing.project.folder.string()},
          {"name", listing.project.name},
          {"description", listing.project.description},
          {"configs", configs}};
}

int list(const Context& context, const LsOptions& options) {
  project::ProjectList projects;
  if (!options.all && context.project_folder()) {
    projects.projects.push_back(context.project());
  } else {
    projects = context.all_projects(options.all);
  }
  LateProgress progress("reading configs");
  const auto listings = project::list_configs(
      std::move(projects.projects), context.host_environment(), progress.reporter());
  if (options.json) {
    print_json(json_list(listings, listing_json));
  } else {
    for (const ListedProject& listing : listings) {
      if (&listing != &listings.front()) std::cout << "\n";
      print_configs(listing, context.workspace().root);
    }
  }
  for (const ListedProject& listing : listings)
    print_warnings(project::misnamed_warnings(listing.project));
  for (const Error& problem : projects.problems) std::cerr << describe(problem) << "\n";
  bool broken = !projects.problems.empty();
  for (const ListedProject& listing : listings) {
    for (const ListedConfig& row : listing.configs) broken = broken || row.problem;
  }
  return static_cast<int>(broken ? ExitCode::usage : ExitCode::done);
}

/// Prints the files and what to do next, or as JSON `values` and the list "files".
int print_created(const std::vector<fs::path>& files,
                  const std::string& next,
                  nlohmann::json values,
                  bool json) {
  if (json) {
    values["files"] = texts_of(files, [](const fs::path& file) { return file.string(); });
    return print_json(values);
  }
  for (const fs::path& file : files) std::cout << "wrote " << shown_path(file) << "\n";
  std::cout << "next: " << next << "\n";
  return 0;
}

struct WorkspaceOptions {
  project::NewWorkspace request;
  std::string folder = ".";
  std::vector<std::string> libraries;
  bool json = false;
};

int create_workspace(const Context& context, const WorkspaceOptions& options) {
  project::NewWorkspace request = options.request;
  request.folder = project::absolute_folder(context.here() / options.folder);
  for (const std::string& library : options.libraries) {
    request.libraries.push_back(context.here() / library);
  }
  const std::vector<fs::path> files = project::create_workspace(request);
  const bool here = request.folder == project::absolute_folder(context.here());
  return print_created(
      files,
      (here ? "" : "cd " + shown_path(request.folder) + " && ") + "forge project create NAME",
      {{"workspace", request.folder.string()}},
      options.json);
}

void add_create_workspace(const Command& parent, const std::string& name) {
  const auto [command, options] =
      parent.add_command(name,
                         "Create a workspace: a folder of projects that use forge's templates",
                         create_workspace);
  const std::string path = name == "init" ? "forge init" : "forge ws create";
  command.examples(path + "\n" + path + " ~/experiments --name Experiments --library ~/templates")
      .see_also("forge project create");
  command.add_option("DIR", options.folder, "Folder, created if missing").show_default();
  command.add_option("--name", options.request.name, "Display name [default: the folder's name]");
  command.add_option(
      "--description <TEXT>", options.request.description, "One line for its README");
  command
      .add_option(
          "-l,--library <DIR>", options.libraries, "More templates, searched before forge's own")
      .repeated();
  add_json_option(command, options.json);
}

struct CreateOptions {
  project::NewProject request;
  std::string parent = ".";
  std::string copied_config;
  bool json = false;
};

int create_project(const Context& context, const CreateOptions& options) {
  project::NewProject request = options.request;
  request.parent = context.here() / options.parent;
  if (!options.copied_config.empty()) {
    request.copied_config = context.config(options.copied_config).config.file;
  }
  const project::CreatedProject created =
      project::create_project(request, context.host_environment());
  const std::string next = created.trains ? "forge run --all && forge compare" : "forge ls";
  return print_created(created.files,
                       "cd " + shown_path(created.folder) + " && " + next,
                       {{"project", created.folder.string()},
                        {"default_config", created.default_config},
                        {"trains", created.trains}},
                       options.json);
}

void add_create_project(const Command& parent) {
  const auto [command, options] = parent.add_command(
      "create", "Create a project with a config that can be run at once", create_project);
  command
      .examples(
          "forge project create \"Wider kernels\"\n"
          "forge project create sparse --in projects --description \"Fewer heads\"")
      .see_also("forge init, forge project new-config");
  project::NewProject& request = options.request;
  command.add_option("NAME", request.name, "Display name; the folder is named after it").required();
  command.add_option("--description <TEXT>", request.description, "One line for listings");
  command.add_option("--in <DIR>", options.parent, "Parent folder in a workspace").show_default();
  command.add_option("--project-dir-name <DIR>", request.folder_name, "Name of the folder");
  command.add_option(
      "--config-prefix <DIR>", request.config_prefix, "Folder of the configs [default: configs]");
  command.add_option("--default-config <NAME>", request.default_config, "Name of the first config");
  command.add_option("--from <CONFIG>", options.copied_config, "Config to copy as the first one");
  add_json_option(command, options.json);
}

struct NewConfigOptions {
  project::NewConfig request;
  std::string kind = "config";
  std::string copied_config;
  bool json = false;
};

int new_config(const Context& context, const NewConfigOptions& options) {
  // The projects that came with the program are not the user's to change from elsewhere.
  if (context.workspace().shipped)
    throw Error("no project here: the config would be written into " +
                    shown_path(context.workspace().root) + ", which came with forge",
                "change to a workspace of yours, or make one with 'forge init'");
  project::NewConfig request = options.request;
  request.project = context.project().folder;
  request.kind = options.kind == "config"    ? project::TemplateKind::config
                 : options.kind == "project" ? project::TemplateKind::project
                                             : project::TemplateKind::workspace;
  if (!options.copied_config.empty()) {
    request.copied_file = context.config(options.copied_config).config.file;
  }
  const fs::path file = create_config(request, context.host_environment());
  if (options.json) return print_json(nlohmann::json{{"file", file.string()}});
  std::cout << "wrote " << shown_path(file) << "\n";
  return 0;
}

void add_new_config(const Command& parent) {
  const auto [command, options] =
      parent.add_command("new-config", "Add a config or a template to the project", new_config);
  command
      .examples(
          "forge project new-config train_wide\n"
          "forge project new-config train_wide --extends configs/train_variant.yaml\n"
          "forge project new-config shared --type project")
      .see_also("forge ls, docs/TEMPLATES.md");
  project::NewConfig& request = options.request;
  command.add_option("NAME", request.name, "Name of the config").required();
  add_project_option(command);
  command.add_option("--description <TEXT>", request.description, "One line for listings");
  const Argument extends = command.add_option(
      "--extends <TEMPLATE>", request.extends, "Template to extend [default: the default config]");
  command.add_option("--from <CONFIG>", options.copied_config, "Config to copy").excludes(extends);
  command
      .add_option("--type",
                  options.kind,
                  "Where to put it: with the configs, or with the templates of the project or the "
                  "workspace")
      .one_of({"config", "project", "workspace"})
      .show_default();
  add_json_option(command, options.json);
}

}  // namespace

void add_ls(const Command& app) {
  const auto [command, options] =
      app.add_command("ls", "List the configs of the current project", list);
  command
      .details(
          "Outside of any project it lists those of the whole workspace. The default config "
          "stands in brackets.")
      .examples("forge ls\nforge ls -p canon\nforge ls --all --json")
      .see_also("forge show, forge index");
  add_project_option(command);
  command.add_flag("-r,--recursive,--all",
                   options.all,
                   "List all projects below the folder of -p, or of the workspace");
  add_json_option(command, options.json);
}

void add_init(const Command& app) { add_create_workspace(app, "init"); }

void add_workspace(const Command& app) {
  add_create_workspace(app.add_command("ws", "Manage workspaces").requires_subcommand(), "create");
}

void add_project(const Command& app) {
  const Command command =
      app.add_command("project", "Create projects and configs").requires_subcommand();
  add_create_project(command);
  add_new_config(command);
}

}  // namespace forge::app
