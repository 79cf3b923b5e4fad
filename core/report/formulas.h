#pragma once

#include "core/report/ablation.h"
#include "core/report/judge.h"

namespace forge::report {

/// What the names of an expression stand for in a row of a table: figures of its runs, of those of
/// the baseline of its division, and of other rows of it. A row that breaks the comparison has none
/// but for itself, and none has a speed or a cost that was measured on another device than the
/// baseline's. A speed that was measured by `forge bench` is one value.
Samples samples_for(const Ablation& ablation, const AblationRow& row);

}  // namespace forge::report
