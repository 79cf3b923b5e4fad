#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "app/commands.h"
#include "app/template_arguments.h"
#include "app/terminal.h"
#include "core/base/error.h"
#include "core/base/text.h"

namespace forge::app {
namespace {

constexpr const char* description =
    "Runs controlled experiments on model architectures and says what they show.\n"
    "\n"
    "  forge ls                          what can be run here\n"
    "  forge run train_canon_ac          train a config and print its result\n"
    "  forge run --all                   every training config of the project\n"
    "  forge compare --table positions   the ablation table\n"
    "  forge export-markdown             the tables as RESULTS.md\n";

/// What CLI11 says of a wrong command line, with near misses for a misspelt subcommand.
int report_usage(const CLI::App& app,
                 const CLI::ParseError& error,
                 int argument_count,
                 char** arguments) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  std::string command;
  const CLI::App* chosen = &app;
  while (!chosen->get_subcommands().empty()) {
    chosen = chosen->get_subcommands().front();
    command += " " + chosen->get_name();
  }
  const std::string first = argument_count > 1 ? arguments[1] : "";
  const bool is_misspelt = chosen == &app && !first.empty() && !starts_with(first, "-");
  const std::string near = is_misspelt ? did_you_mean(first, names) : "";
  std::cerr << "error: " << (is_misspelt ? "no command '" + first + "'" : error.what()) << "\n";
  std::cerr << "hint: " << (near.empty() ? "try 'forge" + command + " --help'" : near) << "\n";
  return static_cast<int>(ExitCode::usage);
}

/// Under which headings --help lists the commands.
void group_commands(CLI::App& app) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> groups = {
      {"Experiments",
       {"run",
        "runs",
        "status",
        "why",
        "compare",
        "export",
        "export-markdown",
        "report",
        "bench",
        "backends",
        "backend-test",
        "data",
        "pack",
        "import",
        "gc",
        "doctor",
        "store"}},
      {"Models",
       {"model", "generate", "eval", "export-hf", "import-hf", "import-lingua", "logits"}},
      {"Configs", {"ls", "show", "explain", "diff", "check", "keys", "arguments"}},
      {"Templates", {"pp", "trefs", "tlist", "targets", "graph", "meta", "index"}},
      {"New", {"init", "ws", "project"}},
      {"Shell", {"completion", "man"}}};
  for (const auto& [group, names] : groups) {
    for (const std::string& name : names) app.get_subcommand(name)->group(group);
  }
}

/// In the order in which --help lists them.
void add_commands(CLI::App& program_line, Program& program) {
  const Command app(program_line);
  add_run(app, program);
  add_status(app, program);
  add_runs(app, program);
  add_why(app, program);
  add_compare(app, program);
  add_export(app, program);
  add_export_markdown(app, program);
  add_report(app, program);
  add_bench(app, program);
  add_generate(app, program);
  add_eval(app, program);
  add_export_hf(app, program);
  add_import_hf(app, program);
  add_import_lingua(app, program);
  add_logits(app, program);
  add_backends(app, program);
  add_backend_test(app, program);
  add_data(app, program);
  add_pack(app, program);
  add_import(app, program);
  add_gc(app, program);
  add_doctor(app, program);
  add_store(app, program);
  add_ls(app, program);
  add_show(app, program);
  add_explain(app, program);
  add_diff(app, program);
  add_check(app, program);
  add_keys(app, program);
  add_model(app, program);
  add_arguments(app, program);
  add_pp(app, program);
  add_trefs(app, program);
  add_tlist(app, program);
  add_targets(app, program);
  add_graph(app, program);
  add_meta(app, program);
  add_index(app, program);
  add_workspace(app, program);
  add_project(app, program);
  add_completion(app, program);
  add_man(app, program);
  add_supervise(app, program);
  group_commands(program_line);
}

int run_program(int argument_count, char** arguments) {
  CLI::App app(description, "forge");
  Program program;
  app.set_version_flag("--version", std::string("forge ") + FORGE_VERSION);
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  add_project_option(Command(app), program);
  app.add_option("-t,--config", program.globals.config, "Config, for a command that names none")
      ->type_name("NAME");
  add_commands(app, program);
  const std::vector<std::string> words(arguments + 1, arguments + argument_count);
  std::vector<std::string> rest = take_template_arguments(app, program, words);
  std::reverse(rest.begin(), rest.end());  // CLI11 takes them from the end
  try {
    app.parse(std::move(rest));
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, argument_count, arguments);
  }
  if (!program.action) {
    std::cout << app.help();
    return static_cast<int>(ExitCode::done);
  }
  return program.action(Context("forge " + join(words, " "), program.globals));
}

}  // namespace
}  // namespace forge::app

int main(int argument_count, char** arguments) {
  try {
    return forge::app::run_program(argument_count, arguments);
  } catch (const forge::Error& error) {
    std::cerr << forge::describe(error) << "\n";
    return static_cast<int>(error.exit_code());
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return static_cast<int>(forge::ExitCode::failed);
  }
}
