#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor rms_norm_reference(const at::Tensor& x, const at::Tensor& w, double eps) {
  const bool low_precision = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  const at::Tensor wide = low_precision ? x.to(at::kFloat) : x;
  const at::Tensor scale = (wide * wide).mean(-1, true).add(eps).rsqrt();
  return w * (wide * scale).to(x.scalar_type());
}

}  // namespace forge::ops
