#include "backends/libtorch/blocks/norm.h"

namespace forge::libtorch {

Norm::Norm(const model::ModelConfig& config, WeightStore& weights, const std::string& name)
    : config_(config.norm) {
  for (const model::NormWeight& weight : model::norm_weights(config.norm))
    weights_.push_back(weights.add_vector(name + "." + weight.name, {config.hidden_size}));
}

at::Tensor Norm::operator()(const at::Tensor& x) const {
  if (config_.kind == model::NormKind::layer_norm) {
    // In the type of the weights, float32 at least, and rounded once.
    const at::Tensor &weight = weights_[0], &bias = weights_[1];
    return at::layer_norm(x.to(weight.scalar_type()), weight.sizes(), weight, bias, config_.eps)
        .to(x.scalar_type());
  }
  return ops::rms_norm(x, weights_[0], rms_norm_options(config_));
}

ops::NormLinear Norm::project(const at::Tensor& x,
                              const ops::CanonLayer& canon,
                              const ops::WeightMatrix& matrix) const {
  if (config_.kind == model::NormKind::layer_norm)
    return {ops::linear(ops::canon_layer((*this)(x), canon), matrix), x};
  return ops::norm_linear(x, weights_[0], rms_norm_options(config_), canon, matrix);
}

}  // namespace forge::libtorch
