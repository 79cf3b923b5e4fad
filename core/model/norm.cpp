#include "core/model/norm.h"

#include "core/model/config.h"

namespace forge::model {

std::vector<NormWeight> norm_weights(const NormConfig& norm) {
  if (norm.kind == NormKind::layer_norm) return {{"weight", 1}, {"bias", 0}};
  return {{"weight", 1}};
}

void complete_norm(ModelConfig& model, ConfigChecks& checks) {
  if (model.norm.kind == NormKind::rms_norm) return;
  checks.attempt([&] {
    checks.refuse_unused("model.norm.rounding",
                         model.norm.rounding,
                         NormConfig().rounding,
                         "model.norm.kind",
                         "has no meaning where model.norm.kind is layer_norm",
                         "LayerNorm rounds once, at its end; leave the key out");
  });
}

SavedActivations saved_by_norm(const ModelConfig& model) {
  // The root of the mean square; or the mean and the inverse of the deviation.
  return {model.hidden_size, model.norm.kind == NormKind::layer_norm ? 2 : 1};
}

SavedActivations saved_by_projection(const ModelConfig& model, char position) {
  const int64_t hidden = model.hidden_size;
  const bool fused = model.norm.kind == NormKind::rms_norm && !is_unfused_canon(model, position);
  if (fused) return {hidden, 0};
  SavedActivations saved = saved_by_norm(model);
  if (model.canon.has(position)) saved += {hidden, 0};  // Canon: its input
  return saved += {hidden, 0};                          // projection: its input
}

}  // namespace forge::model
