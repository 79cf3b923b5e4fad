#pragma once

#include <vector>

#include "app/conduct.h"
#include "core/store/result_store.h"

namespace forge::app {

/// Follows the runs to their ends, says what failed, and prints the results of those that were
/// begun. Returns the exit code: 1 a run failed, 3 one was stopped, 4 the disk is full or fails.
int conduct_and_report(const Context& context,
                       store::ResultStore& store,
                       const std::vector<ToDo>& runs,
                       bool json);

/// Starts what finds room, and prints which runs are left to the queue.
int leave_in_queue(const Context& context, const std::vector<ToDo>& runs, bool json);

}  // namespace forge::app
