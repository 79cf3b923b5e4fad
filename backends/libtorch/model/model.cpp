#include "backends/libtorch/model/model.h"

#include "backends/libtorch/model/inference.h"
#include "backends/libtorch/ops/embedding/embedding.h"
#include "backends/libtorch/ops/linear_cross_entropy/linear_cross_entropy.h"
#include "core/model/kinds.h"

namespace forge::libtorch {

Model::Model(const model::ModelConfig& config, const WeightTypes& types, const at::Device& device)
    : config_(config), weights_(types, device) {
  const int64_t hidden = config.hidden_size;
  embedding_ = weights_.add_matrix({{"model.embed_tokens.weight", config.vocab_size}}, hidden);
  const auto rotary =
      std::make_shared<RotaryTables>(at::TensorOptions(device).dtype(types.vectors));
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const model::BlockKind* kind : model::blocks_of_layer(config, layer))
      blocks_.push_back(
          block_kinds().at(kind->name)({config_.of_layer(layer), prefix, weights_, rotary}));
  }
  norm_ = Norm(config, weights_, "model.norm");
  if (!config.tie_embeddings)
    lm_head_ = weights_.add_matrix({{"lm_head.weight", config.vocab_size}}, hidden);
}

Model::Model(const model::ModelConfig& config, const at::TensorOptions& options)
    : Model(config,
            {c10::typeMetaToScalarType(options.dtype()),
             c10::typeMetaToScalarType(options.dtype()),
             std::nullopt},
            options.device()) {}

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
  at::Tensor x = ops::embedding(embedding_, ids);
  for (const auto& block : blocks_) {
    x = block->forward(x, documents);
    if (residual_stream) residual_stream->push_back(x);
  }
  return x;
}

NamedTensors Model::named_weights() const {
  return named([](const at::Tensor& stored) { return stored.detach(); });
}

void Model::round_matrices() {
  const at::NoGradGuard no_grad;
  for (ops::WeightMatrix& matrix : rounded_matrices()) matrix.rounded.copy_(matrix.stored);
}

}  // namespace forge::libtorch
