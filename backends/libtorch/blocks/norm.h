#pragma once

#include <string>
#include <vector>

#include "backends/libtorch/model/weight_store.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "core/config/experiment.h"

namespace forge::libtorch {

/// RMSNorm as the config describes it: of the residual stream under norm.kind rms_norm, and always
/// of queries and keys.
inline ops::RmsNormOptions rms_norm_options(const model::NormConfig& norm) {
  return {norm.eps, norm.rounding == model::NormRounding::huggingface};
}

/// A norm of the residual stream as model.norm describes it.
class Norm {
 public:
  Norm() = default;
  Norm(const model::ModelConfig& config, WeightStore& weights, const std::string& name);

  at::Tensor operator()(const at::Tensor& x) const;
  /// With what follows up to a projection: the matrix of canon(norm(x)), in one operation where
  /// there is one.
  ops::NormLinear project(const at::Tensor& x,
                          const ops::CanonLayer& canon,
                          const ops::WeightMatrix& matrix) const;

 private:
  model::NormConfig config_;
  std::vector<at::Tensor> weights_;  ///< [hidden] each, as model::norm_weights lists them
};

}  // namespace forge::libtorch
