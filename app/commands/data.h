#pragma once

#include "app/commands.h"
#include "core/data/prepared_list.h"

namespace forge::app {

/// Says what a mixture is made of: the statistics of each part are those of its own folder.
int show_mixture(const data::PreparedFolder& folder, bool json);

/// Each adds a subcommand of `forge data`.
void add_data_get(const Command& data, Program& program);
void add_data_prepare(const Command& data, Program& program);
void add_data_sample(const Command& data, Program& program);
void add_data_ls(const Command& data, Program& program);
void add_data_show(const Command& data, Program& program);
void add_data_stats(const Command& data, Program& program);

}  // namespace forge::app
