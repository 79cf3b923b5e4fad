#include <iostream>

#include <nlohmann/json.hpp>

#include "app/command_line.h"
#include "app/terminal.h"
#include "core/base/display_text.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/config/keys.h"
#include "core/config/own_blocks.h"
#include "core/config/resolve.h"
#include "core/lint/check.h"
#include "core/project/template_arguments.h"

namespace forge::app {
namespace {

struct ShowOptions : ConfigOptions {
  bool json = false;
};

int show_config(const Context& context, const ShowOptions& options) {
  const project::NamedConfig named = context.find_config(options.config);
  const config::ResolvedConfig resolved =
      context.resolve(context.document(named), options.overrides);
  if (options.json) return print_json(resolved.json);
  std::vector<std::vector<std::string>> lines;
  for (const auto& [path, origin] : resolved.origins) {
    const nlohmann::json::json_pointer pointer("/" + join(split(path, '.'), "/"));
    if (!resolved.json.contains(pointer) || config::is_hidden_leaf(path)) continue;
    const std::string place = origin.set_by.origin.describe();
    lines.push_back({path,
                     json_text(config::shown_leaf(path, resolved.json.at(pointer))),
                     place.empty() ? origin.set_by.layer : origin.set_by.layer + ", " + place});
  }
  std::cout << styled(tables::printable("# config " + named.config.name + " of the project " +
                                        named.project.path),
                      Style::dim)
            << "\n"
            << aligned(lines);
  return 0;
}

struct CheckOptions {
  std::vector<std::string> configs;
  bool all = false;
  bool strict = false;
  bool json = false;
};

lint::Report lint_configs(const Context& context, const CheckOptions& options) {
  std::vector<lint::Selection> selections;
  std::vector<Error> broken;
  const lint::TryBlocks try_blocks = [&](config::ResolvedConfig& resolved) {
    context.describe_own_blocks(resolved);
  };
  const auto select_all = [&](project::Project project) {
    const project::ConfigList configs = project.configs;
    selections.push_back({std::move(project), configs, {}, try_blocks});
  };
  if (options.configs.empty()) context.require_no_template_arguments();
  if (!options.configs.empty()) {
    for (const std::string& name : options.configs) {
      ChosenConfig chosen = context.config(name);
      selections.push_back({std::move(chosen.project),
                            project::ConfigList({chosen.config}),
                            chosen.variables,
                            try_blocks});
    }
  } else if (options.all || !context.project_folder()) {
    project::ProjectList list = context.all_projects(true);
    for (project::Project& project : list.projects) select_all(std::move(project));
    broken = std::move(list.problems);
  } else {
    select_all(context.project());
  }
  LateProgress progress("checking configs");
  return lint::check(selections, broken, context.host_environment(), progress.reporter());
}

int check(const Context& context, const CheckOptions& options) {
  const lint::Report report = lint_configs(context, options);
  if (options.json) {
    print_json(lint::to_json(report));
  } else {
    std::cout << lint::to_text(report, use_colour());
  }
  const bool failed = report.count(lint::Severity::error) > 0 ||
                      (options.strict && report.count(lint::Severity::warning) > 0);
  return static_cast<int>(failed ? ExitCode::failed : ExitCode::done);
}

int list_keys(const Context&, bool json) {
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
  if (json) return print_json(list);
  std::cout << aligned(lines);
  return 0;
}

struct ArgumentsOptions {
  std::string config;
  OutputOptions output;
};

int list_arguments(const Context& context, const ArgumentsOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const auto arguments = project::read_template_arguments(
      project::load_graph(chosen.project, chosen.config, context.host_environment()));
  if (options.output.json) return write_output(to_json(arguments), options.output);
  std::vector<std::vector<std::string>> lines;
  for (const project::TemplateArgument& argument : arguments) {
    lines.push_back({usage_of(argument), argument.help});
  }
  return write_output(lines.empty()
                          ? "the config '" + chosen.config.name + "' declares no arguments\n"
                          : aligned(lines),
                      options.output);
}

}  // namespace

void add_show(const Command& app) {
  const auto [command, options] = app.add_command(
      "show", "Print a resolved config and where each value comes from", show_config);
  command
      .examples(
          "forge show train_canon_ac\n"
          "forge show train_canon_ac --set profile=full --json")
      .see_also("forge explain, forge diff, forge keys");
  add_config_options(command, options);
  add_json_option(command, options.json, "Print the config as JSON, as a run stores it");
}

void add_check(const Command& app) {
  const auto [command, options] =
      app.add_command("check", "Find mistakes in configs and templates", check);
  command
      .details(
          "Finds misspelt keys, blocks and variables, among others. Without a name it checks all "
          "configs of the current project, and outside of any project those of the whole "
          "workspace. Exit code 1 when an error is found.")
      .examples(
          "forge check\n"
          "forge check train_canon_ac\n"
          "forge check --all --strict --json")
      .see_also("forge show, docs/TEMPLATES.md");
  add_configs_argument(command, options.configs, "Configs to check");
  command.add_flag("-r,--recursive,--all",
                   options.all,
                   "Check all projects below the folder of -p, or of the workspace");
  command.add_flag("--strict", options.strict, "Exit with 1 on warnings too");
  add_json_option(command, options.json);
}

void add_keys(const Command& app) {
  const auto [command, json] =
      app.add_command("keys", "List every config key with its default and meaning", list_keys);
  command.examples("forge keys\nforge keys | grep optimizer").see_also("forge show, forge explain");
  add_json_option(command, json);
}

void add_arguments(const Command& app) {
  const auto [command, options] = app.add_command(
      "arguments", "List the arguments that a config's templates declare", list_arguments);
  command
      .examples(
          "forge arguments train_llama\n"
          "forge pp train_llama --text tiny_stories      render with one of them")
      .see_also("forge pp, forge run");
  add_config_argument(command, options.config);
  add_output_options(command, options.output);
}

}  // namespace forge::app
