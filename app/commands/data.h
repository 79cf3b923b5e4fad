#pragma once

#include "app/commands.h"

namespace forge::app {

/// Each adds a subcommand of `forge data`.
void add_data_get(CLI::App& data, Program& program);
void add_data_prepare(CLI::App& data, Program& program);
void add_data_sample(CLI::App& data, Program& program);
void add_data_ls(CLI::App& data, Program& program);
void add_data_show(CLI::App& data, Program& program);
void add_data_stats(CLI::App& data, Program& program);

}  // namespace forge::app
