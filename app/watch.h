#pragma once

#include <string>

#include "app/interrupt.h"
#include "core/run/run_folder.h"

namespace forge::app {

/// Follows a run until nobody supervises it any more, with a live line on stderr, and returns how
/// it stands. The first Ctrl-C asks the run to save and stop, the second to stop now.
run::RunStatus watch(const run::RunFolder& folder,
                     const std::string& label,
                     const Interrupts& interrupts);

}  // namespace forge::app
