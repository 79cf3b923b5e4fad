#include "backends/libtorch/worker/trainer.h"

#include "backends/libtorch/worker/device.h"
#include "backends/libtorch/worker/weights.h"
#include "core/config/schedule.h"

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
      optimizer_(experiment.optimizer, model_) {
  warn_of_slow_precision(experiment.train.precision, device);
}

double Trainer::learning_rate(int64_t step) const {
  return config::learning_rate(
      experiment_.schedule, experiment_.optimizer.lr, step, experiment_.train.max_steps);
}

StepResult Trainer::step(const Batch& batch, int64_t step) {
  optimizer_.zero_gradients();
  const at::Tensor loss = model_.loss(
      batch.inputs, batch.doc_ids, batch.targets, loss_options(experiment_.train.z_loss));
  loss.backward();
  const at::Tensor norm = optimizer_.gradient_norm(experiment_.train.grad_clip);
  optimizer_.step(step + 1, learning_rate(step));
  model_.round_matrices();
  return {loss.detach(), norm};
}

}  // namespace forge::worker
