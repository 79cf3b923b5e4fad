#pragma once

#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

/// RMSNorm as the config describes it, of all norms of a model.
inline ops::RmsNormOptions norm_options(const config::ModelConfig& config) {
  return {config.rms_norm_eps, config.rms_norm_rounding == config::RmsNormRounding::huggingface};
}

}  // namespace forge::libtorch
