#include "backends/libtorch/blocks/canon.h"
#include "backends/libtorch/blocks/norm.h"
#include "backends/libtorch/model/block.h"
#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"

namespace forge::libtorch {
namespace {

/// The last inputs of the Canon layers [B, kernel - 1, channels], or undefined.
struct MlpState final : BlockState {
  at::Tensor canon_c, canon_d;

  void select(const at::Tensor& index) override {
    for (at::Tensor* tensor : {&canon_c, &canon_d}) {
      if (tensor->defined()) *tensor = tensor->index_select(0, index);
    }
  }
};

/// What stands between gate and up, [B, T, 2I] or up alone [B, T, I], and the last projection.
at::Tensor activation(model::MlpKind kind, const at::Tensor& gate_up) {
  switch (kind) {
    case model::MlpKind::swiglu: return ops::swiglu(gate_up);
    case model::MlpKind::geglu: {
      const std::vector<at::Tensor> halves = gate_up.chunk(2, -1);
      return at::gelu(halves[0]) * halves[1];
    }
    case model::MlpKind::gelu: return at::gelu(gate_up);
    case model::MlpKind::relu_squared: {
      const at::Tensor positive = at::relu(gate_up);
      return positive * positive;
    }
  }
  TORCH_CHECK(false, "no such kind of MLP");
}

/// The MLP, here SwiGLU; activation() has the other kinds, of which some have no gate:
///   [gate | up] = CanonD(CanonC(Norm(x)) W_gate_up^T)
///   y           = x + (silu(gate) * up) W_down^T
/// Whole rows of SwiGLU go through fused operations. A step remembers the last inputs of Canon-C
/// and Canon-D.
class MlpBlock final : public Block {
 public:
  explicit MlpBlock(const BlockArguments& arguments)
      : kind_(arguments.config.mlp.kind),
        norm_(arguments.config, arguments.weights, arguments.prefix + "post_attention_layernorm"),
        canon_c_(arguments, 'C', "canonC", arguments.config.hidden_size) {
    const int64_t hidden = arguments.config.hidden_size;
    const int64_t width = arguments.config.mlp.intermediate_size;
    const std::string prefix = arguments.prefix + "mlp.";
    std::vector<WeightRows> inputs = {{prefix + "up_proj.weight", width}};
    if (arguments.config.mlp.is_gated())
      inputs.insert(inputs.begin(), {prefix + "gate_proj.weight", width});
    gate_up_ = arguments.weights.add_matrix(inputs, hidden);
    canon_d_ = Canon(arguments, 'D', "mlp.canonD", arguments.config.mlp.gate_up_width());
    down_ = arguments.weights.add_matrix({{prefix + "down_proj.weight", hidden}}, width);
  }

  at::Tensor forward(const at::Tensor& x, const ops::Documents& documents) const override {
    return forward(x, documents, ops::Numbers::computed);
  }
  at::Tensor forward_again(const at::Tensor& x, const ops::Documents& documents) const override {
    return forward(x, documents, ops::Numbers::unset);
  }

  std::unique_ptr<BlockState> new_state(int64_t rows,
                                        const at::TensorOptions& options) const override {
    auto state = std::make_unique<MlpState>();
    state->canon_c = canon_c_.new_inputs(rows, options);
    state->canon_d = canon_d_.new_inputs(rows, options);
    return state;
  }

  at::Tensor step(const at::Tensor& x,
                  const GenerationStep& step,
                  BlockState& block_state) const override {
    auto& state = static_cast<MlpState&>(block_state);
    const at::Tensor normed = canon_c_.step(norm_(x), step, state.canon_c);
    const at::Tensor gate_up = canon_d_.step(ops::linear(normed, gate_up_), step, state.canon_d);
    return ops::linear(activation(kind_, gate_up), down_, x);
  }

 private:
  at::Tensor forward(const at::Tensor& x,
                     const ops::Documents& documents,
                     ops::Numbers numbers) const {
    const auto [gate_up, residual] = norm_.project(x, canon_c_.layer(documents), gate_up_);
    if (kind_ == model::MlpKind::swiglu)
      return ops::swiglu_linear(gate_up, canon_d_.layer(documents), down_, residual, numbers);
    const at::Tensor mixed = ops::canon_layer(gate_up, canon_d_.layer(documents));
    return ops::linear(activation(kind_, mixed), down_, residual, numbers);
  }

  model::MlpKind kind_;
  Norm norm_;
  Canon canon_c_;
  /// [2I, hidden]: gate and up together, so that one product serves both and Canon-D is one
  /// convolution. Without a gate [I, hidden].
  ops::WeightMatrix gate_up_;
  Canon canon_d_;
  ops::WeightMatrix down_;  ///< [hidden, I]
};

}  // namespace

std::unique_ptr<Block> make_mlp(const BlockArguments& arguments) {
  return std::make_unique<MlpBlock>(arguments);
}

}  // namespace forge::libtorch
