#include "backends/libtorch/worker/gradient_tree.h"

namespace forge::libtorch {

double tree_sum(std::vector<double> leaves) {
  TORCH_CHECK(!leaves.empty(), "no numbers to add");
  for (size_t width = 1; width < leaves.size(); width *= 2) {
    for (size_t i = 0; i + width < leaves.size(); i += 2 * width) leaves[i] += leaves[i + width];
  }
  return leaves.front();
}

namespace {

/// Of `count` leaves from `first` on.
at::Tensor tree_sum(const at::Tensor* first, size_t count) {
  const bool is_narrow = first->scalar_type() == at::kBFloat16;
  if (count == 1) return is_narrow ? first->to(at::kFloat) : *first;
  if (count == 2 && !is_narrow) return first[0] + first[1];  // leaves stay as they are
  if (count == 2) return first[0].to(at::kFloat).add_(first[1]);
  return tree_sum(first, count / 2).add_(tree_sum(first + count / 2, count / 2));
}

}  // namespace

at::Tensor tree_sum(const std::vector<at::Tensor>& leaves) {
  TORCH_CHECK(!leaves.empty(), "nothing to add");
  return tree_sum(leaves.data(), leaves.size());
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
