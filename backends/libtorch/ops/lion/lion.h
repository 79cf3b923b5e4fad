#pragma once

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

struct LionStep {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
};

/// One update of Lion (Chen et al. 2023, algorithm 2) in place:
///     p = (1 - lr wd) p - lr sign(b1 m + (1 - b1) g);  m = b2 m + (1 - b2) g
/// sign(0) is 0. All three tensors have the same shape, dtype and device and are contiguous.
void lion_(at::Tensor& parameter,
           const at::Tensor& gradient,
           at::Tensor& momentum,
           const LionStep& step);

void lion_reference_(at::Tensor& parameter,
                     const at::Tensor& gradient,
                     at::Tensor& momentum,
                     const LionStep& step);

}  // namespace forge::ops
