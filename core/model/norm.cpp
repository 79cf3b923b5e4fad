#include "core/model/norm.h"

#include "core/model/config.h"

namespace forge::model {

std::vector<NormWeight> norm_weights(const NormConfig&) { return {{"weight", 1}}; }

void complete_norm(ModelConfig&, ConfigChecks&) {}

SavedActivations saved_by_norm(const ModelConfig& model) {
  return {model.hidden_size, 1};  // the root of the mean square
}

SavedActivations saved_by_projection(const ModelConfig& model, char position) {
  const int64_t hidden = model.hidden_size;
  if (!is_unfused_canon(model, position)) return {hidden, 0};
  SavedActivations saved = saved_by_norm(model);
  if (model.canon.has(position)) saved += {hidden, 0};  // Canon: its input
  return saved += {hidden, 0};                          // projection: its input
}

}  // namespace forge::model
