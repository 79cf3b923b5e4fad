#include "backends/libtorch/worker/trainer.h"

#include "core/base/error.h"
#include "core/config/fields.h"
#include "core/config/schedule.h"

namespace forge::worker {
namespace {

at::ScalarType scalar_type(config::Precision precision) {
  switch (precision) {
    case config::Precision::float32: return at::kFloat;
    case config::Precision::float64: return at::kDouble;
    case config::Precision::bfloat16: break;
  }
  throw Error("train.precision " + config::name_of(precision) + " is not supported by this backend",
              {},
              "float32 or float64");
}

}  // namespace

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
      model_(experiment.model,
             at::TensorOptions(device).dtype(scalar_type(experiment.train.precision))),
      optimizer_(experiment.optimizer, model_) {}

double Trainer::learning_rate(int64_t step) const {
  return config::learning_rate(
      experiment_.schedule, experiment_.optimizer.lr, step, experiment_.train.max_steps);
}

StepResult Trainer::step(const Batch& batch, int64_t step) {
  optimizer_.zero_gradients();
  const at::Tensor logits = model_.logits(batch.inputs, batch.doc_ids);
  const at::Tensor loss = ops::cross_entropy(logits.view({-1, logits.size(-1)}),
                                             batch.targets.view({-1}),
                                             loss_options(experiment_.train.z_loss));
  loss.backward();
  const at::Tensor norm = optimizer_.gradient_norm(experiment_.train.grad_clip);
  optimizer_.step(step + 1, learning_rate(step));
  return {loss.detach(), norm};
}

}  // namespace forge::worker
