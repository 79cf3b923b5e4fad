#include "core/model/arithmetic.h"

#include <algorithm>
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

/// Of a statistic, such as a root of a mean square, and of a logit: never less than float32.
int64_t bytes_of_wide(config::Precision precision) {
  return std::max<int64_t>(bytes_of(precision), 4);
}

/// What is kept for a token, by how exact it is.
struct Kept {
  int64_t numbers = 0;     ///< of the precision
  int64_t statistics = 0;  ///< in float32 at least: roots of mean squares, log-sum-exps

  Kept& operator+=(const Kept& other) {
    numbers += other.numbers;
    statistics += other.statistics;
    return *this;
  }
  int64_t bytes(config::Precision precision) const {
    return numbers * bytes_of(precision) + statistics * bytes_of_wide(precision);
  }
};

/// Whether a Canon layer is an operation of its own: joint ones know none with an activation.
bool stands_alone(const config::ModelConfig& model, char position) {
  return model.canon.has(position) && model.canon.activation != config::Activation::none;
}

/// Norm, Canon layer and projections in one keep the norm's input, and compute the rest again.
Kept kept_by_projections(const config::ModelConfig& model, char position) {
  const int64_t hidden = model.hidden_size;
  if (!stands_alone(model, position)) return {hidden, 0};
  return {3 * hidden, 1};  // norm: input and root; Canon: input; projections: input
}

/// What one block keeps for each token, by the operation that needs it again.
Kept kept_by_attention(const config::ModelConfig& model) {
  const int64_t heads = model.num_heads, kv_heads = model.num_kv_heads;
  const int64_t query = heads * model.head_dim, key = kv_heads * model.head_dim;
  const int64_t qkv = query + 2 * key;
  Kept kept = kept_by_projections(model, 'A');
  if (model.qk_norm == config::QkNorm::full) kept += {query + key, 2};  // norms: inputs, two roots
  kept += {qkv, 0};        // attention: with Canon-B its input, else q, k and v
  kept += {query, heads};  // its output, log-sum-exps
  const bool per_head = model.qk_norm == config::QkNorm::per_head;
  if (!per_head && !stands_alone(model, 'B')) return kept;
  if (model.canon.has('B')) kept += {qkv, 0};             // Canon-B: its input, besides its output
  if (per_head) kept += {query + key, heads + kv_heads};  // norms: inputs, a root for each head
  const bool rotated = model.position.kind == config::PositionKind::rope;
  if (rotated || per_head) kept += {query + key, 0};  // attention: q and k as they went in
  return kept;
}

Kept kept_by_mlp(const config::ModelConfig& model) {
  const int64_t width = model.intermediate_size;
  Kept kept = kept_by_projections(model, 'C');
  kept += {2 * width, 0};  // gate and up; what becomes of them is computed again
  if (stands_alone(model, 'D')) kept += {2 * width + width, 0};  // Canon-D's and SwiGLU's outputs
  return kept;
}

/// Final norm: its input and the root; output projection and loss: the gradient of their input.
Kept kept_by_head(const config::ModelConfig& model) { return {2 * int64_t{model.hidden_size}, 1}; }

/// Weights, gradients and AdamW's state. Moments are as exact as the computation and float32 at
/// least; so are the weights of norms and Canon layers, which are few.
void add_state(TrainingBytes& bytes,
               const ParameterCounts& counts,
               const config::TrainConfig& train) {
  const int64_t size = bytes_of(train.precision), wide = bytes_of_wide(train.precision);
  const int64_t matrices = counts.of(Part::embedding) + counts.of(Part::attention) +
                           counts.of(Part::mlp) + counts.of(Part::lm_head);
  const int64_t others = counts.total() - matrices;
  bytes.optimizer = 2 * counts.total() * wide;
  if (train.bfloat16_weights == config::Bfloat16Weights::none) {
    bytes.weights = counts.total() * wide;
    bytes.gradients = counts.total() * wide;
    if (size < wide) bytes.weights += matrices * size;  // the copies that products are made of
    return;
  }
  bytes.weights = matrices * size + others * wide;
  bytes.gradients = bytes.weights;
  if (train.bfloat16_weights == config::Bfloat16Weights::master_copies) {
    bytes.optimizer += matrices * wide;
  }
}

}  // namespace

int64_t activation_bytes(const config::ModelConfig& model, const config::TrainConfig& train) {
  const int64_t tokens = int64_t{train.rows_at_once()} * train.seq_len;
  Kept block = kept_by_attention(model);
  block += kept_by_mlp(model);
  const int64_t bytes_a_token =
      model.num_layers * block.bytes(train.precision) + kept_by_head(model).bytes(train.precision);
  int64_t rows_of_ids = 2;  // inputs and targets
  // The documents, and where the document of each token begins.
  if (train.document_mask) rows_of_ids += 2;
  return tokens * (bytes_a_token + rows_of_ids * bytes_of_id);
}

int64_t loss_rows_at_once(int64_t vocab_size) {
  constexpr int64_t numbers = int64_t{1} << 20, least_rows = 64;
  return least_rows * std::max<int64_t>(1, numbers / (vocab_size * least_rows));
}

TrainingBytes training_bytes(const config::ModelConfig& model, const config::TrainConfig& train) {
  const int64_t tokens = int64_t{train.rows_at_once()} * train.seq_len;
  TrainingBytes bytes;
  add_state(bytes, count_parameters(model), train);
  bytes.activations = activation_bytes(model, train);
  const int64_t rows = std::min(tokens, loss_rows_at_once(model.vocab_size));
  bytes.logits_gradient = rows * model.vocab_size * bytes_of_wide(train.precision);
  return bytes;
}

}  // namespace forge::model
