#include "core/model/weight_groups.h"

#include "core/base/text.h"

namespace forge::model {
namespace {

/// "q_norm" of "model.layers.0.self_attn.q_norm.weight".
std::string module_of(const std::string& name) {
  const size_t last = name.rfind('.');
  if (last == std::string::npos) return "";
  const std::string path = name.substr(0, last);
  const size_t before = path.rfind('.');
  return before == std::string::npos ? path : path.substr(before + 1);
}

}  // namespace

WeightGroup group_of(const std::string& name, const std::vector<int64_t>& shape) {
  if (name == "model.embed_tokens.weight") return WeightGroup::embeddings;
  if (name == "lm_head.weight") return WeightGroup::head;
  if (shape.size() == 2) return WeightGroup::matrices;
  const std::string module = module_of(name);
  if (module.find("norm") != std::string::npos) return WeightGroup::norms;
  const bool is_convolution = starts_with(module, "canon") || ends_with(module, "conv1d");
  return is_convolution ? WeightGroup::canon : WeightGroup::vectors;
}

}  // namespace forge::model
