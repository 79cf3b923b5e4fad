#include "backends/libtorch/worker/flat_weights.h"

#include "core/base/error.h"

namespace forge::libtorch {
namespace {

/// Tensors begin at multiples of so many numbers, so that vectors of them never straddle two
/// processes' parts.
constexpr int64_t numbers_apart = 64;

int64_t rounded_up(int64_t number, int64_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

}  // namespace

FlatWeights::FlatWeights(std::vector<at::Tensor> stored, const Place& place)
    : stored_(std::move(stored)), place_(place) {
  const at::NoGradGuard no_grad;
  int64_t size = 0;
  for (const at::Tensor& tensor : stored_) {
    if (tensor.scalar_type() != stored_.front().scalar_type()) {
      throw Error("train.gradient_slots needs weights of one type",
                  "train.bfloat16_weights: none, or train.gradient_slots: 1");
    }
    begins_.push_back(size);
    size += rounded_up(tensor.numel(), numbers_apart);
  }
  all_ = at::zeros({rounded_up(size, block * place_.count)},
                   stored_.front().options().requires_grad(false));
  for (size_t i = 0; i < stored_.size(); ++i) {
    at::Tensor tensor = stored_[i];
    const at::Tensor view = all_.narrow(0, begins_[i], tensor.numel()).view(tensor.sizes());
    view.copy_(tensor);
    tensor.set_data(view);
  }
}

void FlatWeights::copy_gradients(const at::Tensor& to) const {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < stored_.size(); ++i) {
    const at::Tensor& gradient = stored_[i].grad();
    to.narrow(0, begins_[i], gradient.numel()).view(gradient.sizes()).copy_(gradient);
  }
}

}  // namespace forge::libtorch
