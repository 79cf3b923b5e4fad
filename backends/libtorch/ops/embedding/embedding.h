#pragma once

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/linear/linear.h"

namespace forge::ops {

/// Rows of w [V, C] by int32 ids of any shape [...]. Returns [..., C] in the operand's type.
/// Differentiable in w. On a GPU the gradient of a row is added up in the order of its tokens, by
/// one block of threads, so it has the same bits each time.
at::Tensor embedding(const WeightMatrix& w, const at::Tensor& ids);

/// y [N, C] = w[ids] for ids int32 [N]; contiguous, C a multiple of 8.
FORGE_CUDA_ONLY void embedding_forward_cuda(const at::Tensor& w,
                                            const at::Tensor& ids,
                                            at::Tensor& y);

/// grad_w [V, C], float32 or of grad_y's type, is written: zeros where no id names a row.
FORGE_CUDA_ONLY void embedding_backward_cuda(const at::Tensor& ids,
                                             const at::Tensor& grad_y,
                                             at::Tensor& grad_w);

}  // namespace forge::ops
