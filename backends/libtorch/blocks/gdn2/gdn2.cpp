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
  at::Tensor mix(const at::Tensor& projection,
                 const at::Tensor& x,
                 const Generation* generation) const override {
    std::vector<ops::ProjectionPart> all = qkv_parts_;
    if (has_canon_b_) all = {{all_channels(qkv_parts_), true}};
    const size_t mixed = all.size();
    all.insert(all.end(), gate_parts_.begin(), gate_parts_.end());
    std::vector<at::Tensor> parts = conv_(projection, all, generation);
    const at::Tensor gate = parts[mixed], write = parts[mixed + 1], step = parts[mixed + 2];
    // Canon-B stands between the activation and the heads' lengths.
    MixerConv last = conv_;
    at::Tensor source = projection;
    if (has_canon_b_) {
      last = MixerConv::lengths_alone(model::gdn2_length_eps);
      source = canon_b(parts[0], generation);
      all = qkv_parts_;
      parts = last(source, all, nullptr);
    }
    const auto attended = [heads = heads_.heads, a_log = a_log_, bias = dt_bias_](
                              const std::vector<at::Tensor>& qkv,
                              const at::Tensor& of_step,
                              const at::Tensor& of_write) {
      const ops::HeadGates gates = ops::head_gates({of_step, of_write, a_log, bias});
      return std::vector<at::Tensor>{heads_of(qkv[0], heads),
                                     heads_of(qkv[1], heads),
                                     heads_of(qkv[2], heads),
                                     gates.log_decay,
                                     gates.beta};
    };
    const auto again = std::make_shared<ops::RecomputedTensors>(
        [attended, last, all](const std::vector<at::Tensor>& sources) {
          return attended(last(sources[0], all, nullptr), sources[1], sources[2]);
        });
    const double scale = 1 / std::sqrt(static_cast<double>(heads_.key_dim));
    const at::Tensor outputs = attend(inputs_of(attended(parts, step, write)),
                                      {scale, true},
                                      {{source, step, write}, again},
                                      generation);
    return gated_heads_.output(outputs, gate, output_, x);
  }

 private:
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
