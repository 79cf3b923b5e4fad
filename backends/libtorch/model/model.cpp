#include "backends/libtorch/model/model.h"

#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/model/recompute.h"
#include "backends/libtorch/ops/embedding/embedding.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "core/model/kinds.h"

namespace forge::libtorch {

Model::Model(const model::ModelConfig& config,
             const WeightTypes& types,
             const at::Device& device,
             model::Recompute recompute)
    : config_(config), weights_(types, device) {
  const int64_t hidden = config.hidden_size;
  embedding_ = weights_.add_matrix({{"model.embed_tokens.weight", config.vocab_size}}, hidden);
  const auto rotary =
      std::make_shared<RotaryTables>(at::TensorOptions(device).dtype(types.vectors));
  for (int layer = 0; layer < config.num_layers; ++layer) add_layer(layer, recompute, rotary);
  norm_ = Norm(config, weights_, "model.norm");
  if (!config.tie_embeddings)
    lm_head_ = weights_.add_matrix({{"lm_head.weight", config.vocab_size}}, hidden);
  stored_count_ = weights_.stored().size();
}

Model::Model(const model::ModelConfig& config, const at::TensorOptions& options)
    : Model(config,
            {c10::typeMetaToScalarType(options.dtype()),
             c10::typeMetaToScalarType(options.dtype()),
             std::nullopt},
            options.device()) {}

void Model::add_layer(int layer,
                      model::Recompute recompute,
                      const std::shared_ptr<RotaryTables>& rotary) {
  using model::Recompute;
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  const auto kinds = model::blocks_of_layer(config_, layer);
  for (const model::BlockKind* kind : kinds) {
    const bool is_mlp = kind == &model::mlp_block;
    const bool is_recomputed =
        recompute == Recompute::blocks || (recompute == Recompute::mlp && is_mlp);
    const bool joins = recompute == Recompute::blocks && kind != kinds.front();
    if (!joins) parts_.push_back({blocks_.size(), blocks_.size(), is_recomputed, {}, 0});
    const size_t known = weights_.stored().size();
    blocks_.push_back(
        block_kinds().at(kind->name)({config_.of_layer(layer), prefix, weights_, rotary}));
    Part& part = parts_.back();
    part.end = blocks_.size();
    const std::vector<at::Tensor> stored = weights_.stored();
    part.weights.insert(part.weights.end(), stored.begin() + known, stored.end());
    part.weights_end = stored.size();
  }
}

at::TensorOptions Model::options() const {
  const at::Tensor& weight = embedding_.stored;
  return at::TensorOptions(weight.device())
      .dtype(weight.is_cuda() ? embedding_.operand().scalar_type() : weight.scalar_type());
}

at::Tensor Model::logits(const at::Tensor& ids,
                         const ops::Documents& documents,
                         std::vector<at::Tensor>* residual_stream) const {
  return ops::linear(norm_(stream(ids, documents, residual_stream)), head());
}

at::Tensor Model::loss(const at::Tensor& ids,
                       const ops::Documents& documents,
                       const at::Tensor& targets,
                       const ops::CrossEntropyOptions& options) const {
  const at::Tensor x = norm_(stream(ids, documents)).flatten(0, 1);
  return ops::linear_cross_entropy(x, head(), targets.flatten(), options);
}

at::Tensor Model::loss_sums(const at::Tensor& ids,
                            const ops::Documents& documents,
                            const at::Tensor& targets) const {
  const at::NoGradGuard no_grad;
  const at::Tensor x = norm_(stream(ids, documents)).flatten(0, 1);
  return ops::linear_cross_entropy_losses(x, head(), targets.flatten())
      .view(targets.sizes())
      .sum({1}, /*keepdim=*/false, at::kDouble);
}

at::Tensor Model::next_logits(const at::Tensor& ids,
                              const std::vector<int64_t>& lengths,
                              InferenceState* state) const {
  at::Tensor x;
  if (state) {
    const GenerationStep step = state->begin_step(lengths, ids.size(1));
    x = ops::embedding(embedding_, ids);
    for (size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i]->step(x, step, state->block(i));
    state->end_step(lengths);
  } else {
    x = stream(ids, {});
  }
  std::vector<int64_t> last;  // of each row, counted over all tokens of the batch
  for (size_t row = 0; row < lengths.size(); ++row)
    last.push_back(static_cast<int64_t>(row) * ids.size(1) + lengths[row] - 1);
  x = x.flatten(0, 1).index_select(0, at::tensor(last, at::kLong).to(x.device()));
  return ops::linear(norm_(x), head());
}

at::Tensor Model::stream(const at::Tensor& ids,
                         const ops::Documents& documents,
                         std::vector<at::Tensor>* residual_stream) const {
  reads(residual_stream ? stored_count_ : 1);
  at::Tensor x = ops::embedding(embedding_, ids);
  if (!residual_stream) {
    for (const Part& part : parts_) {
      reads(part.weights_end);
      x = forward(part, x, documents);
    }
    reads(stored_count_);
    return x;
  }
  for (const auto& block : blocks_) {
    x = block->forward(x, documents);
    residual_stream->push_back(x);
  }
  return x;
}

at::Tensor Model::forward(const Part& part, at::Tensor x, const ops::Documents& documents) const {
  const auto run = [this, first = part.first, end = part.end, documents](at::Tensor y, bool again) {
    for (size_t i = first; i < end; ++i) {
      y = again && i + 1 == end ? blocks_[i]->forward_again(y, documents)
                                : blocks_[i]->forward(y, documents);
    }
    return y;
  };
  if (!part.is_recomputed || !at::GradMode::is_enabled()) return run(std::move(x), false);
  return recomputed(x,
                    {[run](const at::Tensor& y) { return run(y, false); },
                     [run](const at::Tensor& y) { return run(y, true); },
                     part.weights});
}

NamedTensors Model::named_weights() const {
  return named([](const at::Tensor& stored) { return stored.detach(); });
}

at::Tensor Model::rounded_copy_of(const at::Tensor& stored) const {
  for (const ops::WeightMatrix& matrix : rounded_matrices()) {
    if (matrix.stored.is_same(stored)) return matrix.rounded;
  }
  return {};
}

void Model::round_matrices() {
  const at::NoGradGuard no_grad;
  for (ops::WeightMatrix& matrix : rounded_matrices()) matrix.rounded.copy_(matrix.stored);
}

}  // namespace forge::libtorch
