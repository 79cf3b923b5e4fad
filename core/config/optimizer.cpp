#include "core/config/optimizer.h"

namespace forge::config {

const std::vector<std::string>& optimizer_types() {
  static const std::vector<std::string> types = {"adamw", "muon", "lion", "sgd"};
  return types;
}

double OptimizerConfig::weight_decay_for(WeightGroup group) const {
  const auto own = [&] {
    switch (group) {
      case WeightGroup::matrices: return weight_decay_of.matrices;
      case WeightGroup::embeddings: return weight_decay_of.embeddings;
      case WeightGroup::head: return weight_decay_of.head;
      case WeightGroup::norms: return weight_decay_of.norms;
      case WeightGroup::canon: return weight_decay_of.canon;
      case WeightGroup::vectors: return weight_decay_of.vectors;
    }
    return std::optional<double>();
  };
  return own().value_or(weight_decay);
}

double OptimizerConfig::lr_factor(WeightGroup group) const {
  const bool is_own = type == "muon" && !is_orthogonalised(group) && muon.adamw_lr;
  return is_own ? *muon.adamw_lr / lr : 1;
}

model::Moments OptimizerConfig::moments() const {
  if (type == "muon") return {1, 2};
  if (type == "lion") return {1, 1};
  if (type == "sgd") return sgd.momentum > 0 ? model::Moments{1, 1} : model::Moments{0, 0};
  return {2, 2};
}

}  // namespace forge::config
