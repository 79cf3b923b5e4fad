#pragma once

#include "backends/libtorch/ops/cross_entropy/cross_entropy.h"

namespace forge::ops {

/// cross_entropy(linear(x, w), targets): the loss of hidden states x [N, C] under a head w [V, C]
/// and int32 targets [N], a scalar. Differentiable in x and w. On a CPU the logits are never whole:
/// a chunk of rows after the other becomes logits, loss and gradient at once.
at::Tensor linear_cross_entropy(const at::Tensor& x,
                                const at::Tensor& w,
                                const at::Tensor& targets,
                                const CrossEntropyOptions& options = {});

at::Tensor linear_cross_entropy_reference(const at::Tensor& x,
                                          const at::Tensor& w,
                                          const at::Tensor& targets,
                                          const CrossEntropyOptions& options = {});

/// The loss of contiguous tensors, float or double; where grad_x and grad_w are defined they
/// receive its gradients.
at::Tensor linear_cross_entropy_cpu(const at::Tensor& x,
                                    const at::Tensor& w,
                                    const at::Tensor& targets,
                                    const CrossEntropyOptions& options,
                                    at::Tensor& grad_x,
                                    at::Tensor& grad_w);

}  // namespace forge::ops
