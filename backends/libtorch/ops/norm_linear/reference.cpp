#include "backends/libtorch/ops/norm_linear/norm_linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor norm_linear_reference(const at::Tensor& x,
                                 const at::Tensor& norm_w,
                                 const RmsNormOptions& norm,
                                 const CanonLayer& canon,
                                 const at::Tensor& w) {
  return at::linear(canon_layer_reference(rms_norm_reference(x, norm_w, norm), canon), w);
}

}  // namespace forge::ops
