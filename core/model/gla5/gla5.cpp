#include "core/model/gla5/gla5.h"

#include <algorithm>

#include "core/model/config.h"

namespace forge::model {

LinearHeads gla5_heads(const ModelConfig& model) {
  const Gla5Config& c = model.gla5;
  return {c.num_heads,
          expanded_width(model, c.expand_k) / c.num_heads,
          expanded_width(model, c.expand_v) / c.num_heads};
}

/// Named, because each kind of block has functions of these names.
namespace gla5 {
namespace {

GatedHeads heads_of(const ModelConfig& model) {
  const Gla5Config& c = model.gla5;
  return {"gla5", gla5_heads(model), c.qkv_activation, c.output_gate_rank};
}

void complete(ModelConfig& model, ConfigChecks& checks) {
  const Gla5Config& c = model.gla5;
  for (const auto& [key, expand] : {std::pair("expand_k", c.expand_k), {"expand_v", c.expand_v}})
    checks.attempt([&model, &checks, &c, key = key, expand = expand] {
      expanded_width(model, expand, c.num_heads, "model.gla5", key, checks);
    });
  checks.attempt([&] {
    if (!model.canon.has('B')) return;
    throw checks.complaint({"model.canon.set", "model.layers"},
                           "model.canon.set '" + model.canon.set +
                               "' has 'B', which model.layers with gla5 has no place for",
                           "its official code has no Canon-B; b is its own short convolution");
  });
}

void add_parameters(const ModelConfig& model, ParameterList& list) {
  const int64_t hidden = model.hidden_size;
  const GatedHeads heads = heads_of(model);
  const int64_t key = heads.sizes.key_width(), rank = model.gla5.gate_rank;
  list.norm("input_layernorm", hidden);
  list.canon('A', "canonA", hidden);
  add_qkv_parameters(model, heads, list);
  list.low_rank("gla5.gk_proj.0", rank, hidden, rank, "gla5");
  list.low_rank("gla5.gk_proj.1", key, rank, rank, "gla5");
  list.weight("gla5.gk_proj.1.bias", {key}, InitRule::constant(0), "gla5");
  add_output_parameters(model, heads, "g_norm", list);
}

/// A head: the state read and written, and the products of a chunk's tokens with one another.
double mixing_flops(const ModelConfig& model, int64_t seq_len) {
  const LinearHeads sizes = gla5_heads(model);
  const auto key = static_cast<double>(sizes.key_dim), value = static_cast<double>(sizes.value_dim);
  const auto chunk = static_cast<double>(std::min(linear_chunk, seq_len));
  return static_cast<double>(sizes.heads) * (4 * key * value + 2 * chunk * (key + value));
}

SavedActivations saved_activations(const ModelConfig& model) {
  SavedActivations saved = saved_by_projection(model, 'A');
  saved += saved_by_gated_heads(model, heads_of(model));
  // The decay: its narrow half as projected, and its logits.
  return saved += {int64_t{model.gla5.gate_rank} + gla5_heads(model).key_width(), 0};
}

StateSize state(const ModelConfig& model) {
  const LinearHeads sizes = gla5_heads(model);
  return {0,
          sizes.state() + canon_state(model, 'A', model.hidden_size) +
              short_conv_state(model, 2 * sizes.key_width() + sizes.value_width())};
}

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys keys;
  return keys;
}

}  // namespace
}  // namespace gla5

const BlockKind gla5_block = {"gla5",
                              "Ab",
                              gla5::complete,
                              gla5::add_parameters,
                              gla5::mixing_flops,
                              gla5::saved_activations,
                              gla5::state,
                              gla5::huggingface_keys,
                              true};

}  // namespace forge::model
