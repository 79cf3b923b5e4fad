#pragma once

#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/canon_conv/cuda.h"
#include "backends/libtorch/ops/common/cuda_tensors.h"

namespace forge::ops::cuda {

/// Taps of a layer's convolution; 0 without one.
inline int taps_of(const CanonLayer& layer) {
  return layer.weight.defined() ? static_cast<int>(layer.weight.size(2)) : 0;
}

/// x [B, T, C] under a layer, or under none.
template <class T>
CanonInput<T> canon_input(const at::Tensor& x, const CanonLayer& layer) {
  return {{x.size(0), x.size(1), x.size(2), read<int32_t>(layer.doc_ids)},
          taps_of(layer),
          layer.options.residual,
          read<T>(x),
          read<float>(layer.weight)};
}

}  // namespace forge::ops::cuda
