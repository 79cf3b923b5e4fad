#pragma once

#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

/// RMSNorm as the config describes it, of all norms of a model.
inline ops::RmsNormOptions norm_options(const model::ModelConfig& config) {
  return {config.norm.eps, config.norm.rounding == model::NormRounding::huggingface};
}

}  // namespace forge::libtorch
