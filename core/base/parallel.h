#pragma once

#include <cstddef>
#include <functional>

namespace forge {

/// Cores that this process may use: a container, taskset or a cluster's scheduler may leave it
/// fewer than the machine has.
int usable_cores();

/// Calls `action(0)` … `action(count - 1)`, in any order, on all usable cores, and returns when all
/// calls have ended. What calls throw is thrown here: of several exceptions that of the lowest
/// index, whatever the order was; the calls behind it may be left out.
void parallel_for(size_t count, const std::function<void(size_t)>& action);

}  // namespace forge
