#include "backends/libtorch/blocks/linear/linear_mixer.h"

namespace forge::libtorch {
namespace {

int64_t mixed_channels(const std::vector<ops::ProjectionPart>& parts) {
  int64_t channels = 0;
  for (const ops::ProjectionPart& part : parts) channels += part.is_mixed ? part.channels : 0;
  return channels;
}

}  // namespace

void LinearState::select(const at::Tensor& index) {
  for (at::Tensor* tensor : {&heads, &canon_a, &conv, &canon_b}) {
    if (tensor->defined()) *tensor = tensor->index_select(0, index);
  }
}

MixerConv::MixerConv(const BlockArguments& arguments,
                     const std::vector<WeightRows>& weights,
                     bool with_bias,
                     bool with_silu) {
  conv_.silu = with_silu;
  if (!arguments.config.canon.has('b')) return;
  std::vector<WeightRows> taps, biases;
  for (const WeightRows& weight : weights) {
    taps.push_back({arguments.prefix + weight.name + ".weight", weight.rows});
    biases.push_back({arguments.prefix + weight.name + ".bias", weight.rows});
  }
  conv_.weight = arguments.weights.add_vectors(taps, {1, model::short_conv_taps});
  if (with_bias) conv_.bias = arguments.weights.add_vectors(biases, {});
}

MixerConv MixerConv::lengths_alone(double eps) {
  MixerConv conv;
  conv.conv_ = {{}, {}, false, eps};
  return conv;
}

at::Tensor MixerConv::new_inputs(int64_t rows, const at::TensorOptions& options) const {
  if (!conv_.weight.defined()) return {};
  return at::zeros({rows, conv_.weight.size(2) - 1, conv_.weight.size(0)}, options);
}

std::vector<at::Tensor> MixerConv::operator()(const at::Tensor& projection,
                                              const std::vector<ops::ProjectionPart>& parts,
                                              const Generation* generation) const {
  if (!generation || !conv_.weight.defined()) return ops::short_conv(projection, conv_, parts);
  std::vector<ops::ProjectionPart> mixed_parts;
  int64_t first_mixed = 0, width = 0;
  for (const ops::ProjectionPart& part : parts) {
    if (part.is_mixed && mixed_parts.empty()) first_mixed = width;
    if (part.is_mixed) mixed_parts.push_back(part);
    width += part.channels;
  }
  at::Tensor& last_inputs = generation->state.conv;
  const int64_t before = last_inputs.size(1);
  const at::Tensor mixed = projection.narrow(2, first_mixed, mixed_channels(parts));
  const at::Tensor extended = at::cat({last_inputs, mixed}, 1);
  last_inputs = generation->step.last_tokens(extended, before);
  const std::vector<at::Tensor> activated = ops::short_conv(extended, conv_, mixed_parts);
  std::vector<at::Tensor> results;
  size_t next_mixed = 0;
  int64_t first = 0;
  for (const ops::ProjectionPart& part : parts) {
    const at::Tensor of_step = part.is_mixed
                                   ? activated[next_mixed++].narrow(1, before, projection.size(1))
                                   : projection.narrow(2, first, part.channels);
    results.push_back(of_step.contiguous());
    first += part.channels;
  }
  return results;
}

LinearMixer::LinearMixer(const BlockArguments& arguments, const model::LinearHeads& heads)
    : heads_(heads),
      norm_(arguments.config, arguments.weights, arguments.prefix + "input_layernorm"),
      canon_a_(arguments, 'A', "canonA", arguments.config.hidden_size) {}

at::Tensor LinearMixer::forward(const at::Tensor& x, const ops::Documents& documents) const {
  TORCH_CHECK(!documents.defined(), "a linear mixer does not keep documents of a row apart");
  const auto [projection, residual] = norm_.project(x, canon_a_.layer({}), input_);
  return mix(projection, residual, nullptr);
}

std::unique_ptr<BlockState> LinearMixer::new_state(int64_t rows,
                                                   const at::TensorOptions& options) const {
  auto state = std::make_unique<LinearState>();
  const bool is_double = options.dtype() == at::kDouble;
  state->heads = at::zeros({rows, heads_.heads, heads_.key_dim, heads_.value_dim},
                           options.dtype(is_double ? at::kDouble : at::kFloat));
  state->canon_a = canon_a_.new_inputs(rows, options);
  state->conv = conv_.new_inputs(rows, options);
  state->canon_b = canon_b_.new_inputs(rows, options);
  return state;
}

at::Tensor LinearMixer::step(const at::Tensor& x,
                             const GenerationStep& step,
                             BlockState& block_state) const {
  auto& state = static_cast<LinearState&>(block_state);
  const at::Tensor normed = canon_a_.step(norm_(x), step, state.canon_a);
  const Generation generation{step, state};
  return mix(ops::linear(normed, input_), x, &generation);
}

at::Tensor LinearMixer::canon_b(const at::Tensor& x, const Generation* generation) const {
  ops::CanonLayer layer = canon_b_.layer({});
  if (!layer.weight.defined()) return x;
  const int64_t channels = layer.weight.size(0), beyond = x.size(2) - channels;
  if (generation)
    return canon_b_.step(x.narrow(2, 0, channels), generation->step, generation->state.canon_b);
  if (beyond > 0) layer.weight = at::constant_pad_nd(layer.weight, {0, 0, 0, 0, 0, beyond});
  return ops::canon_layer(x, layer);
}

at::Tensor LinearMixer::attend(ops::LinearAttentionInputs inputs,
                               const ops::LinearAttentionOptions& options,
                               const ops::Recomputation& again,
                               const Generation* generation) const {
  if (!generation)
    return ops::recomputed_linear_attention(inputs, options, again).output.flatten(2);
  const at::Tensor& missing = generation->step.missing();
  if (missing.defined()) {  // such a token neither fades the state nor writes to it
    const at::Tensor of_heads = missing.unsqueeze(2);
    inputs.k = inputs.k.masked_fill(of_heads.unsqueeze(3), 0);
    inputs.log_decay = inputs.log_decay.masked_fill(
        inputs.log_decay.dim() == 4 ? of_heads.unsqueeze(3) : of_heads, 0);
  }
  inputs.state = generation->state.heads;
  const ops::LinearAttention results = ops::linear_attention(inputs, options);
  generation->state.heads = results.state;
  return results.output.flatten(2);
}

GatedHeads::GatedHeads(const BlockArguments& arguments,
                       const std::string& mixer,
                       const char* norm,
                       const model::LinearHeads& heads,
                       std::optional<int> gate_rank) {
  const std::string prefix = arguments.prefix + mixer;
  const int64_t keys = heads.key_width(), values = heads.value_width();
  qkv_ = {{prefix + "q_proj.weight", keys},
          {prefix + "k_proj.weight", keys},
          {prefix + "v_proj.weight", values}};
  convolutions_ = {
      {mixer + "q_conv1d", keys}, {mixer + "k_conv1d", keys}, {mixer + "v_conv1d", values}};
  gate_rows_ = {prefix + "g_proj.weight", values};
  WeightStore& weights = arguments.weights;
  if (gate_rank) {
    gate_rows_ = {prefix + "g_proj.0.weight", *gate_rank};
    wide_gate_ = weights.add_matrix({{prefix + "g_proj.1.weight", values}}, *gate_rank);
    norm_.gate_bias = weights.add_vector(prefix + "g_proj.1.bias", {values});
  }
  norm_.weight = weights.add_vector(prefix + norm + ".weight", {heads.value_dim});
  norm_.eps = arguments.config.norm.eps;
}

at::Tensor GatedHeads::output(const at::Tensor& outputs,
                              const at::Tensor& gate,
                              const ops::WeightMatrix& output,
                              const at::Tensor& x) const {
  return ops::gated_norm_linear(
      outputs, wide_gate_.defined() ? ops::linear(gate, wide_gate_) : gate, norm_, {}, output, x);
}

}  // namespace forge::libtorch
