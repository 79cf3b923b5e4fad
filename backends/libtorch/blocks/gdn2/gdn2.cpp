#include <cmath>

#include "backends/libtorch/blocks/linear/linear_mixer.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"

namespace forge::libtorch {
namespace {

/// Gated delta network, with n = CanonA(Norm(x)):
///   [q | k | v] = CanonB(silu(conv(n W_qkv^T))), each head of q and k then of length 1
///   beta        = sigmoid(n W_b^T);  log decay = -exp(A_log) softplus(n W_a^T + dt_bias)
///   g           = n G_0^T G_1^T + bias, or n G^T
///   y           = x + (RMSNorm(attention(q, k, v)) * silu(g)) W_o^T
class Gdn2Block final : public LinearMixer {
 public:
  explicit Gdn2Block(const BlockArguments& arguments)
      : LinearMixer(arguments, model::gdn2_heads(arguments.config)),
        gated_heads_(arguments, "gdn2.", "o_norm", heads_, arguments.config.gdn2.output_gate_rank) {
    const model::ModelConfig& config = arguments.config;
    const std::string prefix = arguments.prefix + "gdn2.";
    const int64_t keys = heads_.key_width(), values = heads_.value_width(), heads = heads_.heads;
    WeightStore& weights = arguments.weights;
    std::vector<WeightRows> rows = gated_heads_.qkv();
    rows.push_back(gated_heads_.gate());
    const int64_t gate = rows.back().rows;
    rows.push_back({prefix + "b_proj.weight", heads});
    rows.push_back({prefix + "a_proj.weight", heads});
    input_ = weights.add_padded_matrix(rows, config.hidden_size);
    conv_ = MixerConv(arguments,
                      gated_heads_.convolutions(),
                      false,
                      has_silu(config.gdn2.qkv_activation, config.canon));
    canon_b_ = Canon(arguments, 'B', "gdn2.canonB", 2 * keys + values);
    a_log_ = weights.add_vector(prefix + "A_log", {heads});
    dt_bias_ = weights.add_vector(prefix + "dt_bias", {heads});
    output_ = weights.add_matrix({{prefix + "o_proj.weight", config.hidden_size}}, values);
    qkv_parts_ = {{keys, true, heads_.key_dim}, {keys, true, heads_.key_dim}, {values, true}};
    gate_parts_ = {{gate}, {heads}, {heads}};
    has_canon_b_ = config.canon.has('B');
  }

 protected:
  at::Tensor mix(const at::Tensor& projection, const Generation* generation) const override {
    std::vector<at::Tensor> parts = parts_of(projection, generation);
    const ops::HeadGates gates = ops::head_gates({parts[5], parts[4], a_log_, dt_bias_});
    const double scale = 1 / std::sqrt(static_cast<double>(heads_.key_dim));
    const at::Tensor outputs = attend({heads_of(parts[0], heads_.heads),
                                       heads_of(parts[1], heads_.heads),
                                       heads_of(parts[2], heads_.heads),
                                       gates.log_decay,
                                       gates.beta,
                                       {}},
                                      {scale, true},
                                      generation);
    return gated_heads_.gated(outputs, parts[3]);
  }

 private:
  /// q, k, v, the gate's part, and the logits of beta and the decay.
  std::vector<at::Tensor> parts_of(const at::Tensor& projection,
                                   const Generation* generation) const {
    std::vector<ops::ProjectionPart> parts = qkv_parts_;
    if (has_canon_b_) parts = {{all_channels(qkv_parts_), true}};
    const size_t mixed = parts.size();
    parts.insert(parts.end(), gate_parts_.begin(), gate_parts_.end());
    std::vector<at::Tensor> results = conv_(projection, parts, generation);
    if (!has_canon_b_) return results;
    // Canon-B stands between the activation and the heads' lengths.
    const ops::ShortConv lengths_alone{{}, {}, false, model::gdn2_length_eps};
    std::vector<at::Tensor> qkv =
        ops::short_conv(canon_b(results[0], generation), lengths_alone, qkv_parts_);
    qkv.insert(qkv.end(), results.begin() + static_cast<std::ptrdiff_t>(mixed), results.end());
    return qkv;
  }

  static int64_t all_channels(const std::vector<ops::ProjectionPart>& parts) {
    int64_t channels = 0;
    for (const ops::ProjectionPart& part : parts) channels += part.channels;
    return channels;
  }

  GatedHeads gated_heads_;
  at::Tensor a_log_, dt_bias_;  ///< [H]
  std::vector<ops::ProjectionPart> qkv_parts_, gate_parts_;
  bool has_canon_b_;
};

}  // namespace

std::unique_ptr<Block> make_gdn2(const BlockArguments& arguments) {
  return std::make_unique<Gdn2Block>(arguments);
}

}  // namespace forge::libtorch
