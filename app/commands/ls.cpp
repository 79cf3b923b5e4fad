#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/project/listing.h"

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
  const auto listings = project::list_configs(std::move(projects.projects), context.surroundings());
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

}  // namespace forge::app
