#include <unistd.h>
#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/resolve.h"
#include "core/lint/check.h"
#include "core/project/template_arguments.h"

namespace forge::app {
namespace {

struct ShowOptions {
  std::string config;
  std::vector<std::string> overrides;
  bool json = false;
};

int show(const Context& context, const ShowOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  config::ResolveOptions resolve_options;
  resolve_options.overrides = options.overrides;
  resolve_options.host_environment = context.host_environment();
  resolve_options.variables = chosen.variables;
  const config::ResolvedConfig resolved =
      config::resolve(chosen.project, chosen.config.name, resolve_options);
  if (options.json) {
    print_json(resolved.json);
    return 0;
  }
  std::vector<std::vector<std::string>> lines;
  for (const auto& [path, origin] : resolved.origins) {
    const std::string pointer = "/" + join(split(path, '.'), "/");
    const nlohmann::json::json_pointer where(pointer);
    if (!resolved.json.contains(where)) continue;
    const std::string place = origin.set_by.origin.describe();
    lines.push_back({path,
                     json_text(resolved.json.at(where)),
                     place.empty() ? origin.set_by.layer : origin.set_by.layer + ", " + place});
  }
  std::cout << aligned(lines);
  return 0;
}

}  // namespace

void add_show(const Command& app, Program& program) {
  auto options = std::make_shared<ShowOptions>();
  const Command command =
      app.add_subcommand("show", "Print a config as it resolves, and who set each value");
  add_config_options(command, program, options->config);
  add_set_option(command, options->overrides);
  command.add_flag("--json", options->json, "The resolved config as JSON, as a run stores it");
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return show(c, *options); };
  });
}

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
  return lint::check(selections, broken, context.host_environment());
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

namespace {

int list_keys(bool json) {
  nlohmann::json list = nlohmann::json::array();
  std::vector<std::vector<std::string>> lines;
  for (const config::Key& key : config::all_keys()) {
    list.push_back({{"key", key.path},
                    {"type", key.type},
                    {"default", key.default_value},
                    {"required", key.required},
                    {"help", key.help}});
    lines.push_back({key.path, key.required ? "required" : key.default_value, key.help});
  }
  std::cout << (json ? json_text(list, 2) + "\n" : aligned(lines));
  return 0;
}

}  // namespace

void add_keys(const Command& app, Program& program) {
  auto json = std::make_shared<bool>(false);
  const Command command =
      app.add_subcommand("keys", "List every key of a config with its default and meaning");
  command.add_flag("--json", *json, "As JSON");
  command.callback(
      [&program, json] { program.action = [json](const Context&) { return list_keys(*json); }; });
}

namespace {

struct ArgumentsOptions {
  std::string config;
  OutputOptions output;
};

int list_arguments(const Context& context, const ArgumentsOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const auto arguments =
      project::template_arguments_of(chosen.project, chosen.config, context.host_environment());
  if (options.output.json) {
    hand_over(to_json(arguments), options.output);
    return 0;
  }
  std::vector<std::vector<std::string>> lines;
  for (const project::TemplateArgument& argument : arguments) {
    lines.push_back({usage_of(argument), argument.help});
  }
  hand_over(lines.empty() ? "the config '" + chosen.config.name + "' takes no arguments\n"
                          : aligned(lines),
            options.output);
  return 0;
}

}  // namespace

void add_arguments(const Command& app, Program& program) {
  auto options = std::make_shared<ArgumentsOptions>();
  const Command command =
      app.add_subcommand("arguments", "List the arguments that a config's templates take");
  command.footer(
      "Examples:\n"
      "  forge arguments 4M\n"
      "  forge pp 4M --max-steps 5      one of them given");
  add_config_options(command, program, options->config);
  add_output_options(command, options->output);
  command.callback([&program, options] {
    program.action = [options](const Context& c) { return list_arguments(c, *options); };
  });
}

}  // namespace forge::app
