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
      graph_(device) {
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
    const at::Tensor value = loss(batch);
    backward(value);
    optimizer_.update(value);
  };
  optimizer_.begin(step);
  optimizer_.is_recordable() ? graph_.run(work, batch.documents.starts) : work();
  optimizer_.end();
}

at::Tensor Trainer::loss(const Batch& batch) const {
  return model_.loss(
      batch.inputs, batch.documents, batch.targets, loss_options(experiment_.train.z_loss));
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

}  // namespace forge::worker
