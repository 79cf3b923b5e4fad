#include "core/model/mamba2/mamba2.h"

#include <algorithm>
#include <cmath>

#include "core/model/config.h"

namespace forge::model {

LinearHeads mamba2_heads(const ModelConfig& model) {
  const Mamba2Config& c = model.mamba2;
  return {c.num_heads, c.state_size, c.inner_width(model.hidden_size) / c.num_heads};
}

/// Named, because each kind of block has functions of these names.
namespace mamba2 {
namespace {

void complete(ModelConfig& model, ConfigChecks& checks) {
  Mamba2Config& c = model.mamba2;
  checks.attempt(
      [&] { expanded_width(model, c.expand, c.num_heads, "model.mamba2", "expand", checks); });
  if (model.canon.has('b')) return;
  checks.attempt([&] {
    checks.refuse_unused("model.mamba2.conv_activation",
                         c.conv_activation,
                         Mamba2Config().conv_activation,
                         "model.canon.set",
                         "has no meaning where model.canon.set has no b",
                         "without the short convolution x, B and C stay as they are");
  });
}

void add_parameters(const ModelConfig& model, ParameterList& list) {
  const Mamba2Config& c = model.mamba2;
  const int64_t hidden = model.hidden_size, inner = c.inner_width(hidden), heads = c.num_heads;
  list.norm("input_layernorm", hidden);
  list.canon('A', "canonA", hidden);
  list.matrix(
      "mamba2.in_proj", c.projected_width(hidden), hidden, MatrixRole::projection, "mamba2");
  // PyTorch's default for a depthwise convolution.
  const double bound = 1 / std::sqrt(static_cast<double>(short_conv_taps));
  list.short_conv("mamba2.conv1d", c.conv_width(hidden), InitRule::uniform(bound), true);
  list.canon('B', "mamba2.canonB", c.projected_width(hidden));
  list.weight("mamba2.A_log", {heads}, InitRule::log_uniform(1, 16), "mamba2");
  list.weight("mamba2.dt_bias", {heads}, InitRule::inverse_softplus(1e-3, 1e-1), "mamba2");
  list.weight("mamba2.D", {heads}, InitRule::constant(1), "mamba2");
  list.output_norm("mamba2.norm", inner);
  list.matrix("mamba2.out_proj", hidden, inner, MatrixRole::mixer_output, "mamba2");
}

/// The state read and written, and the products of a chunk's tokens: those of C with B are the same
/// for all heads.
double mixing_flops(const ModelConfig& model, int64_t seq_len) {
  const LinearHeads sizes = mamba2_heads(model);
  const auto heads = static_cast<double>(sizes.heads);
  const auto key = static_cast<double>(sizes.key_dim), value = static_cast<double>(sizes.value_dim);
  const auto chunk = static_cast<double>(std::min(linear_chunk, seq_len));
  return heads * (4 * key * value + 2 * chunk * value) + 2 * chunk * key;
}

SavedActivations saved_activations(const ModelConfig& model) {
  const Mamba2Config& c = model.mamba2;
  const int64_t hidden = model.hidden_size;
  SavedActivations saved = saved_by_projection(model, 'A');
  saved += {c.projected_width(hidden), 0};  // z, x, B, C and step sizes as projected
  if (model.canon.has('B')) saved += {c.projected_width(hidden), 0};  // Canon-B: its output
  return saved += {c.inner_width(hidden), 0};  // the heads' outputs; all else is computed again
}

StateSize state(const ModelConfig& model) {
  const Mamba2Config& c = model.mamba2;
  const int64_t hidden = model.hidden_size;
  return {0,
          mamba2_heads(model).state() + canon_state(model, 'A', hidden) +
              short_conv_state(model, c.conv_width(hidden)) +
              canon_state(model, 'B', c.projected_width(hidden))};
}

const HuggingFaceKeys& huggingface_keys() {
  static const HuggingFaceKeys keys;
  return keys;
}

/// PyTorch's defaults, but for the embedding.
InitRule release_init(MatrixRole role, int64_t inputs) {
  if (role == MatrixRole::embedding) return InitRule::normal(0.1);
  return InitRule::uniform(1 / std::sqrt(static_cast<double>(inputs)));
}

}  // namespace
}  // namespace mamba2

const BlockKind mamba2_block = {"mamba2",
                                "AbB",
                                mamba2::complete,
                                mamba2::add_parameters,
                                mamba2::mixing_flops,
                                mamba2::saved_activations,
                                mamba2::state,
                                mamba2::huggingface_keys,
                                true,
                                mamba2::release_init};

}  // namespace forge::model
