#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "app/command_line.h"
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
void add_project_option(const Command& command, Program& program);
/// --set
void add_set_option(const Command& command, std::vector<std::string>& overrides);
/// What every command that looks at configs takes besides their names: -p, --now and arguments for
/// their templates.
void add_shared_options(const Command& command, Program& program);
/// What every command that looks at one config takes: its name, -p, --now and arguments for its
/// templates.
void add_config_options(const Command& command, Program& program, std::string& config);
/// The same for a command that takes several configs.
void add_configs_options(const Command& command,
                         Program& program,
                         std::vector<std::string>& configs);

/// Each adds a subcommand that sets the program's action when it is chosen.
void add_ls(const Command& app, Program& program);
void add_pp(const Command& app, Program& program);
void add_check(const Command& app, Program& program);
void add_explain(const Command& app, Program& program);
void add_why(const Command& app, Program& program);
void add_diff(const Command& app, Program& program);
void add_show(const Command& app, Program& program);
void add_index(const Command& app, Program& program);
void add_meta(const Command& app, Program& program);
void add_tlist(const Command& app, Program& program);
void add_targets(const Command& app, Program& program);
void add_graph(const Command& app, Program& program);
void add_trefs(const Command& app, Program& program);
void add_arguments(const Command& app, Program& program);
void add_keys(const Command& app, Program& program);
void add_model(const Command& app, Program& program);
void add_backends(const Command& app, Program& program);
void add_backend_test(const Command& app, Program& program);
void add_run(const Command& app, Program& program);
void add_status(const Command& app, Program& program);
void add_runs(const Command& app, Program& program);
void add_runs_stop(const Command& runs, Program& program);
void add_runs_logs(const Command& runs, Program& program);
void add_runs_save(const Command& runs, Program& program);
void add_runs_resume(const Command& runs, Program& program);
void add_runs_rm(const Command& runs, Program& program);
void add_runs_undo(const Command& runs, Program& program);
/// archive, note and tag
void add_runs_remarks(const Command& runs, Program& program);
void add_pack(const Command& app, Program& program);
void add_import(const Command& app, Program& program);
void add_doctor(const Command& app, Program& program);
void add_gc(const Command& app, Program& program);
void add_compare(const Command& app, Program& program);
void add_export(const Command& app, Program& program);
void add_export_markdown(const Command& app, Program& program);
void add_report(const Command& app, Program& program);
void add_bench(const Command& app, Program& program);
void add_eval(const Command& app, Program& program);
void add_export_hf(const Command& app, Program& program);
void add_import_hf(const Command& app, Program& program);
void add_import_lingua(const Command& app, Program& program);
void add_generate(const Command& app, Program& program);
void add_logits(const Command& app, Program& program);
void add_data(const Command& app, Program& program);
void add_store(const Command& app, Program& program);
void add_workspace(const Command& app, Program& program);
void add_project(const Command& app, Program& program);
void add_completion(const Command& app, Program& program);
void add_man(const Command& app, Program& program);
void add_supervise(const Command& app, Program& program);

}  // namespace forge::app
