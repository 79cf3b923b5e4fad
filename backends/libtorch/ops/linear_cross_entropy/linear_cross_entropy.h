#pragma once

#include "backends/libtorch/ops/common/dispatch.h"
#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"
#include "backends/libtorch/ops/linear/linear.h"

namespace forge::ops {

/// cross_entropy(linear(x, w), targets): the loss of hidden states x [N, C] under a head w [V, C]
/// and int32 targets [N], a scalar, float32 at least; 0 where no target is scored. Differentiable
/// in x and w. The logits are never whole: a chunk of rows after the other becomes logits, loss and
/// gradient at once.
at::Tensor linear_cross_entropy(const at::Tensor& x,
                                const WeightMatrix& w,
                                const at::Tensor& targets,
                                const CrossEntropyOptions& options = {});

at::Tensor linear_cross_entropy_reference(const at::Tensor& x,
                                          const WeightMatrix& w,
                                          const at::Tensor& targets,
                                          const CrossEntropyOptions& options = {});

/// The loss of each row instead of their mean, without z-loss, 0 where it is not scored: [N] on x's
/// device, float32 at least, for evaluation. Has no gradient, and on a GPU nobody waits for it.
at::Tensor linear_cross_entropy_losses(const at::Tensor& x,
                                       const WeightMatrix& w,
                                       const at::Tensor& targets);

/// The loss of contiguous tensors on a GPU, float or bfloat16, in float32; grad_x and grad_w, where
/// defined, receive its gradients. grad_w may be float32.
FORGE_CUDA_ONLY at::Tensor linear_cross_entropy_cuda(const at::Tensor& x,
                                                     const at::Tensor& w,
                                                     const at::Tensor& targets,
                                                     const CrossEntropyOptions& options,
                                                     at::Tensor& grad_x,
                                                     at::Tensor& grad_w);

FORGE_CUDA_ONLY at::Tensor linear_cross_entropy_losses_cuda(const at::Tensor& x,
                                                            const at::Tensor& w,
                                                            const at::Tensor& targets);

/// Multiplies by a scalar on the GPU; reads and writes nothing of `x` where that is one.
FORGE_CUDA_ONLY void scale_unless_one_cuda(at::Tensor& x, const at::Tensor& factor);

}  // namespace forge::ops
