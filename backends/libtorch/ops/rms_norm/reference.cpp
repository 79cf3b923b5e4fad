#include "backends/libtorch/ops/rms_norm/rms_norm.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor rms_norm_reference(const at::Tensor& x,
                              const at::Tensor& w,
                              const RmsNormOptions& options) {
  const bool low_precision = x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
  const at::Tensor wide = low_precision ? x.to(at::kFloat) : x;
  const at::Tensor scale = (wide * wide).mean(-1, true).add(options.eps).rsqrt();
  const at::Tensor normalised = wide * scale;
  if (options.round_before_weight) return (w * normalised.to(x.scalar_type())).to(x.scalar_type());
  return (w.to(wide.scalar_type()) * normalised).to(x.scalar_type());
}

}  // namespace forge::ops
