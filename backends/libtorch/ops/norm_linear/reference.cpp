#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

NormLinear norm_linear_reference(const at::Tensor& x,
                                 const at::Tensor& norm_w,
                                 const RmsNormOptions& norm,
                                 const CanonLayer& canon,
                                 const WeightMatrix& w) {
  const at::Tensor y = canon_layer_reference(rms_norm_reference(x, norm_w, norm), canon);
  return {at::linear(y, w.differentiable()), x};
}

}  // namespace forge::ops
