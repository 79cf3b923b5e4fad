#include <cmath>
#include <optional>

#include "backends/libtorch/blocks/canon.h"
#include "backends/libtorch/blocks/norm.h"
#include "backends/libtorch/model/block.h"
#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/ops/self_attention/self_attention.h"

namespace forge::libtorch {
namespace {

using model::ModelConfig;
using model::QkNorm;

ops::HeadLayout head_layout(const ModelConfig& config) {
  return {config.attention.num_heads, config.attention.num_kv_heads, config.attention.head_dim};
}

std::optional<RotaryOptions> rotary_options(const ModelConfig& config) {
  const model::PositionConfig& position = config.attention.position;
  if (position.kind != model::PositionKind::rope) return std::nullopt;
  return RotaryOptions{config.attention.rotated_channels(),
                       position.theta,
                       position.pairing == model::RopePairing::lingua};
}

/// Keys and values [B, G, capacity, D] of all tokens, or [B, tokens, G D] of those that the next
/// token's window reaches, and the last inputs of the Canon layers.
struct AttentionState final : BlockState {
  at::Tensor keys, values;
  bool has_window = false;
  at::Tensor canon_a, canon_b;  ///< [B, kernel - 1, channels], or undefined

  void select(const at::Tensor& index) override {
    for (at::Tensor* tensor : {&keys, &values, &canon_a, &canon_b}) {
      if (tensor->defined()) *tensor = tensor->index_select(0, index);
    }
  }

  void reserve(int64_t tokens) override {
    if (has_window) return;
    for (at::Tensor* cache : {&keys, &values}) {
      // Zeros and not whatever was there: a later token has weight 0, and 0 times NaN is NaN.
      at::Tensor larger =
          at::zeros({cache->size(0), cache->size(1), tokens, cache->size(3)}, cache->options());
      larger.narrow(2, 0, cache->size(2)).copy_(*cache);
      *cache = larger;
    }
  }
};

/// Attention of q [B, width, H, D] to keys and values [B, G, N, D], but for those that are `hidden`
/// from a query, bool [B, 1, 1, width, N] or undefined. Returns [B, width, H, D].
at::Tensor attend(const at::Tensor& q,
                  const at::Tensor& keys,
                  const at::Tensor& values,
                  const at::Tensor& hidden) {
  const int64_t rows = q.size(0), width = q.size(1), heads = q.size(2), head_dim = q.size(3);
  const int64_t groups = keys.size(1), group = heads / groups, end = keys.size(2);
  // The queries that share a key-value head are rows of one matrix: [B, G, (H/G) * width, D].
  const at::Tensor queries = q.reshape({rows, width, groups, group, head_dim})
                                 .permute({0, 2, 3, 1, 4})
                                 .reshape({rows, groups, group * width, head_dim});
  at::Tensor scores = at::matmul(queries, keys.transpose(2, 3)) / std::sqrt(double(head_dim));
  scores = scores.view({rows, groups, group, width, end});
  if (hidden.defined()) scores = scores.masked_fill(hidden, -INFINITY);
  const at::Tensor weights = at::softmax(scores, -1).view({rows, groups, group * width, end});
  return at::matmul(weights, values)
      .view({rows, groups, group, width, head_dim})
      .permute({0, 3, 1, 2, 4})
      .reshape({rows, width, heads, head_dim})
      .contiguous();
}

/// Attention to all tokens: keys and values [B, width, G, D] of the step's are written behind those
/// of the tokens before.
at::Tensor attend_to_all(const at::Tensor& q,
                         const at::Tensor& k,
                         const at::Tensor& v,
                         const GenerationStep& step,
                         AttentionState& state) {
  step.write(state.keys, k);
  step.write(state.values, v);
  if (step.is_first()) return ops::causal_attention(q, k, v);
  return attend(q,
                state.keys.narrow(2, 0, step.end()),
                state.values.narrow(2, 0, step.end()),
                step.later_tokens());
}

/// Attention under a window: keys and values [B, width, G, D] of the step's tokens come behind
/// those that the state has kept of the tokens before, and the state keeps those of the last window
/// - 1 tokens.
at::Tensor attend_within_window(const at::Tensor& q,
                                const at::Tensor& k,
                                const at::Tensor& v,
                                int64_t window,
                                const GenerationStep& step,
                                AttentionState& state) {
  const int64_t before = state.keys.size(1), width = step.width(), all = before + width;
  const int64_t groups = k.size(2), kept = std::min(window - 1, all);
  const auto extend = [&](at::Tensor& cache, const at::Tensor& x) {
    const at::Tensor extended = at::cat({cache, x.flatten(2)}, 1);
    // As many tokens before the step as are kept: zeros where no row has had so many.
    const int64_t missing = std::max<int64_t>(kept - before, 0);
    const at::Tensor padded = at::constant_pad_nd(extended, {0, 0, missing, 0});
    cache = step.last_tokens(padded.narrow(1, before + missing - kept, kept + width), kept);
    return extended.unflatten(2, {groups, -1}).transpose(1, 2);
  };
  const at::Tensor keys = extend(state.keys, k), values = extend(state.values, v);
  if (step.is_first()) return ops::causal_attention(q, k, v, ops::within_window({}, window, q));
  const at::Tensor queries = step.positions().unsqueeze(2);  // [B, width, 1]
  const at::Tensor first = step.positions().narrow(1, 0, 1) - before;
  const at::Tensor tokens = (first + at::arange(all, first.options())).unsqueeze(1);  // [B, 1, N]
  const at::Tensor hidden =
      tokens.lt(0).logical_or(tokens.gt(queries)).logical_or(tokens.le(queries - window));
  return attend(q, keys, values, hidden.unsqueeze(1).unsqueeze(1));
}

/// Rotates x [B, width, heads, D] by the angles of each token, [B * width, rope_dim / 2].
at::Tensor rotate(const at::Tensor& x, const ops::RotaryTable& angles) {
  // Each row has positions of its own: all tokens one after another, as if they were one row's.
  return ops::rotary(x.flatten(0, 1).unsqueeze(0), angles).view(x.sizes());
}

/// Causal softmax attention with grouped keys and values:
///   n         = CanonA(Norm(x))
///   [q | k | v] = n W_qkv^T, RMSNorm of q and k over all channels where qk_norm is full
///   [q | k | v] = CanonB([q | k | v]), RMSNorm of each head of q and k where qk_norm is per_head
///   y         = x + attention(rope(q), rope(k), v) W_output^T
/// Whole rows go through fused operations. A step remembers keys (as attention reads them) and
/// values of all tokens, or of those within the window, and the last inputs of Canon-A and Canon-B.
class AttentionBlock final : public Block {
 public:
  explicit AttentionBlock(const BlockArguments& arguments)
      : layout_(head_layout(arguments.config)),
        window_(arguments.config.attention.window),
        rope_(rotary_options(arguments.config)),
        rotary_(arguments.rotary),
        norm_(arguments.config, arguments.weights, arguments.prefix + "input_layernorm"),
        canon_a_(arguments, 'A', "canonA", arguments.config.hidden_size),
        qk_norm_(rms_norm_options(arguments.config.norm)) {
    const std::string prefix = arguments.prefix + "self_attn.";
    const int64_t hidden = arguments.config.hidden_size;
    const int64_t q_width = layout_.heads * layout_.head_dim;
    const int64_t kv_width = layout_.kv_heads * layout_.head_dim;
    WeightStore& weights = arguments.weights;
    qkv_ = weights.add_matrix({{prefix + "q_proj.weight", q_width},
                               {prefix + "k_proj.weight", kv_width},
                               {prefix + "v_proj.weight", kv_width}},
                              hidden);
    const auto qk_norms = [&](int64_t q_channels, int64_t k_channels) {
      return std::pair(weights.add_vector(prefix + "q_norm.weight", {q_channels}),
                       weights.add_vector(prefix + "k_norm.weight", {k_channels}));
    };
    if (arguments.config.attention.qk_norm == QkNorm::full) {
      std::tie(q_norm_full_, k_norm_full_) = qk_norms(q_width, kv_width);
    } else if (arguments.config.attention.qk_norm == QkNorm::per_head) {
      std::tie(head_norms_.q, head_norms_.k) = qk_norms(layout_.head_dim, layout_.head_dim);
      head_norms_.options = qk_norm_;
    }
    canon_b_ = Canon(arguments, 'B', "self_attn.canonB", layout_.width());
    output_ = weights.add_matrix({{prefix + "o_proj.weight", hidden}}, q_width);
  }

  at::Tensor forward(const at::Tensor& x, const ops::Documents& documents) const override {
    auto [qkv, residual] = norm_.project(x, canon_a_.layer(documents), qkv_);
    if (q_norm_full_.defined())
      qkv = ops::rms_norm_of_parts(qkv, q_norm_full_, k_norm_full_, qk_norm_);
    const at::Tensor mixed =
        ops::self_attention(qkv,
                            {canon_b_.layer(documents),
                             rope_ ? rotary_->of_length(*rope_, x.size(1)) : ops::RotaryTable(),
                             layout_,
                             head_norms_},
                            window_ ? ops::within_window(documents, *window_, x) : documents,
                            output_.operand().scalar_type());
    return ops::linear(mixed, output_, residual);
  }

  std::unique_ptr<BlockState> new_state(int64_t rows,
                                        const at::TensorOptions& options) const override {
    auto state = std::make_unique<AttentionState>();
    state->has_window = window_.has_value();
    state->keys = window_ ? at::empty({rows, 0, layout_.kv_heads * layout_.head_dim}, options)
                          : at::empty({rows, layout_.kv_heads, 0, layout_.head_dim}, options);
    state->values = state->keys;
    state->canon_a = canon_a_.new_inputs(rows, options);
    state->canon_b = canon_b_.new_inputs(rows, options);
    return state;
  }

  at::Tensor step(const at::Tensor& x,
                  const GenerationStep& step,
                  BlockState& block_state) const override {
    auto& state = static_cast<AttentionState&>(block_state);
    const int64_t rows = x.size(0), width = x.size(1), head_dim = layout_.head_dim;
    const at::Tensor normed = canon_a_.step(norm_(x), step, state.canon_a);
    at::Tensor qkv = ops::linear(normed, qkv_);
    if (q_norm_full_.defined())
      qkv = ops::rms_norm_of_parts(qkv, q_norm_full_, k_norm_full_, qk_norm_);
    qkv = canon_b_.step(qkv, step, state.canon_b);
    const auto heads = [&](int64_t first, int64_t count) {
      return qkv.narrow(2, first * head_dim, count * head_dim).view({rows, width, count, head_dim});
    };
    at::Tensor q = heads(0, layout_.heads);
    at::Tensor k = heads(layout_.heads, layout_.kv_heads);
    const at::Tensor v = heads(layout_.heads + layout_.kv_heads, layout_.kv_heads);
    if (head_norms_.defined()) {
      q = ops::rms_norm(q, head_norms_.q, qk_norm_);
      k = ops::rms_norm(k, head_norms_.k, qk_norm_);
    }
    if (rope_) {
      const ops::RotaryTable angles = rotary_->of_step(*rope_, step);
      q = rotate(q, angles);
      k = rotate(k, angles);
    }
    const at::Tensor mixed = window_ ? attend_within_window(q, k, v, *window_, step, state)
                                     : attend_to_all(q, k, v, step, state);
    return ops::linear(mixed.view({rows, width, layout_.heads * head_dim}), output_, x);
  }

 private:
  ops::HeadLayout layout_;
  std::optional<int64_t> window_;
  std::optional<RotaryOptions> rope_;
  std::shared_ptr<RotaryTables> rotary_;
  Norm norm_;
  Canon canon_a_;
  /// [(H + 2G) D, hidden]: q, k and v together, so that one product serves all three and Canon-B is
  /// one convolution.
  ops::WeightMatrix qkv_;
  ops::RmsNormOptions qk_norm_;
  at::Tensor q_norm_full_, k_norm_full_;  ///< [H D] and [G D], or undefined
  ops::HeadNorms head_norms_;             ///< per head, or undefined
  Canon canon_b_;
  ops::WeightMatrix output_;  ///< [hidden, H D]
};

}  // namespace

std::unique_ptr<Block> make_attention(const BlockArguments& arguments) {
  return std::make_unique<AttentionBlock>(arguments);
}

}  // namespace forge::libtorch
