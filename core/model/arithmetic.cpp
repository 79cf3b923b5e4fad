#include "core/model/arithmetic.h"

#include "core/base/error.h"
#include "core/model/parameters.h"

namespace forge::model {

ParameterCounts count_parameters(const config::ModelConfig& model) {
  ParameterCounts counts;
  for (const Parameter& parameter : parameters(model)) {
    const int64_t count = parameter.count();
    if (parameter.part == "embedding") counts.embedding += count;
    if (parameter.part == "attention") counts.attention += count;
    if (parameter.part == "mlp") counts.mlp += count;
    if (parameter.part == "canon") counts.canon += count;
    if (parameter.part == "norm") counts.norm += count;
    if (parameter.part == "lm_head") counts.lm_head += count;
  }
  return counts;
}

TokenFlops flops_per_token(const config::ModelConfig& model, int seq_len) {
  const ParameterCounts counts = count_parameters(model);
  const double lm_head = static_cast<double>(model.vocab_size) * model.hidden_size;
  // Every weight of a projection and every tap of a Canon layer is used once for each token.
  const double weights =
      static_cast<double>(counts.attention + counts.mlp + counts.canon) + lm_head;
  // Scores and weighted sum: two products of head_dim with each of on average seq_len / 2 keys.
  const double pairs = static_cast<double>(seq_len) / 2;
  const double attention =
      2.0 * model.num_layers * model.num_heads * static_cast<double>(model.head_dim) * pairs;
  TokenFlops flops;
  flops.forward = 2 * (weights + attention);
  flops.backward = 2 * flops.forward;
  return flops;
}

namespace {

int64_t bytes_of(config::Precision precision) {
  switch (precision) {
    case config::Precision::float32: return 4;
    case config::Precision::float64: return 8;
    case config::Precision::bfloat16: return 2;
  }
  throw Error("train.precision is none of float32, float64, bfloat16");
}

}  // namespace

StateBytes state_bytes(const config::ModelConfig& model, config::Precision precision) {
  StateBytes bytes;
  bytes.weights = parameter_count(model) * bytes_of(precision);
  bytes.gradients = bytes.weights;
  bytes.adamw = 2 * bytes.weights;
  return bytes;
}

}  // namespace forge::model
