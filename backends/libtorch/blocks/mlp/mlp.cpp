#include "backends/libtorch/blocks/mlp/mlp.h"

#include "backends/libtorch/blocks/options.h"
#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/ops/norm_linear/norm_linear.h"
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

}  // namespace

MlpBlock::MlpBlock(const BlockArguments& arguments)
    : norm_options_(norm_options(arguments.config)),
      norm_(arguments.weights.add_vector(arguments.prefix + "post_attention_layernorm",
                                         {arguments.config.hidden_size})),
      canon_c_(arguments, 'C', "canonC", arguments.config.hidden_size) {
  const int64_t hidden = arguments.config.hidden_size, width = arguments.config.mlp.intermediate_size;
  const std::string prefix = arguments.prefix + "mlp.";
  gate_up_ = arguments.weights.add_matrix(
      {{prefix + "gate_proj", width}, {prefix + "up_proj", width}}, hidden);
  canon_d_ = Canon(arguments, 'D', "mlp.canonD", 2 * width);
  down_ = arguments.weights.add_matrix({{prefix + "down_proj", hidden}}, width);
}

at::Tensor MlpBlock::forward(const at::Tensor& x, const ops::Documents& documents) const {
  const auto [gate_up, residual] =
      ops::norm_linear(x, norm_, norm_options_, canon_c_.layer(documents), gate_up_);
  return ops::swiglu_linear(gate_up, canon_d_.layer(documents), down_, residual);
}

std::unique_ptr<BlockState> MlpBlock::new_state(int64_t rows,
                                                const at::TensorOptions& options) const {
  auto state = std::make_unique<MlpState>();
  state->canon_c = canon_c_.new_inputs(rows, options);
  state->canon_d = canon_d_.new_inputs(rows, options);
  return state;
}

at::Tensor MlpBlock::step(const at::Tensor& x,
                          const GenerationStep& step,
                          BlockState& block_state) const {
  auto& state = static_cast<MlpState&>(block_state);
  const at::Tensor normed =
      canon_c_.step(ops::rms_norm(x, norm_, norm_options_), step, state.canon_c);
  const at::Tensor gate_up = canon_d_.step(ops::linear(normed, gate_up_), step, state.canon_d);
  return ops::linear(ops::swiglu(gate_up), down_, x);
}

}  // namespace forge::libtorch
