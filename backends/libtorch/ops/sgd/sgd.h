#pragma once

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

struct SgdStep {
  double lr = 0;
  double momentum = 0;  ///< 0: none is kept
  bool nesterov = false;
  double weight_decay = 0;
};

/// One update of SGD in place, with momentum as Sutskever et al. 2013 have it, in torch.optim.SGD's
/// form, and the decoupled decay of Loshchilov & Hutter 2019:
///     b = mu b + g;  p = (1 - lr wd) p - lr b, or with Nesterov's lr (g + mu b)
/// All tensors have the same shape, dtype and device and are contiguous; `buffer` is undefined
/// where there is no momentum.
void sgd_(at::Tensor& parameter,
          const at::Tensor& gradient,
          at::Tensor& buffer,
          const SgdStep& step);

void sgd_reference_(at::Tensor& parameter,
                    const at::Tensor& gradient,
                    at::Tensor& buffer,
                    const SgdStep& step);

}  // namespace forge::ops
