#pragma once

#include <vector>

#include "backends/libtorch/torch_precompiled.h"

namespace forge::libtorch {

/// The sum of n numbers, a power of two, as a balanced binary tree: neighbours first. It has the
/// same bits wherever the parts of the tree were computed.
double tree_sum(std::vector<double> leaves);

/// The same of n tensors of one shape, which stay as they are; float32 where they are narrower. n
/// is a power of two. A single one is itself the sum, where it is not narrower.
at::Tensor tree_sum(const std::vector<at::Tensor>& leaves);

/// The tree over leaves that come one after another. It keeps one tensor for each level that waits
/// for its neighbour, not all leaves.
class GradientTree {
 public:
  /// Takes the next leaf, which is overwritten.
  void add(at::Tensor leaf);
  /// The sum of all leaves, of which there were a power of two. Begins anew.
  at::Tensor take();

 private:
  std::vector<at::Tensor> sums_;  ///< of subtrees, the larger ones first
  int64_t leaves_ = 0;
};

}  // namespace forge::libtorch
