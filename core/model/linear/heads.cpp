#include "core/model/linear/heads.h"

#include <cmath>

#include "core/base/text.h"
#include "core/model/config.h"

namespace forge::model {

int64_t expanded_width(const ModelConfig& model, double expand) {
  return std::llround(expand * model.hidden_size);
}

int64_t expanded_width(const ModelConfig& model,
                       double expand,
                       int num_heads,
                       const std::string& section,
                       const std::string& key,
                       const ConfigChecks& checks) {
  const int64_t width = expanded_width(model, expand);
  const bool is_whole = width > 0 && static_cast<double>(width) == expand * model.hidden_size;
  if (is_whole && width % num_heads == 0) return width;
  const std::string heads = section + ".num_heads";
  throw checks.complaint(
      {section + "." + key, heads, "model.hidden_size"},
      section + "." + key + " " + shortest(expand) + " of " +
          quoted("model.hidden_size", model.hidden_size) +
          " makes no whole number of channels in " + "each of " + quoted(heads, num_heads),
      "choose them so that " + key + " * hidden_size is a multiple of num_heads");
}

namespace {

std::string within(const GatedHeads& mixer, const char* module) {
  return std::string(mixer.name) + "." + module;
}

}  // namespace

void add_qkv_parameters(const ModelConfig& model, const GatedHeads& mixer, ParameterList& list) {
  const int64_t hidden = model.hidden_size;
  const int64_t key = mixer.sizes.key_width(), value = mixer.sizes.value_width();
  list.matrix(within(mixer, "q_proj"), key, hidden, MatrixRole::projection, mixer.name);
  list.matrix(within(mixer, "k_proj"), key, hidden, MatrixRole::projection, mixer.name);
  list.matrix(within(mixer, "v_proj"), value, hidden, MatrixRole::projection, mixer.name);
  const InitRule taps = InitRule::normal(0.02);
  list.short_conv(within(mixer, "q_conv1d"), key, taps, false);
  list.short_conv(within(mixer, "k_conv1d"), key, taps, false);
  list.short_conv(within(mixer, "v_conv1d"), value, taps, false);
}

void add_output_parameters(const ModelConfig& model,
                           const GatedHeads& mixer,
                           const char* norm,
                           ParameterList& list) {
  const int64_t hidden = model.hidden_size, value = mixer.sizes.value_width();
  if (mixer.output_gate_rank) {
    const int64_t rank = *mixer.output_gate_rank;
    list.low_rank(within(mixer, "g_proj.0"), rank, hidden, rank, mixer.name);
    list.low_rank(within(mixer, "g_proj.1"), value, rank, rank, mixer.name);
    list.weight(within(mixer, "g_proj.1.bias"), {value}, InitRule::constant(0), mixer.name);
  } else {
    list.matrix(within(mixer, "g_proj"), value, hidden, MatrixRole::gate, mixer.name);
  }
  list.output_norm(within(mixer, norm), mixer.sizes.value_dim);
  list.matrix(within(mixer, "o_proj"), hidden, value, MatrixRole::mixer_output, mixer.name);
}

SavedActivations saved_by_gated_heads(const ModelConfig&, const GatedHeads& mixer) {
  const int64_t key = mixer.sizes.key_width(), value = mixer.sizes.value_width();
  // q, k and v as projected; what linear attention and o_proj read is computed again.
  SavedActivations saved{2 * key + value, 0};
  saved += {value, 0};  // the gated norm: the heads' outputs
  // The gate as projected; of low rank, also itself.
  saved += {mixer.output_gate_rank.value_or(value), 0};
  if (mixer.output_gate_rank) saved += {value, 0};
  return saved;
}

int64_t short_conv_state(const ModelConfig& model, int64_t channels) {
  return model.canon.has('b') ? (short_conv_taps - 1) * channels : 0;
}

}  // namespace forge::model
