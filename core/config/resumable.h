#pragma once

#include "core/config/experiment.h"

namespace forge::config {

/// Whether training that has done `step` steps under the config `before` is what it would be under
/// `now`, so that it can go on under `now`. How long training lasts, what is measured on the way
/// and what is kept may differ, and where data lies; the schedule may differ, too, as long as every
/// step done had the learning rate that `now` gives it. Throws Error naming the first difference.
void check_resumable(const Experiment& before, const Experiment& now, int64_t step);

}  // namespace forge::config
