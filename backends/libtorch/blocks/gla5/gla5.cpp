#include <cmath>

#include "backends/libtorch/blocks/linear/linear_mixer.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"

namespace forge::libtorch {
namespace {

/// Gated linear attention, with n = CanonA(Norm(x)):
///   [q | k | v] = silu(conv(n W_qkv^T))
///   log decay   = log(sigmoid(n W_0^T W_1^T + bias)) / gate_normalizer, for each channel of k
///   g           = n G_0^T G_1^T + bias, or n G^T
///   y           = x + (RMSNorm(attention(q, k, v)) * silu(g)) W_o^T
class Gla5Block final : public LinearMixer {
 public:
  explicit Gla5Block(const BlockArguments& arguments)
      : LinearMixer(arguments, model::gla5_heads(arguments.config)),
        normalizer_(arguments.config.gla5.gate_normalizer),
        gated_heads_(arguments, "gla5.", "g_norm", heads_, arguments.config.gla5.output_gate_rank) {
    const model::ModelConfig& config = arguments.config;
    const std::string prefix = arguments.prefix + "gla5.";
    const int64_t keys = heads_.key_width(), rank = config.gla5.gate_rank;
    WeightStore& weights = arguments.weights;
    std::vector<WeightRows> rows = gated_heads_.qkv();
    rows.push_back({prefix + "gk_proj.0.weight", rank});
    rows.push_back(gated_heads_.gate());
    input_ = weights.add_padded_matrix(rows, config.hidden_size);
    wide_decay_ = weights.add_matrix({{prefix + "gk_proj.1.weight", keys}}, rank);
    decay_bias_ = weights.add_vector(prefix + "gk_proj.1.bias", {keys});
    conv_ = MixerConv(arguments,
                      gated_heads_.convolutions(),
                      false,
                      has_silu(config.gla5.qkv_activation, config.canon));
    output_ =
        weights.add_matrix({{prefix + "o_proj.weight", config.hidden_size}}, heads_.value_width());
    parts_ = {{keys, true}, {keys, true}, {heads_.value_width(), true}, {rank}, {rows.back().rows}};
  }

 protected:
  at::Tensor mix(const at::Tensor& projection,
                 const at::Tensor& x,
                 const Generation* generation) const override {
    const std::vector<at::Tensor> parts = conv_(projection, parts_, generation);
    const at::Tensor logits = ops::linear(parts[3], wide_decay_);
    const auto attended = [heads = heads_.heads, bias = decay_bias_, normalizer = normalizer_](
                              const std::vector<at::Tensor>& qkv, const at::Tensor& of_decay) {
      return std::vector<at::Tensor>{heads_of(qkv[0], heads),
                                     heads_of(qkv[1], heads),
                                     heads_of(qkv[2], heads),
                                     heads_of(ops::log_decay(of_decay, bias, normalizer), heads),
                                     {}};
    };
    const auto again = std::make_shared<ops::RecomputedTensors>(
        [attended, conv = conv_, all = parts_](const std::vector<at::Tensor>& sources) {
          return attended(conv(sources[0], all, nullptr), sources[1]);
        });
    const double scale = 1 / std::sqrt(static_cast<double>(heads_.key_dim));
    const at::Tensor outputs = attend(inputs_of(attended(parts, logits)),
                                      {scale, false},
                                      {{projection, logits}, again},
                                      generation);
    return gated_heads_.output(outputs, parts[4], output_, x);
  }

 private:
  double normalizer_;
  GatedHeads gated_heads_;
  ops::WeightMatrix wide_decay_;  ///< W_1 [H K, rank]
  at::Tensor decay_bias_;         ///< [H K]
  std::vector<ops::ProjectionPart> parts_;
};

}  // namespace

std::unique_ptr<Block> make_gla5(const BlockArguments& arguments) {
  return std::make_unique<Gla5Block>(arguments);
}

}  // namespace forge::libtorch
