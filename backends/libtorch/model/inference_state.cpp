#include "backends/libtorch/model/inference_state.h"

#include <algorithm>
#include <cmath>

#include "backends/libtorch/ops/causal_attention/causal_attention.h"

namespace forge::worker {
namespace {

/// Memory is taken in blocks of so many tokens.
constexpr int64_t block_tokens = 64;

at::Tensor to_device(const std::vector<int64_t>& numbers, const at::TensorOptions& options) {
  return at::tensor(numbers, at::kLong).to(options.device());
}

}  // namespace

InferenceState::InferenceState(const config::ModelConfig& config,
                               int64_t rows,
                               int64_t most_tokens,
                               const at::TensorOptions& options)
    : config_(config),
      options_(options.requires_grad(false)),
      most_tokens_(most_tokens),
      lengths_(static_cast<size_t>(rows), 0),
      layers_(static_cast<size_t>(config.num_layers)) {
  const int64_t qkv_width = (config.num_heads + 2 * config.num_kv_heads) * config.head_dim;
  const std::array<int64_t, 4> channels = {
      config.hidden_size, qkv_width, config.hidden_size, 2 * config.intermediate_size};
  for (Layer& layer : layers_) {
    layer.keys = at::empty({rows, config.num_kv_heads, 0, config.head_dim}, options_);
    layer.values = layer.keys;
    for (size_t i = 0; i < channels.size(); ++i) {
      if (!config.canon.has(static_cast<char>('A' + i))) continue;
      layer.inputs[i] = at::zeros({rows, config.canon.kernel - 1, channels[i]}, options_);
    }
  }
}

void InferenceState::select(const std::vector<int64_t>& rows) {
  const at::Tensor index = to_device(rows, options_);
  std::vector<int64_t> lengths;
  for (const int64_t row : rows) lengths.push_back(lengths_.at(static_cast<size_t>(row)));
  lengths_ = std::move(lengths);
  for (Layer& layer : layers_) {
    layer.keys = layer.keys.index_select(0, index);
    layer.values = layer.values.index_select(0, index);
    for (at::Tensor& inputs : layer.inputs) {
      if (inputs.defined()) inputs = inputs.index_select(0, index);
    }
  }
}

void InferenceState::reserve(int64_t tokens) {
  if (tokens <= capacity_) return;
  // Doubled, so that the copies cost a constant a token; never more than will be needed.
  const int64_t grown = std::max(tokens, std::min(2 * capacity_, most_tokens_));
  capacity_ = (grown + block_tokens - 1) / block_tokens * block_tokens;
  const auto enlarged = [&](const at::Tensor& kept) {
    // Zeros and not whatever was there: a hidden key has weight 0, and 0 times NaN is NaN.
    at::Tensor larger = at::zeros({kept.size(0), kept.size(1), capacity_, kept.size(3)}, options_);
    larger.narrow(2, 0, kept.size(2)).copy_(kept);
    return larger;
  };
  for (Layer& layer : layers_) {
    layer.keys = enlarged(layer.keys);
    layer.values = enlarged(layer.values);
  }
}

void InferenceState::begin_step(const std::vector<int64_t>& counts, int64_t width) {
  TORCH_CHECK(counts.size() == lengths_.size(),
              "the state has ",
              lengths_.size(),
              " rows, the step ",
              counts.size());
  const auto [shortest, longest] = std::minmax_element(lengths_.begin(), lengths_.end());
  step_ = Step{};
  step_.counts = counts;
  step_.width = width;
  step_.first = *longest == 0;
  step_.end = *longest + width;
  reserve(step_.end);
  const int64_t groups = config_.num_kv_heads, past = config_.canon.kernel - 1;
  const at::Tensor starts = to_device(lengths_, options_).unsqueeze(1);
  const at::TensorOptions whole = starts.options();
  step_.positions = starts + at::arange(width, whole);
  const at::Tensor head_begin =
      at::arange(rows() * groups, whole).view({-1, groups, 1}) * capacity_;
  step_.slots = (head_begin + step_.positions.unsqueeze(1)).flatten();
  if (!step_.first && (width > 1 || *shortest != *longest)) {
    step_.hidden = at::arange(step_.end, whole).gt(step_.positions.unsqueeze(2));
    step_.hidden = step_.hidden.view({rows(), 1, 1, width, step_.end});
  }
  const bool all_whole =
      std::all_of(counts.begin(), counts.end(), [&](int64_t count) { return count == width; });
  if (!all_whole) {
    const at::Tensor row_begin = at::arange(rows(), whole) * (past + width);
    const at::Tensor behind_last = row_begin + to_device(counts, options_);
    step_.last_inputs = (behind_last.unsqueeze(1) + at::arange(past, whole)).flatten();
  }
}

ops::RotaryTable InferenceState::at_positions(const ops::RotaryTable& table) const {
  const at::Tensor positions = step_.positions.flatten();
  return {table.cos.index_select(0, positions),
          table.sin.index_select(0, positions),
          table.interleaved};
}

at::Tensor InferenceState::with_last_inputs(size_t layer, char position, const at::Tensor& x) {
  at::Tensor& inputs = layers_.at(layer).inputs.at(static_cast<size_t>(position - 'A'));
  const int64_t past = inputs.size(1);
  at::Tensor extended = at::cat({inputs, x}, 1);
  inputs = step_.last_inputs.defined()
               ? extended.flatten(0, 1).index_select(0, step_.last_inputs).view(inputs.sizes())
               : extended.narrow(1, step_.width, past).contiguous();
  return extended;
}

at::Tensor InferenceState::attend(size_t layer,
                                  const at::Tensor& q,
                                  const at::Tensor& k,
                                  const at::Tensor& v) {
  const int64_t heads = q.size(2), groups = k.size(2), head_dim = q.size(3);
  const int64_t group = heads / groups, width = step_.width;
  Layer& kept = layers_.at(layer);
  const auto keep = [&](at::Tensor& cache, const at::Tensor& x) {
    cache.view({-1, head_dim})
        .index_copy_(0, step_.slots, x.transpose(1, 2).reshape({-1, head_dim}));
  };
  keep(kept.keys, k);
  keep(kept.values, v);
  if (step_.first) return ops::causal_attention(q, k, v);
  // The queries that share a key-value head are rows of one matrix: [B, G, (H/G) * width, D].
  const at::Tensor queries = q.reshape({rows(), width, groups, group, head_dim})
                                 .permute({0, 2, 3, 1, 4})
                                 .reshape({rows(), groups, group * width, head_dim});
  const at::Tensor keys = kept.keys.narrow(2, 0, step_.end);
  const at::Tensor values = kept.values.narrow(2, 0, step_.end);
  at::Tensor scores = at::matmul(queries, keys.transpose(2, 3)) / std::sqrt(double(head_dim));
  scores = scores.view({rows(), groups, group, width, step_.end});
  if (step_.hidden.defined()) scores = scores.masked_fill(step_.hidden, -INFINITY);
  const at::Tensor weights =
      at::softmax(scores, -1).view({rows(), groups, group * width, step_.end});
  return at::matmul(weights, values)
      .view({rows(), groups, group, width, head_dim})
      .permute({0, 3, 1, 2, 4})
      .reshape({rows(), width, heads, head_dim})
      .contiguous();
}

void InferenceState::end_step() {
  for (size_t row = 0; row < lengths_.size(); ++row) lengths_[row] += step_.counts[row];
  step_ = Step{};
}

}  // namespace forge::worker
