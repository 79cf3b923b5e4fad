#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/torch_precompiled.h"

namespace forge::ops {

at::Tensor swiglu_reference(const at::Tensor& gate_up) {
  const auto halves = gate_up.chunk(2, -1);
  return at::silu(halves[0]) * halves[1];
}

}  // namespace forge::ops
