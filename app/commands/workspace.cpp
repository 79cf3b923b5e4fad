#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "core/base/fs.h"
#include "core/project/new_files.h"

namespace forge::app {
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

}  // namespace forge::app
