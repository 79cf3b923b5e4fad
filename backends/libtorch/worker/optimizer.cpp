#include "backends/libtorch/worker/optimizer.h"

#include "backends/libtorch/ops/adamw/adamw.h"

namespace forge::worker {

Optimizer::Optimizer(const config::OptimizerConfig& config, const LlamaCanon& model)
    : config_(config), model_(model), weights_(model.trainable()) {
  for (const at::Tensor& weight : weights_) {
    first_moments_.push_back(at::zeros_like(weight.detach()));
    second_moments_.push_back(at::zeros_like(weight.detach()));
  }
}

void Optimizer::step(int64_t step, double learning_rate) {
  const at::NoGradGuard no_grad;
  const ops::AdamWStep adamw{
      learning_rate, config_.betas[0], config_.betas[1], config_.eps, config_.weight_decay, step};
  for (size_t i = 0; i < weights_.size(); ++i) {
    at::Tensor weight = weights_[i].detach();
    ops::adamw_(weight, weights_[i].grad(), first_moments_[i], second_moments_[i], adamw);
  }
}

void Optimizer::zero_gradients() {
  for (at::Tensor& weight : weights_) weight.mutable_grad() = at::Tensor();
}

at::Tensor Optimizer::gradient_norm(double clip) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> squares;
  for (const at::Tensor& weight : weights_) squares.push_back(weight.grad().norm().square());
  const at::Tensor norm = at::stack(squares).sum().sqrt();
  if (clip > 0) {
    const at::Tensor factor = (clip / (norm + 1e-6)).clamp_max(1.0);
    for (at::Tensor& weight : weights_) weight.mutable_grad().mul_(factor);
  }
  return norm;
}

NamedTensors Optimizer::named_state() const {
  NamedTensors state;
  const auto add = [&](const std::vector<at::Tensor>& moments, const std::string& suffix) {
    const auto moment_of = [&](const at::Tensor& stored) {
      for (size_t i = 0; i < weights_.size(); ++i) {
        if (weights_[i].is_same(stored)) return moments[i];
      }
      TORCH_CHECK(false, "a weight without optimizer state");
    };
    for (auto& [name, tensor] : model_.named(moment_of)) state.emplace_back(name + suffix, tensor);
  };
  add(first_moments_, ".first_moment");
  add(second_moments_, ".second_moment");
  return state;
}

}  // namespace forge::worker
