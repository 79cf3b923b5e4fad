#include "app/completion.h"

#include <iostream>

#include "app/commands.h"

namespace forge::app {
namespace {

/// The description's first sentence, on one line and without tabs.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\t' || c == '\n') c = ' ';
  }
  return text;
}

void add_script_command(const Command& app, Program& program) {
  auto shell = std::make_shared<std::string>();
  const Command command = app.add_subcommand(
      "completion", "Print the script with which a shell completes forge's command lines");
  command.footer(
      "Examples:\n"
      "  source <(forge completion bash)             # now, or as a line of ~/.bashrc\n"
      "  forge completion zsh > ~/.zfunc/_forge      # a folder of zsh's $fpath\n"
      "  forge completion fish > ~/.config/fish/completions/forge.fish");
  command.add_option("shell", *shell, "bash, zsh or fish")
      .required()
      .one_of({"bash", "zsh", "fish"});
  command.callback([&program, shell] {
    program.action = [shell](const Context&) {
      std::cout << completion_script(*shell);
      return 0;
    };
  });
}

/// What the scripts call: "WORD<tab>DESCRIPTION" for everything that may come next.
void add_complete_command(const Command& app, Program& program) {
  auto words = std::make_shared<std::vector<std::string>>();
  const Command command = app.add_hidden_subcommand("__complete", "");
  command.add_option("words", *words, "");
  command.callback([app, &program, words] {
    program.action = [app, &program, words](const Context&) {
      for (const Completion& completion : complete(app.app(), program.globals, *words)) {
        std::cout << completion.word << "\t" << one_line(completion.description) << "\n";
      }
      return 0;
    };
  });
}

}  // namespace

void add_completion(const Command& app, Program& program) {
  add_script_command(app, program);
  add_complete_command(app, program);
}

}  // namespace forge::app
