#pragma once

#include "backends/libtorch/ops/common/dispatch.h"

namespace forge::ops {

/// An iteration X = a X + b (X X^T) X + c (X X^T)^2 X, which drives the singular values of X to
/// about 1 where they are between 0 and 1.
struct NewtonSchulz {
  int steps = 5;
  double a = 3.4445, b = -4.775, c = 2.0315;
};

struct MuonStep {
  double lr = 0;
  double update_factor = 1;  ///< of lr for the update, and not for the weight decay
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0;
  NewtonSchulz newton_schulz;
};

/// One update of Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon) in place:
///     m = mu m + (1 - mu) g;  u = m, or with Nesterov's (1 - mu) g + mu m
///     p = (1 - lr wd) p - lr update_factor orthogonalised(u)
/// All three are matrices of one shape, dtype and device and contiguous.
void muon_(at::Tensor& parameter,
           const at::Tensor& gradient,
           at::Tensor& momentum,
           const MuonStep& step);

/// Of matrices [rows, columns], or of n of them [n, rows, columns], roughly the nearest matrix with
/// orthogonal rows or columns: U V^T of U S V^T. Computed in the matrices' dtype; norms, by which
/// they are divided first, in float32 at least. Zeros stay zeros.
at::Tensor orthogonalised(const at::Tensor& matrices, const NewtonSchulz& iteration);

/// The same by plain Torch operations, which is what a GPU does.
at::Tensor orthogonalised_reference(const at::Tensor& matrices, const NewtonSchulz& iteration);

}  // namespace forge::ops
