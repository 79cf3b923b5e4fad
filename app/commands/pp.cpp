#include <iostream>

#include "app/commands.h"

namespace forge::app {
namespace {

int print_text(const Context& context, const std::string& name) {
  const ChosenConfig chosen = context.config(name);
  const templating::RenderedText rendered = project::render_config(
      chosen.project, chosen.config, context.surroundings(), chosen.variables);
  std::cout << rendered.text << "\n";
  return 0;
}

}  // namespace

void add_pp(CLI::App& app, Program& program) {
  auto config = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("pp", "Print a config's preprocessed YAML text");
  add_config_options(*command, program, *config);
  command->callback([&program, config] {
    program.action = [config](const Context& c) { return print_text(c, *config); };
  });
}

}  // namespace forge::app
