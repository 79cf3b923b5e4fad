#include "backends/libtorch/blocks/norm.h"

namespace forge::libtorch {

Norm::Norm(const model::ModelConfig& config, WeightStore& weights, const std::string& name)
    : rms_norm_(rms_norm_options(config)),
      weight_(weights.add_vector(name + ".weight", {config.hidden_size})) {}

at::Tensor Norm::operator()(const at::Tensor& x) const {
  return ops::rms_norm(x, weight_, rms_norm_);
}

ops::NormLinear Norm::project(const at::Tensor& x,
                              const ops::CanonLayer& canon,
                              const ops::WeightMatrix& matrix) const {
  return ops::norm_linear(x, weight_, rms_norm_, canon, matrix);
}

}  // namespace forge::libtorch
