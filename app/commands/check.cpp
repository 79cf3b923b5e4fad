#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/lint/check.h"
#include "core/lint/write.h"

namespace forge::app {
namespace {

struct CheckOptions {
  std::vector<std::string> configs;
  bool all = false;
  bool strict = false;
  bool json = false;
};

lint::Report report_of(const Context& context, const CheckOptions& options) {
  std::vector<lint::Selection> selections;
  std::vector<Error> broken;
  if (!options.configs.empty()) {
    for (const std::string& name : options.configs) {
      ChosenConfig chosen = context.config(name);
      selections.push_back({std::move(chosen.project), {chosen.config}, chosen.variables});
    }
  } else if (options.all || !context.project_folder()) {
    project::ProjectList list = context.all_projects(true);
    for (project::Project& project : list.projects) {
      std::vector<project::Config> configs = project.configs;
      selections.push_back({std::move(project), std::move(configs), {}});
    }
    broken = std::move(list.problems);
  } else {
    project::Project project = context.project();
    std::vector<project::Config> configs = project.configs;
    selections.push_back({std::move(project), std::move(configs), {}});
  }
  return lint::check(selections, broken, context.surroundings());
}

int check(const Context& context, const CheckOptions& options) {
  const lint::Report report = report_of(context, options);
  if (options.json) {
    print_json(lint::to_json(report));
  } else {
    std::cout << lint::to_text(report, use_colour(STDOUT_FILENO));
  }
  const bool failed = report.count(lint::Severity::error) > 0 ||
                      (options.strict && report.count(lint::Severity::warning) > 0);
  return static_cast<int>(failed ? ExitCode::failed : ExitCode::done);
}

}  // namespace

void add_check(const Command& app, Program& program) {
  auto options = std::make_shared<CheckOptions>();
  const Command command = app.add_subcommand(
      "check", "Look for mistakes in configs: misspelt keys, blocks and variables, and more");
  command.footer(
      "Without a name all configs of the project here are checked, outside of one those of the\n"
      "whole workspace. Exit code 1 where an error is found.\n"
      "\n"
      "Examples:\n"
      "  forge check\n"
      "  forge check train_canon_ac\n"
      "  forge check --all --strict --json");
  add_configs_options(command, program, options->configs);
  command.add_flag("-r,--recursive,--all",
                   options->all,
                   "All projects below the folder of -p, else of the workspace");
  command.add_flag("--strict", options->strict, "Exit code 1 on warnings too");
  command.add_flag("--json", options->json, "As JSON");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return check(c, *options); };
  });
}

}  // namespace forge::app
