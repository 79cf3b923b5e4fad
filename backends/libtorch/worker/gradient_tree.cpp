#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {

double tree_sum(std::vector<double> leaves) {
  TORCH_CHECK(!leaves.empty(), "no numbers to add");
  for (size_t width = 1; width < leaves.size(); width *= 2) {
    for (size_t i = 0; i + width < leaves.size(); i += 2 * width) leaves[i] += leaves[i + width];
  }
  return leaves.front();
}

at::Tensor tree_sum(const at::Tensor& leaves) {
  const int64_t count = leaves.size(0);
  if (count == 1) return leaves.select(0, 0);
  int64_t width = 1;
  while (2 * width < count) width *= 2;
  const at::Tensor left = tree_sum(leaves.narrow(0, 0, width));
  const at::Tensor right = tree_sum(leaves.narrow(0, width, count - width));
  if (width == 1) return left + right;  // a leaf stays as it is
  return left.add_(right);
}

void GradientTree::add(at::Tensor leaf) {
  sums_.push_back(std::move(leaf));
  ++leaves_;
  // As in a binary counter: two neighbours of one size become one of twice the size.
  for (int64_t rest = leaves_; rest % 2 == 0; rest /= 2) {
    const at::Tensor right = sums_.back();
    sums_.pop_back();
    sums_.back().add_(right);
  }
}

at::Tensor GradientTree::take() {
  TORCH_CHECK(sums_.size() == 1, "a tree of ", leaves_, " leaves is not balanced");
  const at::Tensor sum = sums_.front();
  sums_.clear();
  leaves_ = 0;
  return sum;
}

}  // namespace forge::libtorch
