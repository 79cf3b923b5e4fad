#include "core/lingua/import.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"

namespace forge::lingua {
namespace {

std::string width_remark(const Model& model) {
  if (model.hidden_dim) return "hidden_dim";
  std::string remark = "2/3 of 4 dim";
  if (model.ffn_dim_multiplier) remark += " × " + shortest(*model.ffn_dim_multiplier);
  return remark + ", rounded up to a multiple of " + std::to_string(model.multiple_of);
}

}  // namespace

int intermediate_size(const Model& model) {
  if (model.hidden_dim) return *model.hidden_dim;
  double width = std::floor(2.0 * (4.0 * model.dim) / 3.0);
  if (model.ffn_dim_multiplier) width = std::floor(*model.ffn_dim_multiplier * width);
  const double rounded = std::ceil(width / model.multiple_of) * model.multiple_of;
  return rounded > std::numeric_limits<int>::max() ? 0 : static_cast<int>(rounded);
}

void Import::take_shape() {
  const Model& from = recipe_.model;
  config::ModelConfig& model = experiment_.model;
  if (!from.n_heads) {
    refuse("model.n_heads", "is missing", "lingua's blocks do not do without it");
  }
  const int heads = *from.n_heads;
  const int kv_heads = from.n_kv_heads.value_or(heads);
  if (heads % kv_heads != 0) {
    refuse("model.n_kv_heads",
           std::to_string(kv_heads) + " does not divide model.n_heads " + std::to_string(heads));
  }
  if (!from.head_dim && from.dim % heads != 0) {
    refuse("model.n_heads",
           std::to_string(heads) + " does not divide model.dim " + std::to_string(from.dim));
  }
  const int width = intermediate_size(from);
  if (width < 1 || width > 1 << 20) {
    refuse("model.ffn_dim_multiplier", "makes the MLP wider than " + with_thousands(1 << 20));
  }
  state("model.family", model.family, "llama_canon");
  state("model.hidden_size", model.hidden_size, from.dim, "dim");
  state("model.num_layers", model.num_layers, from.n_layers, "n_layers");
  state("model.num_heads", model.num_heads, heads, "n_heads");
  state("model.num_kv_heads",
        model.num_kv_heads,
        kv_heads,
        from.n_kv_heads ? "n_kv_heads" : "as n_heads");
  state("model.head_dim",
        model.head_dim,
        from.head_dim.value_or(from.dim / heads),
        from.head_dim ? "" : "dim / n_heads");
  state("model.intermediate_size", model.intermediate_size, width, width_remark(from));
}

void Import::take_position() {
  const Model& from = recipe_.model;
  config::PositionConfig& position = experiment_.model.position;
  state("model.position.kind", position.kind, config::PositionKind::rope);
  state("model.position.pairing", position.pairing, config::RopePairing::lingua);
  state("model.position.theta", position.theta, from.rope_theta, "rope_theta");
  if (!from.rope_dim) return;
  const int rope_dim = *from.rope_dim;
  if (rope_dim < 2 || rope_dim % 2 != 0 || rope_dim > experiment_.model.head_dim) {
    refuse("model.rope_dim",
           std::to_string(rope_dim) + " is not an even number from 2 to the head's " +
               std::to_string(experiment_.model.head_dim) + " channels",
           rope_dim == 0 ? "lingua fails with it too; leave it out to rotate whole heads" : "");
  }
  state("model.position.rope_dim", position.rope_dim, rope_dim);
}

void Import::take_rest_of_model() {
  const Model& from = recipe_.model;
  config::ModelConfig& model = experiment_.model;
  if (from.attn_impl == "fmha" && from.sliding_window) {
    refuse("model.sliding_window",
           std::to_string(*from.sliding_window) + " limits what attention sees",
           "forge's attention sees the whole row");
  }
  state("model.rms_norm_eps", model.rms_norm_eps, from.norm_eps, "norm_eps");
  state("model.rms_norm_rounding", model.rms_norm_rounding, config::RmsNormRounding::lingua);
  state("model.tie_embeddings", model.tie_embeddings, from.weight_tying, "weight_tying");
  state("model.qk_norm",
        model.qk_norm,
        from.qk_norm ? config::QkNorm::full : config::QkNorm::none,
        from.qk_norm ? "over the whole projection" : "");
  state("model.init", model.init, config::ModelInit::lingua);
  const std::vector<std::string>& factors = names_of(config::InitStdFactor());
  const auto factor = std::find(factors.begin(), factors.end(), from.init_std_factor);
  if (factor == factors.end()) refuse_word("model.init_std_factor", from.init_std_factor, factors);
  state("model.init_std_factor", model.init_std_factor, factor - factors.begin());
  if (from.init_base_std) {
    state("model.init_base_std", model.init_base_std, *from.init_base_std);
  }
}

/// lingua asks whether a letter is in the text; order, repetition and others count for nothing.
void Import::take_canon() {
  const Model& from = recipe_.model;
  const std::string letters = from.canon_set.value_or("");
  config::CanonConfig& canon = experiment_.model.canon;
  if (letters.find_first_not_of("ABCD") != std::string::npos) {
    note("model.canon_set '" + letters + "': letters besides ABCD mean nothing in a Llama");
  }
  std::string set;
  for (const char position : {'A', 'B', 'C', 'D'}) {
    if (letters.find(position) != std::string::npos) set += position;
  }
  if (set.empty()) return;
  if (from.canon_bias) refuse("model.canon_bias", "is true", "forge's Canon layers have no bias");
  if (from.canon_kernel < 2 || from.canon_kernel > 4) {
    refuse("model.canon_kernel",
           std::to_string(from.canon_kernel) + " is not from 2 to 4",
           "forge's Canon layers have 2, 3 or 4 taps");
  }
  state("model.canon.set", canon.set, set);
  state("model.canon.kernel", canon.kernel, from.canon_kernel);
  state("model.canon.residual", canon.residual, from.canon_residual);
  state("model.canon.activation",
        canon.activation,
        from.canon_activation ? config::Activation::silu : config::Activation::none);
}

}  // namespace forge::lingua
