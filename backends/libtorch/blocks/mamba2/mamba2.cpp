#include "backends/libtorch/blocks/linear/linear_mixer.h"
#include "backends/libtorch/ops/log_decay/log_decay.h"

namespace forge::libtorch {
namespace {

/// Mamba-2, with n = CanonA(Norm(x)):
///   [z | x' | B | C | dt'] = CanonB(n W_in^T);  [x' | B | C] = silu(conv(x' | B | C) + bias)
///   dt = softplus(dt' + dt_bias);  log decay = -exp(A_log) dt
///   y  = x + RMSNorm((attention(C, B, dt x') + D x') * silu(z)) W_out^T
/// All heads share the queries C and the keys B. Without the letter b x', B and C stay as they are.
class Mamba2Block final : public LinearMixer {
 public:
  explicit Mamba2Block(const BlockArguments& arguments)
      : LinearMixer(arguments, model::mamba2_heads(arguments.config)) {
    const model::ModelConfig& config = arguments.config;
    const model::Mamba2Config& mamba2 = config.mamba2;
    const std::string prefix = arguments.prefix + "mamba2.";
    const int64_t hidden = config.hidden_size, width = heads_.value_width(), heads = heads_.heads;
    const int64_t projected = mamba2.projected_width(hidden);
    WeightStore& weights = arguments.weights;
    input_ = weights.add_padded_matrix({{prefix + "in_proj.weight", projected}}, hidden);
    const bool with_silu =
        config.canon.has('b') && mamba2.conv_activation == model::Activation::silu;
    conv_ = MixerConv(arguments, {{"mamba2.conv1d", mamba2.conv_width(hidden)}}, true, with_silu);
    canon_b_ = Canon(arguments, 'B', "mamba2.canonB", projected);
    a_log_ = weights.add_vector(prefix + "A_log", {heads});
    dt_bias_ = weights.add_vector(prefix + "dt_bias", {heads});
    skip_ = weights.add_vector(prefix + "D", {heads});
    norm_of_output_.weight = weights.add_vector(prefix + "norm.weight", {width});
    norm_of_output_.eps = config.norm.eps;
    norm_of_output_.gate_first = true;
    output_ = weights.add_matrix({{prefix + "out_proj.weight", hidden}}, width);
    parts_ = {{width}, {width, true}, {heads_.key_dim, true}, {heads_.key_dim, true}, {heads}};
  }

 protected:
  at::Tensor mix(const at::Tensor& projection,
                 const at::Tensor& x,
                 const Generation* generation) const override {
    const at::Tensor source = canon_b(projection, generation);
    const std::vector<at::Tensor> parts = conv_(source, parts_, generation);
    const auto attended =
        [heads = heads_.heads, a_log = a_log_, bias = dt_bias_](const std::vector<at::Tensor>& of) {
          const ops::HeadGates gates = ops::head_gates({of[4], {}, a_log, bias});
          return std::vector<at::Tensor>{heads_of(of[3], 1),
                                         heads_of(of[2], 1),
                                         heads_of(of[1], heads),
                                         gates.log_decay,
                                         gates.beta};
        };
    const auto again = std::make_shared<ops::RecomputedTensors>(
        [attended, conv = conv_, all = parts_](const std::vector<at::Tensor>& sources) {
          return attended(conv(sources[0], all, nullptr));
        });
    const ops::Recomputation from_source{{source}, again};
    const at::Tensor outputs = attend(inputs_of(attended(parts)), {}, from_source, generation);
    return ops::gated_norm_linear(
        outputs, parts[0], norm_of_output_, {parts[1], skip_, from_source}, output_, x);
  }

 private:
  at::Tensor a_log_, dt_bias_, skip_;  ///< [H]
  ops::GatedNorm norm_of_output_;
  std::vector<ops::ProjectionPart> parts_;
};

}  // namespace

std::unique_ptr<Block> make_mamba2(const BlockArguments& arguments) {
  return std::make_unique<Mamba2Block>(arguments);
}

}  // namespace forge::libtorch
