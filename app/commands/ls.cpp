#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/terminal.h"
#include "core/base/error.h"

namespace forge::app {
namespace {

struct Options {
  bool all = false;
  bool json = false;
};

/// A project with the summaries of its configs, or the reason why one has none.
struct Listing {
  project::Project project;
  struct Row {
    project::ConfigSummary summary;
    std::string problem;  ///< "" where the config renders
  };
  std::vector<Row> rows;
};

Listing list_project(const Context& context, project::Project listed) {
  Listing listing{std::move(listed), {}};
  for (const project::Config& config : listing.project.configs) {
    Listing::Row row;
    try {
      row.summary = project::summarize(listing.project, config, context.surroundings());
    } catch (const Error& error) {
      row.problem = describe(error);
    }
    row.summary.name = row.summary.name.empty() ? config.name : row.summary.name;
    listing.rows.push_back(std::move(row));
  }
  return listing;
}

void print_configs(const Listing& listing, bool colour) {
  std::cout << styled(listing.project.name, Style::bold, colour) << "  " << listing.project.path;
  if (!listing.project.description.empty()) std::cout << "  " << listing.project.description;
  std::cout << "\n";
  std::vector<std::vector<std::string>> lines;
  for (size_t i = 0; i < listing.rows.size(); ++i) {
    const Listing::Row& row = listing.rows[i];
    const std::string& config = listing.project.configs[i].name;
    const std::string shown =
        config == listing.project.default_config ? "[" + config + "]" : config;
    if (!row.problem.empty()) {
      lines.push_back({"  " + shown, "broken", row.problem.substr(0, row.problem.find('\n'))});
      continue;
    }
    lines.push_back({"  " + shown, row.summary.name, row.summary.description});
  }
  std::cout << aligned(lines);
}

nlohmann::json to_json(const Listing& listing) {
  nlohmann::json configs = nlohmann::json::array();
  for (size_t i = 0; i < listing.rows.size(); ++i) {
    const Listing::Row& row = listing.rows[i];
    nlohmann::json entry = {
        {"config", listing.project.configs[i].name},
        {"name", row.summary.name},
        {"description", row.summary.description},
        {"trains", row.summary.trains},
        {"default", listing.project.configs[i].name == listing.project.default_config}};
    if (!row.problem.empty()) entry["problem"] = row.problem;
    configs.push_back(std::move(entry));
  }
  return {{"project", listing.project.path},
          {"name", listing.project.name},
          {"description", listing.project.description},
          {"configs", configs}};
}

/// Prints the listings; exit code 2 where a config is broken.
int print(const std::vector<Listing>& listings, bool json) {
  bool broken = false;
  for (const Listing& listing : listings) {
    for (const Listing::Row& row : listing.rows) broken = broken || !row.problem.empty();
  }
  if (json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Listing& listing : listings) list.push_back(to_json(listing));
    std::cout << list.dump(2) << "\n";
  } else {
    for (size_t i = 0; i < listings.size(); ++i) {
      if (i > 0) std::cout << "\n";
      print_configs(listings[i], use_colour(STDOUT_FILENO));
    }
  }
  return static_cast<int>(broken ? ExitCode::usage : ExitCode::done);
}

int list(const Context& context, const Options& options) {
  std::vector<Listing> listings;
  if (!options.all && context.project_folder()) {
    listings.push_back(list_project(context, context.project()));
    return print(listings, options.json);
  }
  project::ProjectList projects =
      project::load_projects(context.workspace(), context.surroundings());
  for (project::Project& project : projects.projects) {
    listings.push_back(list_project(context, std::move(project)));
  }
  const int code = print(listings, options.json);
  for (const Error& problem : projects.problems) std::cerr << describe(problem) << "\n";
  return projects.problems.empty() ? code : static_cast<int>(ExitCode::usage);
}

}  // namespace

void add_ls(CLI::App& app, Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("ls", "List the configs of the project here, or all projects");
  add_project_option(*command, program);
  command->add_flag(
      "-r,--recursive,--all", options->all, "All projects of the workspace, also inside one");
  command->add_flag("--json", options->json, "As JSON");
  command->callback([&program, options] {
    program.action = [options](const Context& c) { return list(c, *options); };
  });
}

}  // namespace forge::app
