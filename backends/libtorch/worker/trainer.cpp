#include "backends/libtorch/worker/trainer.h"

#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/weights.h"
#include "core/base/error.h"

namespace forge::worker {

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
      rows_at_once_(experiment.train.micro_batch_size) {
  warn_of_slow_precision(experiment.train.precision, device);
  choose_determinism(experiment.train.is_deterministic(device.is_cuda() ? "cuda" : "cpu"), device);
  if (device.is_cuda()) return;
  if (experiment.train.bfloat16_weights == config::Bfloat16Weights::none) return;
  throw Error("train.bfloat16_weights is for a GPU: on a CPU weights are kept in float32",
              {},
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

void Trainer::set_rows_at_once(int rows) {
  rows_at_once_ = rows;
  optimizer_.zero_gradients();
  graph_.begin_anew();
}

at::Tensor Trainer::loss(const Batch& batch, int64_t part) const {
  ops::CrossEntropyOptions options = loss_options(experiment_.train.z_loss);
  if (parts_of(batch.inputs.size(0), rows_at_once_) == 1)
    return model_.loss(batch.inputs, batch.documents, batch.targets, options);
  options.batch_targets = batch.targets.flatten();
  const Batch rows = part_of(batch, part, rows_at_once_);
  return model_.loss(rows.inputs, rows.documents, rows.targets, options);
}

at::Tensor Trainer::loss_and_gradients(const Batch& batch) {
  at::Tensor first = loss(batch);
  backward(first);
  const int64_t parts = parts_of(batch.inputs.size(0), rows_at_once_);
  if (parts == 1) return first;
  // Added up as float64, so that the sum is as good as that of a whole batch.
  at::Tensor sum = first.detach().to(at::kDouble);
  const at::ScalarType type = first.scalar_type();
  first.reset();
  for (int64_t part = 1; part < parts; ++part) {
    const at::Tensor next = loss(batch, part);
    add_gradients(next);
    sum += next.detach();
  }
  return sum.is_cuda() ? sum.to(type) : sum;
}

double Trainer::loss_alone(const Batch& batch) const {
  const at::NoGradGuard no_grad;
  double sum = 0;
  for (int64_t part = 0; part < parts_of(batch.inputs.size(0), rows_at_once_); ++part)
    sum += loss(batch, part).item<double>();
  return sum;
}

void Trainer::backward(const at::Tensor& loss) {
  optimizer_.zero_gradients();
  add_gradients(loss);
}

void Trainer::add_gradients(const at::Tensor& loss) { loss.backward(); }

void Trainer::update(const at::Tensor& loss, int64_t step) {
  optimizer_.begin(step);
  optimizer_.update(loss);
  optimizer_.end();
}

}  // namespace forge::worker
