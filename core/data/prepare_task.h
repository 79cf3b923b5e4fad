#pragma once

#include "core/data/prepare.h"

namespace forge::data {

/// What a run on a task with ids of its own needs: nothing on the disk, for its rows are made as
/// they are read. Throws Error where the task's ids or texts do not fit the model or train.seq_len.
PreparedData prepare_task(const config::Experiment& experiment);

}  // namespace forge::data
