#pragma once

#include <vector>

#include "app/context.h"
#include "app/launch.h"

namespace forge::app {

/// Prints what would be done for the launches, without doing it: what is left of each, and how long
/// that will take as far as past runs tell.
void print_plan(const Context& context,
                const std::vector<Launch>& launches,
                const LaunchOptions& options,
                bool json);

}  // namespace forge::app
