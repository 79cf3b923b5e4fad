#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/fs.h"
#include "core/base/text.h"
#include "core/project/new_files.h"

namespace forge::app {
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
  const project::CreatedProject created = create_project(request, context.surroundings());
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
  const fs::path file = create_config(request, context.surroundings());
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
