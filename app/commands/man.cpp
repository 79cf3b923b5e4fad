#include <iostream>

#include "app/commands.h"
#include "app/man_page.h"

namespace forge::app {

void add_man(const Command& app, Program& program) {
  const Command command = app.add_subcommand("man", "Print the manual page, for man(1)");
  command.footer("Example:\n  forge man | man -l -");
  command.callback([app, &program] {
    program.action = [app](const Context&) {
      std::cout << man_page(app.app(), FORGE_VERSION);
      return 0;
    };
  });
}

}  // namespace forge::app
