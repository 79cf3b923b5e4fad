#pragma once

#include <cstddef>
#include <vector>

#include "app/launch.h"

/// The order in which one command trains several configs, so that what happens to the machine
/// meanwhile makes none of them look faster.
namespace forge::app {

/// Which of `configs` comes at a place of a turn: their index. There and back, so that a machine
/// that gets slower makes no config look slower; and each time from the next two on, so that of
/// several devices, which take the runs in this order, none always gets the same config. `first`:
/// the one that the first turn begins with.
size_t place_in_turn(size_t turn, size_t place, size_t configs, size_t first);

/// With which of the configs a command begins that trains each with its `runs`: the one behind that
/// with which the last command began, for the first run may meet a cold machine. 0 without one. A
/// command of runs that are there already, or some of them, begins as the one that made these.
size_t first_in_turn(const Context& context,
                     const std::vector<SelectedConfig>& configs,
                     const std::vector<std::vector<CheckedRun>>& runs);

}  // namespace forge::app
