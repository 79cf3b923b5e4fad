#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "app/context.h"

namespace forge::app {

/// What the parsed command line asks for; returns the exit code.
using Action = std::function<int(const Context&)>;

void add_project_option(CLI::App& command, std::string& project);
void add_set_option(CLI::App& command, std::vector<std::string>& overrides);

/// Each adds a subcommand that sets `action` when it is chosen.
void add_ls(CLI::App& app, Action& action);
void add_show(CLI::App& app, Action& action);
void add_keys(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_runs(CLI::App& app, Action& action);
void add_compare(CLI::App& app, Action& action);
void add_export_markdown(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_store(CLI::App& app, Action& action);
void add_supervise(CLI::App& app, Action& action);

}  // namespace forge::app
