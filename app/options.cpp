#include "app/commands.h"

namespace forge::app {

void add_project_option(const Command& command, Program& program) {
  command
      .add_option("-p,--project",
                  program.globals.project,
                  "Project: a folder, a path below the workspace or the end of one")
      .type_name("NAME");
}

void add_set_option(const Command& command, std::vector<std::string>& overrides) {
  command
      .add_option(
          "--set", overrides, "Change a key of the config, e.g. train.max_steps=4; may be repeated")
      .type_name("PATH=VALUE")
      .repeated();
}

void add_shared_options(const Command& command, Program& program) {
  add_project_option(command, program);
  command
      .add_option("--now",
                  program.globals.now,
                  "The time that templates see: UTC as 2026-01-31T12:00:00, or seconds since 1970")
      .type_name("TIME");
  program.takes_template_arguments.insert(&command.app());
}

void add_config_options(const Command& command, Program& program, std::string& config) {
  command.add_option(
      "config",
      config,
      "Name of a config, or the beginning of one; without it the project's default. Its templates' "
      "own arguments go behind it: --max-steps 5");
  add_shared_options(command, program);
}

void add_configs_options(const Command& command,
                         Program& program,
                         std::vector<std::string>& configs) {
  command.add_option("config",
                     configs,
                     "Names of configs, from anywhere in the workspace. Their templates' own "
                     "arguments go behind them: --max-steps 5");
  add_shared_options(command, program);
}

}  // namespace forge::app
