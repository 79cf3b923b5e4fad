#pragma once

#include "backends/libtorch/torch_precompiled.h"
#include "core/config/experiment.h"

namespace forge::worker {

/// Torch's name for train.precision. Throws Error for one that this backend does not have.
at::ScalarType scalar_type(config::Precision precision);

}  // namespace forge::worker
