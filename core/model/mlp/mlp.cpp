#include "core/model/mlp/mlp.h"

#include "core/model/config.h"

namespace forge::model {
namespace {

void complete(ModelConfig&, ConfigChecks&) {}

void add_parameters(const ModelConfig& model, ParameterList& list) {
  const int64_t hidden = model.hidden_size, width = model.mlp.intermediate_size;
  list.norm("post_attention_layernorm", hidden);
  list.canon('C', "canonC", hidden);
  list.matrix("mlp.gate_proj", width, hidden, MatrixRole::gate, "mlp");
  list.matrix("mlp.up_proj", width, hidden, MatrixRole::projection, "mlp");
  list.matrix("mlp.down_proj", hidden, width, MatrixRole::mlp_output, "mlp");
  list.canon('D', "mlp.canonD", 2 * width);
}

double mixing_flops(const ModelConfig&, int64_t) { return 0; }

SavedActivations saved_activations(const ModelConfig& model) {
  const int64_t width = model.mlp.intermediate_size;
  SavedActivations saved = saved_by_projection(model, 'C');
  saved += {2 * width, 0};  // gate and up; what becomes of them is computed again
  if (is_unfused_canon(model, 'D')) saved += {2 * width + width, 0};  // Canon-D's, SwiGLU's outputs
  return saved;
}

StateSize state(const ModelConfig& model) {
  return {0,
          canon_state(model, 'C', model.hidden_size) +
              canon_state(model, 'D', 2 * int64_t{model.mlp.intermediate_size})};
}

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys keys = {
      {"intermediate_size", "mlp.intermediate_size"},
      {"hidden_act", "mlp.kind", false, {{"swiglu", R"("silu")"}, {"swiglu", R"("swish")"}}}};
  return keys;
}

}  // namespace

const BlockKind mlp_block = {"mlp",
                             "CD",
                             complete,
                             add_parameters,
                             mixing_flops,
                             saved_activations,
                             state,
                             huggingface_keys};

}  // namespace forge::model
