#include "app/commands.h"

namespace forge::app {

void add_project_option(CLI::App& command, std::string& project) {
  command
      .add_option("-p,--project",
                  project,
                  "Project: a folder, a path below the workspace or the end of one")
      ->type_name("NAME");
}

void add_set_option(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option(
          "--set", overrides, "Change a key of the config, e.g. train.max_steps=4; may be repeated")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->take_all()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace forge::app
