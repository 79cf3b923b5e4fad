#include "core/model/gdn2/gdn2.h"

#include <algorithm>

#include "core/model/config.h"

namespace forge::model {

LinearHeads gdn2_heads(const ModelConfig& model) {
  const Gdn2Config& c = model.gdn2;
  return {c.num_heads,
          expanded_width(model, c.expand_k) / c.num_heads,
          expanded_width(model, c.expand_v) / c.num_heads};
}

/// Named, because each kind of block has functions of these names.
namespace gdn2 {
namespace {

GatedHeads heads_of(const ModelConfig& model) {
  const Gdn2Config& c = model.gdn2;
  return {"gdn2", gdn2_heads(model), c.qkv_activation, c.output_gate_rank};
}

/// Channels of q, k and v side by side, as Canon-B sees them.
int64_t qkv_width(const ModelConfig& model) {
  const LinearHeads sizes = gdn2_heads(model);
  return 2 * sizes.key_width() + sizes.value_width();
}

void complete(ModelConfig& model, ConfigChecks& checks) {
  const Gdn2Config& c = model.gdn2;
  for (const auto& [key, expand] : {std::pair("expand_k", c.expand_k), {"expand_v", c.expand_v}})
    checks.attempt([&model, &checks, &c, key = key, expand = expand] {
      expanded_width(model, expand, c.num_heads, "model.gdn2", key, checks);
    });
}

void add_parameters(const ModelConfig& model, ParameterList& list) {
  const int64_t hidden = model.hidden_size, heads = model.gdn2.num_heads;
  const GatedHeads mixer = heads_of(model);
  list.norm("input_layernorm", hidden);
  list.canon('A', "canonA", hidden);
  add_qkv_parameters(model, mixer, list);
  list.canon('B', "gdn2.canonB", qkv_width(model));
  list.matrix("gdn2.b_proj", heads, hidden, MatrixRole::projection, "gdn2");
  list.matrix("gdn2.a_proj", heads, hidden, MatrixRole::projection, "gdn2");
  list.weight("gdn2.A_log", {heads}, InitRule::log_uniform(0, 16), "gdn2");
  list.weight("gdn2.dt_bias", {heads}, InitRule::inverse_softplus(1e-3, 1e-1), "gdn2");
  add_output_parameters(model, mixer, "o_norm", list);
}

/// A head: the state read twice and written, the products of a chunk's tokens with one another, and
/// the triangular system that makes a chunk's writes.
double mixing_flops(const ModelConfig& model, int64_t seq_len) {
  const LinearHeads sizes = gdn2_heads(model);
  const auto key = static_cast<double>(sizes.key_dim), value = static_cast<double>(sizes.value_dim);
  const auto chunk = static_cast<double>(std::min(linear_chunk, seq_len));
  return static_cast<double>(sizes.heads) *
         (6 * key * value + 4 * chunk * (key + value) + 2 * chunk * chunk / 3);
}

SavedActivations saved_activations(const ModelConfig& model) {
  const int64_t heads = model.gdn2.num_heads;
  SavedActivations saved = saved_by_projection(model, 'A');
  saved += saved_by_gated_heads(model, heads_of(model));
  if (model.canon.has('B')) saved += {2 * qkv_width(model), 0};  // Canon-B: input, output
  return saved += {2 * heads, 0};                                // the logits of beta and the decay
}

StateSize state(const ModelConfig& model) {
  return {0,
          gdn2_heads(model).state() + canon_state(model, 'A', model.hidden_size) +
              short_conv_state(model, qkv_width(model)) +
              canon_state(model, 'B', qkv_width(model))};
}

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys keys;
  return keys;
}

}  // namespace
}  // namespace gdn2

const BlockKind gdn2_block = {"gdn2",
                              "AbB",
                              gdn2::complete,
                              gdn2::add_parameters,
                              gdn2::mixing_flops,
                              gdn2::saved_activations,
                              gdn2::state,
                              gdn2::huggingface_keys,
                              true};

}  // namespace forge::model
