#include "backends/libtorch/model/llama_canon.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>

#include "backends/libtorch/model/inference_state.h"
#include "backends/libtorch/ops/canon_conv/canon_conv.h"
#include "backends/libtorch/ops/embedding/embedding.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"
#include "backends/libtorch/ops/swiglu/swiglu.h"
#include "backends/libtorch/ops/swiglu_linear/swiglu_linear.h"

namespace forge::worker {

using config::PositionKind;
using config::QkNorm;

LlamaCanon::LlamaCanon(const config::ModelConfig& config,
                       const WeightTypes& types,
                       const at::Device& device)
    : config_(config) {
  const auto weight = [&](at::IntArrayRef shape) {
    return at::empty(shape, at::TensorOptions(device).dtype(types.small)).requires_grad_(true);
  };
  const auto matrix = [&](at::IntArrayRef shape) {
    const at::TensorOptions options(device);
    ops::WeightMatrix made = at::empty(shape, options.dtype(types.matrices)).requires_grad_(true);
    if (types.products) made.rounded = at::empty(shape, options.dtype(*types.products));
    return made;
  };
  const int64_t hidden = config.hidden_size, mlp = config.intermediate_size, head = config.head_dim;
  const int64_t q_width = config.num_heads * head, kv_width = config.num_kv_heads * head;
  const auto canon = [&](char position, int64_t channels) {
    return config.canon.has(position) ? weight({channels, 1, config.canon.kernel}) : at::Tensor();
  };
  embedding_ = matrix({config.vocab_size, hidden});
  for (int layer = 0; layer < config.num_layers; ++layer) {
    Block block;
    block.input_norm = weight({hidden});
    block.canon_a = canon('A', hidden);
    block.qkv = matrix({q_width + 2 * kv_width, hidden});
    if (config.qk_norm != QkNorm::none) {
      const bool per_head = config.qk_norm == QkNorm::per_head;
      block.q_norm = weight({per_head ? head : q_width});
      block.k_norm = weight({per_head ? head : kv_width});
    }
    block.canon_b = canon('B', q_width + 2 * kv_width);
    block.output = matrix({hidden, q_width});
    block.post_norm = weight({hidden});
    block.canon_c = canon('C', hidden);
    block.gate_up = matrix({2 * mlp, hidden});
    block.canon_d = canon('D', 2 * mlp);
    block.down = matrix({hidden, mlp});
    blocks_.push_back(std::move(block));
  }
  final_norm_ = weight({hidden});
  if (!config.tie_embeddings) lm_head_ = matrix({config.vocab_size, hidden});
}

LlamaCanon::LlamaCanon(const config::ModelConfig& config, const at::TensorOptions& options)
    : LlamaCanon(config,
                 {c10::typeMetaToScalarType(options.dtype()),
                  c10::typeMetaToScalarType(options.dtype()),
                  std::nullopt},
                 options.device()) {}

at::TensorOptions LlamaCanon::options() const {
  const at::Tensor& weight = embedding_.stored;
  return at::TensorOptions(weight.device())
      .dtype(weight.is_cuda() ? embedding_.operand().scalar_type() : weight.scalar_type());
}

std::vector<ops::WeightMatrix> LlamaCanon::rounded_matrices() const {
  std::vector<ops::WeightMatrix> list = {embedding_, lm_head_};
  for (const Block& b : blocks_) list.insert(list.end(), {b.qkv, b.output, b.gate_up, b.down});
  list.erase(std::remove_if(list.begin(),
                            list.end(),
                            [](const ops::WeightMatrix& m) { return !m.rounded.defined(); }),
             list.end());
  return list;
}

void LlamaCanon::round_matrices() {
  const at::NoGradGuard no_grad;
  for (ops::WeightMatrix& matrix : rounded_matrices()) matrix.rounded.copy_(matrix.stored);
}

at::Tensor LlamaCanon::logits(const at::Tensor& ids,
                              const ops::Documents& documents,
                              std::vector<at::Tensor>* residual_stream) const {
  Past past;
  past.documents = documents;
  if (config_.position.kind == PositionKind::rope) past.rotary = rotary_table(ids.size(1));
  return head(stream(ids, std::move(past), residual_stream));
}

at::Tensor LlamaCanon::loss(const at::Tensor& ids,
                            const ops::Documents& documents,
                            const at::Tensor& targets,
                            const ops::CrossEntropyOptions& options) const {
  return ops::linear_cross_entropy(
      head_inputs(ids, documents), head_weight(), targets.flatten(), options);
}

at::Tensor LlamaCanon::loss_sum(const at::Tensor& ids,
                                const ops::Documents& documents,
                                const at::Tensor& targets) const {
  const at::NoGradGuard no_grad;
  return ops::linear_cross_entropy_sum(
      head_inputs(ids, documents), head_weight(), targets.flatten());
}

at::Tensor LlamaCanon::next_logits(const at::Tensor& ids,
                                   const std::vector<int64_t>& lengths,
                                   InferenceState* state) const {
  const bool rope = config_.position.kind == PositionKind::rope;
  Past past;
  past.state = state;
  if (state) {
    state->begin_step(lengths, ids.size(1));
    if (rope) past.rotary = state->at_positions(rotary_table(state->capacity()));
  } else if (rope) {
    past.rotary = rotary_table(ids.size(1));
  }
  const at::Tensor x = stream(ids, std::move(past));
  if (state) state->end_step();
  std::vector<int64_t> last;  // of each row, in all tokens of the batch
  for (size_t row = 0; row < lengths.size(); ++row) {
    last.push_back(static_cast<int64_t>(row) * ids.size(1) + lengths[row] - 1);
  }
  return head(x.flatten(0, 1).index_select(0, at::tensor(last, at::kLong).to(x.device())));
}

at::Tensor LlamaCanon::stream(const at::Tensor& ids,
                              Past past,
                              std::vector<at::Tensor>* residual_stream) const {
  at::Tensor x = ops::embedding(embedding_, ids);
  for (const Block& block : blocks_) {
    x = attention(block, x, past);
    x = mlp(block, x, past);
    if (residual_stream) residual_stream->push_back(x);
    ++past.layer;
  }
  return x;
}

at::Tensor LlamaCanon::head_inputs(const at::Tensor& ids, const ops::Documents& documents) const {
  Past past;
  past.documents = documents;
  if (config_.position.kind == PositionKind::rope) past.rotary = rotary_table(ids.size(1));
  return norm(stream(ids, std::move(past)), final_norm_).flatten(0, 1);
}

at::Tensor LlamaCanon::head(const at::Tensor& x) const {
  return ops::linear(norm(x, final_norm_), head_weight());
}

at::Tensor LlamaCanon::attention(const Block& block, const at::Tensor& x, const Past& past) const {
  const int64_t batch = x.size(0), length = x.size(1), head = config_.head_dim;
  const int64_t q_width = config_.num_heads * head, kv_width = config_.num_kv_heads * head;
  auto [qkv, residual] = project(x, block.input_norm, 'A', block.canon_a, block.qkv, past);
  if (config_.qk_norm == QkNorm::full)
    qkv = ops::rms_norm_of_parts(qkv, block.q_norm, block.k_norm, norm_options());
  if (!past.state) {
    ops::HeadNorms norms;
    if (config_.qk_norm == QkNorm::per_head) norms = {block.q_norm, block.k_norm, norm_options()};
    const at::Tensor mixed = ops::self_attention(qkv,
                                                 canon_layer(block.canon_b, past),
                                                 past.rotary,
                                                 {config_.num_heads, config_.num_kv_heads, head},
                                                 past.documents,
                                                 products(),
                                                 norms);
    return ops::linear(mixed, block.output, residual);
  }
  qkv = canon('B', block.canon_b, qkv, past);
  const auto parts = at::split_with_sizes(qkv, {q_width, kv_width, kv_width}, 2);
  at::Tensor q = parts[0].view({batch, length, config_.num_heads, head});
  at::Tensor k = parts[1].view({batch, length, config_.num_kv_heads, head});
  const at::Tensor v = parts[2].view({batch, length, config_.num_kv_heads, head});
  if (config_.qk_norm == QkNorm::per_head) {
    q = norm(q, block.q_norm);
    k = norm(k, block.k_norm);
  }
  if (config_.position.kind == PositionKind::rope) {
    q = rotate(q, past);
    k = rotate(k, past);
  }
  const at::Tensor mixed = past.state->attend(past.layer, q, k, v);
  return ops::linear(mixed.view({batch, length, q_width}), block.output, residual);
}

at::Tensor LlamaCanon::mlp(const Block& block, const at::Tensor& x, const Past& past) const {
  const auto [gate_up, residual] =
      project(x, block.post_norm, 'C', block.canon_c, block.gate_up, past);
  if (!past.state)
    return ops::swiglu_linear(gate_up, canon_layer(block.canon_d, past), block.down, residual);
  return ops::linear(ops::swiglu(canon('D', block.canon_d, gate_up, past)), block.down, residual);
}

ops::NormLinear LlamaCanon::project(const at::Tensor& x,
                                    const at::Tensor& norm_weight,
                                    char position,
                                    const at::Tensor& canon_weight,
                                    const ops::WeightMatrix& weight,
                                    const Past& past) const {
  if (past.state)
    return {ops::linear(canon(position, canon_weight, norm(x, norm_weight), past), weight), x};
  return ops::norm_linear(x, norm_weight, norm_options(), canon_layer(canon_weight, past), weight);
}

ops::RmsNormOptions LlamaCanon::norm_options() const {
  return {config_.rms_norm_eps, config_.rms_norm_rounding == config::RmsNormRounding::huggingface};
}

at::Tensor LlamaCanon::norm(const at::Tensor& x, const at::Tensor& weight) const {
  return ops::rms_norm(x, weight, norm_options());
}

ops::CanonLayer LlamaCanon::canon_layer(const at::Tensor& weight, const Past& past) const {
  const bool silu = config_.canon.activation == config::Activation::silu;
  return {weight, {config_.canon.residual, silu}, past.documents.ids};
}

at::Tensor LlamaCanon::canon(char position,
                             const at::Tensor& weight,
                             const at::Tensor& x,
                             const Past& past) const {
  const ops::CanonLayer layer = canon_layer(weight, past);
  if (!weight.defined() || !past.state) return ops::canon_layer(x, layer);
  const at::Tensor extended = past.state->with_last_inputs(past.layer, position, x);
  const int64_t length = x.size(1);
  return ops::canon_conv(extended, weight, layer.options)
      .narrow(1, extended.size(1) - length, length)
      .contiguous();
}

at::Tensor LlamaCanon::rotate(const at::Tensor& x, const Past& past) const {
  // Each row has positions of its own: all tokens one after another, as if they were one row's.
  return ops::rotary(x.flatten(0, 1).unsqueeze(0), past.rotary).view(x.sizes());
}

const ops::RotaryTable& LlamaCanon::rotary_table(int64_t length) const {
  if (rotary_.empty() || rotary_.back().cos.size(0) < length) {
    // Kept for later: also for training, which could not use a tensor of inference mode.
    const c10::InferenceMode no_inference_mode(false);
    const at::NoGradGuard no_grad;
    rotary_.push_back(ops::rotary_table(length,
                                        config_.position.rope_dim.value_or(config_.head_dim),
                                        config_.position.theta,
                                        config_.position.pairing == config::RopePairing::lingua,
                                        final_norm_.options().requires_grad(false)));
  }
  return rotary_.back();
}

NamedTensors LlamaCanon::named(
    const std::function<at::Tensor(const at::Tensor&)>& of_stored) const {
  NamedTensors list;
  const auto add = [&](const std::string& name, const at::Tensor& stored) {
    if (stored.defined()) list.emplace_back(name + ".weight", of_stored(stored));
  };
  const auto add_part =
      [&](const std::string& name, const at::Tensor& stored, int64_t first, int64_t rows) {
        list.emplace_back(name + ".weight", of_stored(stored).narrow(0, first, rows));
      };
  const int64_t q_width = config_.num_heads * config_.head_dim,
                kv_width = config_.num_kv_heads * config_.head_dim;
  add("model.embed_tokens", embedding_.stored);
  for (size_t layer = 0; layer < blocks_.size(); ++layer) {
    const Block& block = blocks_[layer];
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    add(prefix + "input_layernorm", block.input_norm);
    add(prefix + "canonA", block.canon_a);
    add_part(prefix + "self_attn.q_proj", block.qkv.stored, 0, q_width);
    add_part(prefix + "self_attn.k_proj", block.qkv.stored, q_width, kv_width);
    add_part(prefix + "self_attn.v_proj", block.qkv.stored, q_width + kv_width, kv_width);
    add(prefix + "self_attn.o_proj", block.output.stored);
    add(prefix + "self_attn.q_norm", block.q_norm);
    add(prefix + "self_attn.k_norm", block.k_norm);
    add(prefix + "self_attn.canonB", block.canon_b);
    add(prefix + "post_attention_layernorm", block.post_norm);
    add(prefix + "canonC", block.canon_c);
    add_part(prefix + "mlp.gate_proj", block.gate_up.stored, 0, config_.intermediate_size);
    add_part(prefix + "mlp.up_proj",
             block.gate_up.stored,
             config_.intermediate_size,
             config_.intermediate_size);
    add(prefix + "mlp.down_proj", block.down.stored);
    add(prefix + "mlp.canonD", block.canon_d);
  }
  add("model.norm", final_norm_);
  add("lm_head", lm_head_.stored);
  return list;
}

NamedTensors LlamaCanon::named_weights() const {
  return named([](const at::Tensor& stored) { return stored.detach(); });
}

NamedTensors LlamaCanon::named_gradients() const {
  return named([](const at::Tensor& stored) {
    return stored.grad().defined() ? stored.grad() : at::zeros_like(stored.detach());
  });
}

std::vector<at::Tensor> LlamaCanon::trainable() const {
  std::vector<at::Tensor> list = {embedding_.stored};
  for (const Block& b : blocks_) {
    for (const at::Tensor& weight : {b.input_norm,
                                     b.canon_a,
                                     b.qkv.stored,
                                     b.q_norm,
                                     b.k_norm,
                                     b.canon_b,
                                     b.output.stored,
                                     b.post_norm,
                                     b.canon_c,
                                     b.gate_up.stored,
                                     b.canon_d,
                                     b.down.stored}) {
      if (weight.defined()) list.push_back(weight);
    }
  }
  list.push_back(final_norm_);
  if (lm_head_.defined()) list.push_back(lm_head_.stored);
  return list;
}

}  // namespace forge::worker
