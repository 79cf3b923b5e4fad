#include "core/model/arithmetic.h"

#include <numeric>

#include "core/base/error.h"

namespace forge::model {

int64_t ParameterCounts::canon() const {
  return of(Part::canon_a) + of(Part::canon_b) + of(Part::canon_c) + of(Part::canon_d);
}

int64_t ParameterCounts::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), int64_t{0});
}

ParameterCounts count_parameters(const config::ModelConfig& model) {
  ParameterCounts counts;
  for (const Parameter& parameter : parameters(model))
    counts.add(parameter.part, parameter.count());
  return counts;
}

TokenFlops flops_per_token(const config::ModelConfig& model, int seq_len) {
  // Every weight of a projection and every tap of a Canon layer is used once for each token.
  const ParameterCounts counts = count_parameters(model);
  // Scores and weighted sum: two products of head_dim with each of on average seq_len / 2 keys.
  const double pairs = static_cast<double>(seq_len) / 2;
  const double width = static_cast<double>(model.num_heads) * model.head_dim;
  TokenFlops flops;
  flops.projections = 2.0 * static_cast<double>(counts.of(Part::attention) + counts.of(Part::mlp));
  flops.attention = 2.0 * (2.0 * model.num_layers * width * pairs);
  flops.canon = 2.0 * static_cast<double>(counts.canon());
  flops.lm_head = 2.0 * static_cast<double>(model.vocab_size) * model.hidden_size;
  return flops;
}

namespace {

constexpr int64_t bytes_of_id = 4;

int64_t bytes_of(config::Precision precision) {
  switch (precision) {
    case config::Precision::float32: return 4;
    case config::Precision::float64: return 8;
    case config::Precision::bfloat16: return 2;
  }
  throw Error("train.precision is none of float32, float64, bfloat16");
}

/// Numbers that one block keeps for each token, by the operation that needs them again.
int64_t kept_by_attention(const config::ModelConfig& model) {
  const int64_t hidden = model.hidden_size, heads = model.num_heads, kv_heads = model.num_kv_heads;
  const int64_t query = heads * model.head_dim, key = kv_heads * model.head_dim;
  const int64_t qkv = query + 2 * key;
  int64_t kept = hidden + 1;                 // input norm: its input and the root
  kept += hidden;                            // Canon-A or the projections: their input
  if (model.canon.has('A')) kept += hidden;  // the projections: their input
  if (model.qk_norm == config::QkNorm::full) kept += query + key + 2;  // norms: inputs, two roots
  if (model.canon.has('B')) kept += qkv;                               // Canon-B: its input
  kept += qkv;  // attention: v, a view that keeps q and k alive
  const bool per_head = model.qk_norm == config::QkNorm::per_head;
  if (per_head) kept += query + key + heads + kv_heads;  // norms: inputs, a root for each head
  const bool rotated = model.position.kind == config::PositionKind::rope;
  if (rotated || per_head) kept += query + key;  // attention: q and k as they went in
  return kept + query + heads;                   // attention: its output, log-sum-exps
}

int64_t kept_by_mlp(const config::ModelConfig& model) {
  const int64_t hidden = model.hidden_size, width = model.intermediate_size;
  int64_t kept = hidden + 1;                    // post norm: its input and the root
  kept += hidden;                               // Canon-C or gate and up: their input
  if (model.canon.has('C')) kept += hidden;     // gate and up: their input
  if (model.canon.has('D')) kept += 2 * width;  // Canon-D: its input
  return kept + 2 * width + width;              // swiglu: its input; down: its input
}

/// Final norm, output projection and loss; the loss keeps three numbers a row besides the logits.
int64_t kept_by_head(const config::ModelConfig& model) {
  return 2 * int64_t{model.hidden_size} + 1 + model.vocab_size + 3;
}

}  // namespace

int64_t activation_bytes(const config::ModelConfig& model, const config::TrainConfig& train) {
  const int64_t tokens = int64_t{train.batch_size} * train.seq_len;
  const int64_t block = kept_by_attention(model) + kept_by_mlp(model);
  const int64_t numbers = tokens * (model.num_layers * block + kept_by_head(model));
  int64_t rows_of_ids = 2;  // inputs and targets
  // The documents, and in each block where the document of each token begins.
  if (train.document_mask) rows_of_ids += 1 + model.num_layers;
  return numbers * bytes_of(train.precision) + rows_of_ids * tokens * bytes_of_id;
}

TrainingBytes training_bytes(const config::ModelConfig& model, const config::TrainConfig& train) {
  const int64_t tokens = int64_t{train.batch_size} * train.seq_len;
  const int64_t size = bytes_of(train.precision);
  TrainingBytes bytes;
  bytes.weights = parameter_count(model) * size;
  bytes.gradients = bytes.weights;
  bytes.optimizer = 2 * bytes.weights;
  bytes.activations = activation_bytes(model, train);
  bytes.logits_gradient = tokens * model.vocab_size * size;
  return bytes;
}

}  // namespace forge::model
