#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor linear_cross_entropy_reference(const at::Tensor& x,
                                          const WeightMatrix& w,
                                          const at::Tensor& targets,
                                          const CrossEntropyOptions& options) {
  return cross_entropy_reference(at::linear(x, w.differentiable()), targets, options);
}

}  // namespace forge::ops
