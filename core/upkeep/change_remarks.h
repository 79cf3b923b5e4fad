#pragma once

#include <functional>

#include "core/run/remarks.h"

namespace forge::upkeep {

/// Changes what is said of a run and returns it as it is then. Of several that do so at once none
/// is lost. The run may be running.
run::Remarks change_remarks(const run::RunFolder& folder,
                            const std::function<void(run::Remarks&)>& change);

}  // namespace forge::upkeep
