#include <unistd.h>
#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
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

void print_configs(const ListedProject& listing, const fs::path& workspace, bool colour) {
  std::cout << styled(listing.project.name, Style::bold, colour) << "  "
            << (listing.project.workspace_root == workspace ? listing.project.path
                                                            : shown_path(listing.project.folder));
  if (!listing.project.description.empty()) std::cout << "  " << listing.project.description;
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

/// Prints the listings; exit code 2 where a config is broken.
int print(const std::vector<ListedProject>& listings, const fs::path& workspace, bool json) {
  bool broken = false;
  for (const ListedProject& listing : listings) {
    for (const ListedConfig& row : listing.configs) broken = broken || row.problem;
  }
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const ListedProject& listing : listings) list.push_back(listing_json(listing));
    print_json(list);
  } else {
    for (size_t i = 0; i < listings.size(); ++i) {
      if (i > 0) std::cout << "\n";
      print_configs(listings[i], workspace, use_colour(STDOUT_FILENO));
    }
  }
  return static_cast<int>(broken ? ExitCode::usage : ExitCode::done);
}

int list(const Context& context, const LsOptions& options) {
  project::ProjectList projects;
  if (!options.all && context.project_folder()) {
    projects.projects.push_back(context.project());
  } else {
    projects = context.all_projects(options.all);
  }
  const auto listings =
      project::list_configs(std::move(projects.projects), context.host_environment());
  const int code = print(listings, context.workspace().root, options.json);
  for (const Error& problem : projects.problems) std::cerr << describe(problem) << "\n";
  return projects.problems.empty() ? code : static_cast<int>(ExitCode::usage);
}

}  // namespace

void add_ls(const Command& app, Program& program) {
  auto options = std::make_shared<LsOptions>();
  const Command command =
      app.add_subcommand("ls", "List the configs of the project here, or all projects");
  add_project_option(command, program);
  command.add_flag("-r,--recursive,--all",
                   options->all,
                   "All projects below the folder of -p, else of the workspace");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return list(c, *options); };
  });
}

namespace {

struct WorkspaceOptions {
  std::string folder = ".";
  std::string name;
  std::string description;
  std::vector<std::string> libraries;
  bool json = false;
};

int create(const Context& context, const WorkspaceOptions& options) {
  project::NewWorkspace request;
  request.folder = project::absolute_folder(context.here() / options.folder);
  request.name = options.name;
  request.description = options.description;
  for (const std::string& library : options.libraries) {
    request.libraries.push_back(context.here() / library);
  }
  const std::vector<fs::path> files = project::create_workspace(request);
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const fs::path& file : files) list.push_back(file.string());
    print_json(nlohmann::json{{"workspace", request.folder.string()}, {"files", list}});
    return 0;
  }
  for (const fs::path& file : files) std::cout << "wrote " << shown_path(file) << "\n";
  const bool here = request.folder == project::absolute_folder(context.here());
  std::cout << "next: " << (here ? "" : "cd " + shown_path(request.folder) + " && ")
            << "forge project create NAME\n";
  return 0;
}

/// The command under a name of its own.
void add_create(const Command& parent,
                const std::string& name,
                const std::string& example,
                Program& program) {
  auto options = std::make_shared<WorkspaceOptions>();
  const Command command = parent.add_subcommand(
      name, "Make a workspace of your own: a folder with projects that use forge's templates");
  command.footer("Examples:\n  " + example + "\n  " + example +
                 " ~/experiments --name Experiments --library ~/templates");
  command.add_option("folder", options->folder, "Folder; made where it is missing")
      .capture_default();
  command.add_option("--name", options->name, "Display name; else the folder's");
  command.add_option("--description", options->description, "A line for its README");
  command
      .add_option("-l,--library",
                  options->libraries,
                  "Another folder of templates, searched before forge's own; may be repeated")
      .type_name("DIR")
      .repeated();
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return create(c, *options); };
  });
}

}  // namespace

void add_workspace(const Command& app, Program& program) {
  const Command workspace = app.add_subcommand("ws", "Workspaces").requires_subcommand();
  add_create(workspace, "create", "forge ws create", program);
  add_create(app, "init", "forge init", program);
}

namespace {

struct CreateOptions {
  project::NewProject request;
  std::string parent = ".";
  std::string copied_config;
  bool json = false;
};

int create(const Context& context, const CreateOptions& options) {
  project::NewProject request = options.request;
  request.parent = context.here() / options.parent;
  if (!options.copied_config.empty()) {
    request.copied_config = context.config(options.copied_config).config.file;
  }
  const project::CreatedProject created = create_project(request, context.host_environment());
  if (options.json) {
    nlohmann::json files = nlohmann::json::array();
    for (const fs::path& file : created.files) files.push_back(file.string());
    print_json(nlohmann::json{{"project", created.folder.string()},
                              {"files", files},
                              {"default_config", created.default_config},
                              {"trains", created.trains}});
    return 0;
  }
  for (const fs::path& file : created.files) std::cout << "wrote " << shown_path(file) << "\n";
  std::cout << "next: cd " << shown_path(created.folder) << " && "
            << (created.trains ? "forge run --all && forge compare" : "forge ls") << "\n";
  return 0;
}

void add_create(const Command& parent, Program& program) {
  auto options = std::make_shared<CreateOptions>();
  const Command command =
      parent.add_subcommand("create", "Make a project that can be run as it is");
  command.footer(
      "Examples:\n"
      "  forge project create \"Wider kernels\"\n"
      "  forge project create sparse --in projects --description \"Fewer heads\"");
  project::NewProject& request = options->request;
  command.add_option("name", request.name, "Display name; its folder is called after it")
      .required();
  command.add_option("--description", request.description, "One line for listings");
  command.add_option("--in", options->parent, "Folder, in a workspace, to make it in")
      .type_name("DIR")
      .capture_default();
  command.add_option("--project-dir-name", request.folder_name, "Name of its folder")
      .type_name("NAME");
  command.add_option("--config-prefix", request.config_prefix, "Folder of configs; else configs")
      .type_name("NAME");
  command.add_option("--default-config", request.default_config, "Name of the first config")
      .type_name("NAME");
  command.add_option("--from", options->copied_config, "A config whose text the first one takes")
      .type_name("CONFIG");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return create(c, *options); };
  });
}

struct NewConfigOptions {
  project::NewConfig request;
  std::string kind = "config";
  std::string copied_config;
  bool json = false;
};

int new_config(const Context& context, const NewConfigOptions& options) {
  project::NewConfig request = options.request;
  request.project = context.project().folder;
  request.kind = options.kind == "config"    ? project::TemplateKind::config
                 : options.kind == "project" ? project::TemplateKind::project
                                             : project::TemplateKind::workspace;
  if (!options.copied_config.empty()) {
    request.copied_file = context.config(options.copied_config).config.file;
  }
  const fs::path file = create_config(request, context.host_environment());
  if (options.json) {
    print_json(nlohmann::json{{"file", file.string()}});
  } else {
    std::cout << "wrote " << shown_path(file) << "\n";
  }
  return 0;
}

void add_new_config(const Command& parent, Program& program) {
  auto options = std::make_shared<NewConfigOptions>();
  const Command command =
      parent.add_subcommand("new-config", "Add a config to the project, or a template");
  command.footer(
      "Examples:\n"
      "  forge project new-config train_wide\n"
      "  forge project new-config train_wide --extends configs/train_variant.yaml\n"
      "  forge project new-config shared --type project");
  project::NewConfig& request = options->request;
  command.add_option("name", request.name, "Name of the config").required();
  add_project_option(command, program);
  command.add_option("--description", request.description, "One line for listings");
  const Argument extends =
      command.add_option("--extends", request.extends, "Template; else the default config")
          .type_name("TEMPLATE");
  command.add_option("--from", options->copied_config, "A config to copy")
      .type_name("CONFIG")
      .excludes(extends);
  command
      .add_option("--type",
                  options->kind,
                  "Where it goes: among the configs, the project's templates, the workspace's")
      .one_of({"config", "project", "workspace"})
      .capture_default();
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return new_config(c, *options); };
  });
}

}  // namespace

void add_project(const Command& app, Program& program) {
  const Command command =
      app.add_subcommand("project", "Make projects and configs").requires_subcommand();
  add_create(command, program);
  add_new_config(command, program);
}

}  // namespace forge::app
