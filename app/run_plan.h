#pragma once

#include <string>
#include <vector>

#include "app/context.h"
#include "app/launch.h"

namespace forge::app {

struct PlanOptions {
  bool probe = false;  ///< measure for a few seconds what no past run tells
  std::string save;    ///< file to write the plan to, "": none
  bool json = false;
};

/// Prints what would be done for the launches, without doing it: what is left of each, and how long
/// that will take and how much memory, as far as past runs or a probe tell. Writes the plan where
/// that was asked for.
void print_plan(const Context& context,
                const std::vector<Launch>& launches,
                const LaunchOptions& launch_options,
                const PlanOptions& options);

}  // namespace forge::app
