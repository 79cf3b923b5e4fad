#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/context.h"

namespace forge::app {

/// What the parsed command line asks for; returns the exit code.
using Action = std::function<int(const Context&)>;

/// The command line as it is being put together and parsed.
struct Program {
  GlobalOptions globals;
  Action action;
  /// Commands whose unknown options are arguments for the config's templates.
  std::set<const CLI::App*> takes_template_arguments;
};

/// -p, which may stand before or behind the command's name.
void add_project_option(CLI::App& command, Program& program);
/// --set
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);
/// What every command that looks at configs takes besides their names: -p, --now and arguments for
/// their templates.
void add_shared_options(CLI::App& command, Program& program);
/// What every command that looks at one config takes: its name, -p, --now and arguments for its
/// templates.
void add_config_options(CLI::App& command, Program& program, std::string& config);
/// The same for a command that takes several configs.
void add_configs_options(CLI::App& command, Program& program, std::vector<std::string>& configs);

/// Each adds a subcommand that sets the program's action when it is chosen.
void add_ls(CLI::App& app, Program& program);
void add_pp(CLI::App& app, Program& program);
void add_check(CLI::App& app, Program& program);
void add_explain(CLI::App& app, Program& program);
void add_diff(CLI::App& app, Program& program);
void add_show(CLI::App& app, Program& program);
void add_index(CLI::App& app, Program& program);
void add_meta(CLI::App& app, Program& program);
void add_tlist(CLI::App& app, Program& program);
void add_targets(CLI::App& app, Program& program);
void add_graph(CLI::App& app, Program& program);
void add_trefs(CLI::App& app, Program& program);
void add_arguments(CLI::App& app, Program& program);
void add_keys(CLI::App& app, Program& program);
void add_model(CLI::App& app, Program& program);
void add_backends(CLI::App& app, Program& program);
void add_backend_test(CLI::App& app, Program& program);
void add_run(CLI::App& app, Program& program);
void add_runs(CLI::App& app, Program& program);
void add_compare(CLI::App& app, Program& program);
void add_export_markdown(CLI::App& app, Program& program);
void add_bench(CLI::App& app, Program& program);
void add_eval(CLI::App& app, Program& program);
void add_export_hf(CLI::App& app, Program& program);
void add_import_hf(CLI::App& app, Program& program);
void add_import_lingua(CLI::App& app, Program& program);
void add_generate(CLI::App& app, Program& program);
void add_logits(CLI::App& app, Program& program);
void add_data(CLI::App& app, Program& program);
void add_store(CLI::App& app, Program& program);
void add_workspace(CLI::App& app, Program& program);
void add_project(CLI::App& app, Program& program);
void add_completion(CLI::App& app, Program& program);
void add_man(CLI::App& app, Program& program);
void add_supervise(CLI::App& app, Program& program);

}  // namespace forge::app
