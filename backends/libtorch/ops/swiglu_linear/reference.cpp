#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor swiglu_linear_reference(const at::Tensor& gate_up,
                                   const CanonLayer& canon,
                                   const WeightMatrix& w,
                                   const at::Tensor& residual) {
  const at::Tensor y =
      at::linear(swiglu_reference(canon_layer_reference(gate_up, canon)), w.differentiable());
  return residual.defined() ? residual + y : y;
}

}  // namespace forge::ops
