#include "backends/libtorch/worker/trainer.h"

#include <algorithm>
#include <array>

#include "backends/libtorch/ops/adamw/adamw.h"
#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"
#include "core/config/schedule.h"

namespace forge::libtorch {
namespace {

/// The rounded copy of a stored matrix, or an undefined tensor.
at::Tensor rounded_copy_of(const at::Tensor& stored, const Model& model) {
  for (const ops::WeightMatrix& matrix : model.rounded_matrices()) {
    if (matrix.stored.is_same(stored)) return matrix.rounded;
  }
  return {};
}

}  // namespace

Optimizer::Optimizer(const config::Experiment& experiment, const Model& model)
    : experiment_(experiment), model_(model), weights_(model.trainable()) {
  const bool copies = experiment.train.bfloat16_weights == model::Bfloat16Weights::master_copies;
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
  // The device counts steps itself: only a jump is written to it.
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

void Optimizer::copy_weights() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < weights_.size(); ++i) {
    if (masters_[i].defined()) masters_[i].copy_(weights_[i]);
  }
}

NamedTensors Optimizer::named_state() const {
  NamedTensors state;
  const auto add = [&](const std::vector<at::Tensor>& tensors, const std::string& suffix) {
    const auto of_weight = [&](const at::Tensor& stored) {
      for (size_t i = 0; i < weights_.size(); ++i) {
        if (weights_[i].is_same(stored)) return tensors[i];
      }
      TORCH_CHECK(false, "a weight without optimizer state");
    };
    for (auto& [name, tensor] : model_.named(of_weight)) state.emplace_back(name + suffix, tensor);
  };
  add(first_moments_, ".first_moment");
  add(second_moments_, ".second_moment");
  add(masters_, ".master_weight");
  return state;
}

ops::CrossEntropyOptions loss_options(const config::ZLossConfig& z_loss) {
  using Kind = ops::CrossEntropyOptions::ZLoss;
  switch (z_loss.kind) {
    case config::ZLossKind::none: return {Kind::none, 0};
    case config::ZLossKind::palm: return {Kind::palm, z_loss.coefficient};
    case config::ZLossKind::lingua_code: return {Kind::lingua_code, z_loss.coefficient};
  }
  return {};
}

Trainer::Trainer(const config::Experiment& experiment, const at::Device& device)
    : experiment_(experiment),
      model_(experiment.model, weight_types(experiment.train), device),
      optimizer_(experiment, model_),
      graph_(device),
      micro_batch_size_(experiment.train.micro_batch_size) {
  warn_of_slow_precision(experiment.train.precision, device);
  choose_determinism(experiment.train.is_deterministic(device.is_cuda() ? "cuda" : "cpu"), device);
  if (device.is_cuda()) return;
  if (experiment.train.bfloat16_weights == model::Bfloat16Weights::none) return;
  throw Error("train.bfloat16_weights is for a GPU: on a CPU weights are kept in float32",
              "train.bfloat16_weights: none, or --device cuda");
}

void Trainer::step(const Batch& batch, int64_t step) {
  const auto work = [&] {
    updating_ = false;
    const at::Tensor value = loss_and_gradients(batch);
    updating_ = true;
    optimizer_.update(value);
    updating_ = false;
  };
  optimizer_.begin(step);
  optimizer_.is_recordable() ? graph_.run(work, batch.documents.starts) : work();
  optimizer_.end();
}

void Trainer::set_micro_batch_size(int rows) {
  micro_batch_size_ = rows;
  optimizer_.zero_gradients();
  graph_.reset();
}

at::Tensor Trainer::loss(const Batch& batch, int64_t index) const {
  ops::CrossEntropyOptions options = loss_options(experiment_.train.z_loss);
  if (micro_batch_count(batch.inputs.size(0), micro_batch_size_) == 1)
    return model_.loss(batch.inputs, batch.documents, batch.targets, options);
  options.batch_targets = batch.targets.flatten();
  const Batch rows = micro_batch(batch, index, micro_batch_size_);
  return model_.loss(rows.inputs, rows.documents, rows.targets, options);
}

at::Tensor Trainer::loss_and_gradients(const Batch& batch) {
  at::Tensor first = loss(batch);
  backward(first);
  const int64_t count = micro_batch_count(batch.inputs.size(0), micro_batch_size_);
  if (count == 1) return first;
  // Added up as float64, so that the sum is as good as that of a whole batch.
  at::Tensor sum = first.detach().to(at::kDouble);
  const at::ScalarType type = first.scalar_type();
  first.reset();
  for (int64_t index = 1; index < count; ++index) {
    const at::Tensor next = loss(batch, index);
    next.backward();
    sum += next.detach();
  }
  return sum.is_cuda() ? sum.to(type) : sum;
}

double Trainer::loss_alone(const Batch& batch) const {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (int64_t part = 0; part < micro_batch_count(batch.inputs.size(0), micro_batch_size_); ++part)
    sum += loss(batch, part).item<double>();
  return sum;
}

void Trainer::backward(const at::Tensor& loss) {
  optimizer_.zero_gradients();
  loss.backward();
}

void Trainer::update(const at::Tensor& loss, int64_t step) {
  optimizer_.begin(step);
  optimizer_.update(loss);
  optimizer_.end();
}

Batch step_with_oom_retry(Trainer& trainer,
                          BatchUploader& uploader,
                          const data::RowBatch& rows,
                          int64_t step,
                          const at::Device& device,
                          const OnMicroBatch& on_micro_batch) {
  while (true) {
    Batch batch;
    const auto out_of_memory = run_or_out_of_memory([&] {
      batch = uploader.upload(rows, trainer.micro_batch_size());
      trainer.step(batch, step);
    });
    if (!out_of_memory) return batch;
    TORCH_CHECK_WITH(OutOfMemoryError,
                     !trainer.is_updating(),
                     "memory ran out while the weights were updated: ",
                     *out_of_memory);
    const int64_t all = uploader.count_rows(rows);
    const int64_t before = trainer.micro_batch_size();
    trainer.set_micro_batch_size(0);  // frees gradients and a recorded step
    const int micro_batch_size =
        halved_micro_batch(before > 0 ? std::min(before, all) : all, *out_of_memory, device);
    trainer.set_micro_batch_size(micro_batch_size);
    if (on_micro_batch) on_micro_batch({micro_batch_size, *out_of_memory});
  }
}

}  // namespace forge::libtorch
