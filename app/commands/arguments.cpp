#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/output.h"
#include "app/terminal.h"
#include "core/project/template_arguments.h"

namespace forge::app {
namespace {

struct ArgumentsOptions {
  std::string config;
  OutputOptions output;
};

int list_arguments(const Context& context, const ArgumentsOptions& options) {
  const ChosenConfig chosen = context.config(options.config);
  const auto arguments =
      project::template_arguments_of(chosen.project, chosen.config, context.surroundings());
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
