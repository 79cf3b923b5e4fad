#pragma once

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

struct CanonConvOptions {
  bool residual = true;  ///< add the input
  bool silu = false;     ///< apply silu to the convolution's output, before the residual
};

/// A Canon layer as a part of another operation.
struct CanonLayer {
  at::Tensor weight;  ///< [C, 1, K]; undefined where there is no layer
  CanonConvOptions options;
  at::Tensor doc_ids;  ///< [B, T] int32 or undefined
};

/// The layer with contiguous tensors.
CanonLayer contiguous(const CanonLayer& layer);

/// Depthwise causal convolution over time, the Canon layer of "Physics of Language Models: Part
/// 4.1" (Allen-Zhu 2025):
///     c[b,t,:] = sum_j w[:,0,K-1-j] * x[b,t-j,:]      (x before position 0 is zero)
///     y        = [x +] [silu](c)
///   x        [B, T, C] on any device; contiguous or made so
///   w        [C, 1, K], K in 2..4, of x's type or float32; the last tap is the current token's
///   doc_ids  [B, T] int32 or undefined; tap j is dropped if doc(t-j) != doc(t)
/// Returns y [B, T, C]. Differentiable in x and w. Throws c10::Error naming a wrong shape.
at::Tensor canon_conv(const at::Tensor& x,
                      const at::Tensor& w,
                      const CanonConvOptions& options,
                      const at::Tensor& doc_ids = {});

/// The layer where there is one, else x.
at::Tensor canon_layer(const at::Tensor& x, const CanonLayer& layer);
at::Tensor canon_layer_reference(const at::Tensor& x, const CanonLayer& layer);

/// The same by plain Torch operations, on any device and dtype; slow and obvious.
at::Tensor canon_conv_reference(const at::Tensor& x,
                                const at::Tensor& w,
                                const CanonConvOptions& options,
                                const at::Tensor& doc_ids = {});

/// Throws c10::Error naming a wrong shape or dtype.
void check_canon_shapes(const at::Tensor& x, const at::Tensor& w, const at::Tensor& doc_ids);

/// One pass over contiguous CPU tensors, on all threads. y is written.
void canon_conv_forward_cpu(const at::Tensor& x, const CanonLayer& layer, at::Tensor& y);
/// The same on a GPU, without silu; C a multiple of 8.
FORGE_CUDA_ONLY void canon_conv_forward_cuda(const at::Tensor& x,
                                             const CanonLayer& layer,
                                             at::Tensor& y);

/// Gradients of sum(y * grad_y) in x and w, both written. Sums run in an order that does not depend
/// on the number of threads.
void canon_conv_backward_cpu(const at::Tensor& x,
                             const CanonLayer& layer,
                             const at::Tensor& grad_y,
                             at::Tensor& grad_x,
                             at::Tensor& grad_w);
FORGE_CUDA_ONLY void canon_conv_backward_cuda(const at::Tensor& x,
                                              const CanonLayer& layer,
                                              const at::Tensor& grad_y,
                                              at::Tensor& grad_x,
                                              at::Tensor& grad_w);

}  // namespace forge::ops
