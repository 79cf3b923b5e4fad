#pragma once

#include "app/commands.h"
#include "core/data/prepared_list.h"

namespace forge::app {

/// Says what a mixture is made of: the statistics of each part are those of its own folder.
int show_mixture(const data::PreparedFolder& folder, bool json);

/// Each adds a subcommand of `forge data`.
void add_data_get(CLI::App& data, Program& program);
void add_data_prepare(CLI::App& data, Program& program);
void add_data_sample(CLI::App& data, Program& program);
void add_data_ls(CLI::App& data, Program& program);
void add_data_show(CLI::App& data, Program& program);
void add_data_stats(CLI::App& data, Program& program);

}  // namespace forge::app
