#include "backends/libtorch/worker/optimizer.h"

#include <array>

#include "backends/libtorch/ops/adamw/adamw.h"
#include "core/config/schedule.h"

namespace forge::worker {
namespace {

/// The rounded copy of a stored matrix, or an undefined tensor.
at::Tensor rounded_copy_of(const at::Tensor& stored, const LlamaCanon& model) {
  for (const ops::WeightMatrix& matrix : model.rounded_matrices()) {
    if (matrix.stored.is_same(stored)) return matrix.rounded;
  }
  return {};
}

}  // namespace

Optimizer::Optimizer(const config::Experiment& experiment, const LlamaCanon& model)
    : experiment_(experiment), model_(model), weights_(model.trainable()) {
  const bool copies = experiment.train.bfloat16_weights == config::Bfloat16Weights::master_copies;
  for (const at::Tensor& weight : weights_) {
    const bool narrow = weight.scalar_type() == at::kBFloat16;
    const at::TensorOptions wide =
        weight.options().requires_grad(false).dtype(narrow ? at::kFloat : weight.scalar_type());
    first_moments_.push_back(at::zeros(weight.sizes(), wide));
    second_moments_.push_back(at::zeros(weight.sizes(), wide));
    masters_.push_back(narrow && copies ? at::zeros(weight.sizes(), wide) : at::Tensor());
    rounded_.push_back(narrow && copies ? weight.detach() : rounded_copy_of(weight, model));
  }
  const bool fused = weights_.front().is_cuda() && weights_.front().scalar_type() != at::kDouble;
  if (!fused) return;
  std::vector<double> rates;
  for (int64_t step = 0; step < std::max<int64_t>(1, experiment.train.max_steps); ++step)
    rates.push_back(learning_rate(step));
  state_ = ops::make_update_state(rates, weights_.front().device());
}

double Optimizer::learning_rate(int64_t step) const {
  return config::learning_rate(
      experiment_.schedule, experiment_.optimizer.lr, step, experiment_.train.max_steps);
}

void Optimizer::zero_gradients() {
  for (at::Tensor& weight : weights_) weight.mutable_grad() = at::Tensor();
}

void Optimizer::begin(int64_t step) {
  // The device counts by itself; it is told where the count does not go on.
  if (is_recordable() && step != step_) state_.step.fill_(step);
  step_ = step;
}

void Optimizer::update(const at::Tensor& loss) {
  const at::NoGradGuard no_grad;
  if (!is_recordable()) return update_one_by_one(loss);
  const config::OptimizerConfig& config = experiment_.optimizer;
  ops::WeightUpdate update;
  for (size_t i = 0; i < weights_.size(); ++i) {
    update.weights.push_back(masters_[i].defined() ? masters_[i] : weights_[i].detach());
    update.gradients.push_back(weights_[i].grad().contiguous());
  }
  update.first_moments = first_moments_;
  update.second_moments = second_moments_;
  update.rounded = rounded_;
  ops::adamw_step_cuda(update,
                       {experiment_.train.grad_clip,
                        config.betas[0],
                        config.betas[1],
                        config.eps,
                        config.weight_decay,
                        experiment_.seed},
                       loss.detach(),
                       state_);
}

void Optimizer::update_one_by_one(const at::Tensor& loss) {
  const config::OptimizerConfig& config = experiment_.optimizer;
  std::vector<at::Tensor> squares;
  for (const at::Tensor& weight : weights_) squares.push_back(weight.grad().norm().square());
  const at::Tensor norm = at::stack(squares).sum().sqrt();
  if (experiment_.train.grad_clip > 0) {
    const at::Tensor factor = (experiment_.train.grad_clip / (norm + 1e-6)).clamp_max(1.0);
    for (at::Tensor& weight : weights_) weight.mutable_grad().mul_(factor);
  }
  const ops::AdamWStep adamw{learning_rate(step_),
                             config.betas[0],
                             config.betas[1],
                             config.eps,
                             config.weight_decay,
                             step_ + 1};
  for (size_t i = 0; i < weights_.size(); ++i) {
    at::Tensor weight = weights_[i].detach();
    ops::adamw_(weight, weights_[i].grad(), first_moments_[i], second_moments_[i], adamw);
    if (rounded_[i].defined()) rounded_[i].copy_(weight);
  }
  totals_.loss += loss.item<double>();
  totals_.gradient_norm += norm.item<double>();
}

StepTotals Optimizer::totals() const {
  if (!is_recordable()) return totals_;
  const at::Tensor totals = state_.totals.cpu();
  return {totals[0].item<double>(), totals[1].item<double>()};
}

void Optimizer::set_totals(const StepTotals& totals) {
  totals_ = totals;
  if (!is_recordable()) return;
  const std::array<double, 2> both = {totals.loss, totals.gradient_norm};
  state_.totals.copy_(at::tensor(at::ArrayRef<double>(both), at::TensorOptions(at::kDouble)));
}

StepTotals Optimizer::take_totals() {
  const StepTotals taken = totals();
  set_totals({});
  return taken;
}

void Optimizer::copy_weights() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (masters_[i].defined()) masters_[i].copy_(weights_[i]);
  }
}

NamedTensors Optimizer::named_state() const {
  NamedTensors state;
  const auto add = [&](const std::vector<at::Tensor>& tensors, const std::string& suffix) {
    std::vector<bool> kept;
    const auto of_weight = [&](const at::Tensor& stored) {
      for (size_t i = 0; i < weights_.size(); ++i) {
        if (!weights_[i].is_same(stored)) continue;
        kept.push_back(tensors[i].defined());
        return tensors[i].defined() ? tensors[i] : stored.detach();
      }
      TORCH_CHECK(false, "a weight without optimizer state");
    };
    size_t index = 0;
    for (auto& [name, tensor] : model_.named(of_weight)) {
      if (kept[index++]) state.emplace_back(name + suffix, tensor);
    }
  };
  add(first_moments_, ".first_moment");
  add(second_moments_, ".second_moment");
  add(masters_, ".master_weight");
  return state;
}

}  // namespace forge::worker
