#pragma once

#include <cstddef>
#include <functional>

namespace forge {

/// Calls `action(0)` … `action(count - 1)`, in any order, on all cores, and returns when all calls
/// have ended. What calls throw is thrown here: of several exceptions that of the lowest index,
/// whatever the order was; the calls behind it may be left out.
void parallel_for(size_t count, const std::function<void(size_t)>& action);

}  // namespace forge
