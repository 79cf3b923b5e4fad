#include "backends/libtorch/blocks/canon.h"

#include "backends/libtorch/model/inference.h"

namespace forge::libtorch {

Canon::Canon(const BlockArguments& arguments,
             char position,
             const std::string& name,
             int64_t channels) {
  const model::CanonConfig& canon = arguments.config.canon;
  options_ = {canon.residual, canon.activation == model::Activation::silu};
  if (!canon.has(position)) return;
  weight_ = arguments.weights.add_vector(arguments.prefix + name + ".weight",
                                         {channels, 1, canon.kernel});
}

at::Tensor Canon::new_inputs(int64_t rows, const at::TensorOptions& options) const {
  if (!weight_.defined()) return {};
  return at::zeros({rows, weight_.size(2) - 1, weight_.size(0)}, options);
}

at::Tensor Canon::step(const at::Tensor& x,
                       const GenerationStep& step,
                       at::Tensor& last_inputs) const {
  if (!weight_.defined()) return x;
  const at::Tensor extended = at::cat({last_inputs, x}, 1);
  const int64_t before = last_inputs.size(1);
  last_inputs = step.last_tokens(extended, before);
  return ops::canon_conv(extended, weight_, options_).narrow(1, before, x.size(1)).contiguous();
}

}  // namespace forge::libtorch
