#pragma once

#include <functional>
#include <vector>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::libtorch {

/// A part of a model that the backward pass computes again in place of keeping what it needs of it.
struct RecomputedPart {
  using Compute = std::function<at::Tensor(const at::Tensor& x)>;

  /// The part's result of its input. It takes gradients to x and to `weights` and to nothing else.
  Compute forward;
  /// The same to the same bits, but that the result's numbers may be left unset: only what its
  /// backward pass reads is needed.
  Compute again;
  std::vector<at::Tensor> weights;
};

/// part.forward(x), of which nothing but x is kept for the backward pass. Loss and gradients have
/// the bits that they would have without: the same operations run on the same numbers, and each
/// gradient is added up in the same order. On a GPU nothing waits for the device, and all work is
/// on the stream of the forward pass, so a step with it can be recorded as a CUDA graph.
at::Tensor recomputed(const at::Tensor& x, const RecomputedPart& part);

}  // namespace forge::libtorch
