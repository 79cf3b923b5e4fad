#include "core/model/mlp/mlp.h"

#include "core/model/config.h"

namespace forge::model {

/// Named, because each kind of block has functions of these names.
namespace mlp {
namespace {

void complete(ModelConfig&, ConfigChecks&) {}

void add_parameters(const ModelConfig& model, ParameterList& list) {
  const int64_t hidden = model.hidden_size, width = model.mlp.intermediate_size;
  list.norm("post_attention_layernorm", hidden);
  list.canon('C', "canonC", hidden);
  if (model.mlp.is_gated()) list.matrix("mlp.gate_proj", width, hidden, MatrixRole::gate, "mlp");
  list.matrix("mlp.up_proj", width, hidden, MatrixRole::projection, "mlp");
  list.matrix("mlp.down_proj", hidden, width, MatrixRole::mlp_output, "mlp");
  list.canon('D', "mlp.canonD", model.mlp.gate_up_width());
}

double mixing_flops(const ModelConfig&, int64_t) { return 0; }

/// What lies between the projections into the MLP and out of it.
int64_t saved_between(const ModelConfig& model) {
  const int64_t width = model.mlp.intermediate_size, gate_up = model.mlp.gate_up_width();
  const bool has_canon = model.canon.has('D');
  switch (model.mlp.kind) {
    case MlpKind::swiglu:
      // Gate and up; what becomes of them is computed again. Else Canon-D's and SwiGLU's outputs.
      return gate_up + (is_unfused_canon(model, 'D') ? gate_up + width : 0);
    case MlpKind::geglu:
      // Canon-D's input and its output, gate and up; gelu(gate); the product.
      return (has_canon ? gate_up : 0) + gate_up + 2 * width;
    case MlpKind::gelu: return (has_canon ? gate_up : 0) + 2 * width;  // input and output
    case MlpKind::relu_squared:
      return (has_canon ? gate_up : 0) + 2 * width;  // relu and its square
  }
  throw Error("model.mlp.kind is none of swiglu, geglu, gelu, relu_squared");
}

SavedActivations saved_activations(const ModelConfig& model) {
  SavedActivations saved = saved_by_projection(model, 'C');
  return saved += {saved_between(model), 0};
}

StateSize state(const ModelConfig& model) {
  return {0,
          canon_state(model, 'C', model.hidden_size) +
              canon_state(model, 'D', model.mlp.gate_up_width())};
}

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys keys = {
      {"intermediate_size", "mlp.intermediate_size"},
      {"hidden_act",
       "mlp.kind",
       false,
       {{"swiglu", R"("silu")"}, {"swiglu", R"("swish")"}, {"geglu", R"("gelu")"}}}};
  return keys;
}

}  // namespace
}  // namespace mlp

const BlockKind mlp_block = {"mlp",
                             "CD",
                             mlp::complete,
                             mlp::add_parameters,
                             mlp::mixing_flops,
                             mlp::saved_activations,
                             mlp::state,
                             mlp::huggingface_keys};

}  // namespace forge::model
