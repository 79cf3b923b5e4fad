#pragma once

#include <cstdint>

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

struct AdamWStep {
  double lr = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  int64_t step = 1;  ///< 1 for the first update
};

/// One AdamW update (Loshchilov & Hutter 2019, in torch.optim.AdamW's form) in place:
///     p *= 1 - lr*wd;  m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
///     p -= lr/(1-b1^t) * m / (sqrt(v)/sqrt(1-b2^t) + eps)
/// All four tensors have the same shape, dtype and device and are contiguous.
void adamw_(at::Tensor& parameter,
            const at::Tensor& gradient,
            at::Tensor& first_moment,
            at::Tensor& second_moment,
            const AdamWStep& step);

void adamw_reference_(at::Tensor& parameter,
                      const at::Tensor& gradient,
                      at::Tensor& first_moment,
                      at::Tensor& second_moment,
                      const AdamWStep& step);

}  // namespace forge::ops
