#include "core/model/cost.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/model/kinds.h"

namespace forge::model {
namespace {

constexpr int64_t bytes_of_id = 4;

bool is_canon(const std::string& part) {
  return starts_with(part, "canon_") || part == "short_conv";
}

int64_t bytes_of(Precision precision) {
  switch (precision) {
    case Precision::float32: return 4;
    case Precision::float64: return 8;
    case Precision::bfloat16: return 2;
  }
  throw Error("train.precision is none of float32, float64, bfloat16");
}

/// Of a statistic, such as a root of a mean square, and of a logit: never less than float32.
int64_t bytes_of_wide(Precision precision) { return std::max<int64_t>(bytes_of(precision), 4); }

int64_t bytes_of_token(const SavedActivations& saved, Precision precision) {
  return saved.values * bytes_of(precision) + saved.statistics * bytes_of_wide(precision);
}

/// Of so many numbers as many as a process has.
int64_t part_of(const TrainingShape& shape, int64_t numbers) {
  return (numbers + shape.processes - 1) / shape.processes;
}

/// Whether gradients are added up slot by slot, see exchange_bytes.
bool is_slotted(const TrainingShape& shape) {
  return shape.gradient_slots > 1 || shape.processes > 1;
}

/// Weights, gradients and the optimizer's state. Moments are as exact as the computation and
/// float32 at least; so are the weights of norms and Canon layers, which are few.
void add_state(TrainingBytes& bytes, const ModelConfig& model, const TrainingShape& shape) {
  const int64_t size = bytes_of(shape.precision), wide = bytes_of_wide(shape.precision);
  int64_t matrices = 0, others = 0, moments = 0;
  for (const Parameter& parameter : parameters(model)) {
    (parameter.is_matrix ? matrices : others) += parameter.count();
    const bool is_hidden = group_of(parameter.name, parameter.shape) == WeightGroup::matrices;
    moments +=
        (is_hidden ? shape.moments.of_matrices : shape.moments.of_others) * parameter.count();
  }
  const int64_t all = matrices + others;
  bytes.optimizer = part_of(shape, moments) * wide;
  if (shape.bfloat16_weights == Bfloat16Weights::none) {
    const bool has_copies = size < wide;  // that products are made of
    bytes.weights = all * wide;
    bytes.gradients = is_slotted(shape) ? 0 : bytes.weights;
    if (has_copies) bytes.weights += matrices * size;
    return;
  }
  bytes.weights = matrices * size + others * wide;
  bytes.gradients = is_slotted(shape) ? 0 : bytes.weights;
  if (shape.bfloat16_weights == Bfloat16Weights::master_copies)
    bytes.optimizer += part_of(shape, matrices) * wide;
}

}  // namespace

int64_t ParameterCounts::of(const std::string& part) const {
  for (const auto& [name, count] : parts_) {
    if (name == part) return count;
  }
  return 0;
}

void ParameterCounts::add(const std::string& part, int64_t count) {
  for (Part& known : parts_) {
    if (known.first != part) continue;
    known.second += count;
    return;
  }
  parts_.emplace_back(part, count);
}

int64_t ParameterCounts::canon() const {
  int64_t sum = 0;
  for (const auto& [name, count] : parts_) sum += is_canon(name) ? count : 0;
  return sum;
}

int64_t ParameterCounts::total() const {
  int64_t sum = 0;
  for (const auto& [name, count] : parts_) sum += count;
  return sum;
}

ParameterCounts count_parameters(const ModelConfig& model) {
  ParameterCounts counts;
  for (const Parameter& parameter : parameters(model))
    counts.add(parameter.part, parameter.count());
  return counts;
}

double TokenFlops::forward() const {
  double sum = projections + canon + lm_head;
  for (const auto& [kind, operations] : mixing) sum += operations;
  return sum;
}

TokenFlops flops_per_token(const ModelConfig& model, int64_t seq_len) {
  TokenFlops flops;
  // Every weight of a projection and every tap of a Canon layer is used once for each token. A
  // block of one's own says itself what all its operations are.
  for (const Parameter& parameter : parameters(model)) {
    const double operations = 2.0 * static_cast<double>(parameter.count());
    if (is_taps(parameter)) flops.canon += operations;
    const bool is_end = parameter.part == "embedding" || parameter.part == "lm_head";
    const bool is_own = model.blocks.count(parameter.part) > 0;
    if (parameter.is_matrix && !is_end && !is_own) flops.projections += operations;
  }
  flops.lm_head = 2.0 * static_cast<double>(model.vocab_size) * model.hidden_size;
  std::vector<std::string> mixers = texts_of(mixer_kinds(), &BlockKind::name);
  for (const auto& [name, block] : model.blocks) mixers.push_back(name);
  for (const std::string& mixer : mixers) {
    double operations = 0;
    for (int layer = 0; layer < model.num_layers; ++layer) {
      const ModelConfig& own = model.of_layer(layer);
      if (model.mixer(layer) == mixer)
        operations += mixer_of_layer(model, layer).mixing_flops(own, seq_len);
      if (own.mlp.kind.own == mixer) operations += own_mlp_block.mixing_flops(own, seq_len);
      if (model.blocks.count(mixer) > 0) operations += flops_of_block_at(model, mixer, seq_len);
    }
    if (operations > 0) flops.mixing.emplace_back(mixer, operations);
  }
  return flops;
}

bool is_taps(const Parameter& parameter) {
  return is_canon(parameter.part) && parameter.shape.size() == 3;
}

bool is_unfused_canon(const ModelConfig& model, char position) {
  return model.canon.has(position) && model.canon.activation != Activation::none;
}

int64_t canon_state(const ModelConfig& model, char position, int64_t channels) {
  return model.canon.has(position) ? (model.canon.kernel - 1) * channels : 0;
}

int64_t activation_bytes(const ModelConfig& model, const TrainingShape& shape) {
  SavedActivations saved = layer_activations(model, shape.recompute).kept;
  saved += saved_by_norm(model);    // the last one
  saved += {model.hidden_size, 0};  // output projection and loss: the gradient of their input
  int64_t rows_of_ids = 2;          // inputs and targets
  // The documents, and where the document of each token begins.
  if (shape.document_mask) rows_of_ids += 2;
  return shape.rows * shape.seq_len *
         (bytes_of_token(saved, shape.precision) + rows_of_ids * bytes_of_id);
}

int64_t recomputed_bytes(const ModelConfig& model, const TrainingShape& shape) {
  int64_t largest = 0;
  for (const SavedActivations& part : layer_activations(model, shape.recompute).recomputed)
    largest = std::max(largest, bytes_of_token(part, shape.precision));
  return shape.rows * shape.seq_len * largest;
}

int64_t exchange_bytes(const ModelConfig& model, const TrainingShape& shape) {
  if (!is_slotted(shape)) return 0;
  const int64_t wide = bytes_of_wide(shape.precision), all = parameter_count(model) * wide;
  int64_t levels = 1;
  for (int slots = shape.gradient_slots / shape.processes; slots > 1; slots /= 2) ++levels;
  const int64_t bucket = shape.processes > 1 ? std::min(all, exchange_bucket_bytes) : 0;
  return levels * part_of(shape, all) + exchange_buckets * bucket;
}

int64_t loss_chunk_rows(int64_t vocab_size) {
  constexpr int64_t numbers = int64_t{1} << 20, least_rows = 64;
  return least_rows * std::max<int64_t>(1, numbers / (vocab_size * least_rows));
}

TrainingBytes training_bytes(const ModelConfig& model, const TrainingShape& shape) {
  TrainingBytes bytes;
  add_state(bytes, model, shape);
  bytes.activations = activation_bytes(model, shape);
  bytes.recomputed = recomputed_bytes(model, shape);
  bytes.exchange = exchange_bytes(model, shape);
  const int64_t rows = std::min(shape.rows * shape.seq_len, loss_chunk_rows(model.vocab_size));
  bytes.logits_gradient = rows * model.vocab_size * bytes_of_wide(shape.precision);
  return bytes;
}

int64_t checkpoint_bytes(const ModelConfig& model, const TrainingShape& shape) {
  TrainingBytes bytes;
  TrainingShape whole = shape;
  whole.processes = 1;
  add_state(bytes, model, whole);
  return bytes.weights + bytes.optimizer;
}

StateSize generation_state(const ModelConfig& model) {
  StateSize size;
  for (int layer = 0; layer < model.num_layers; ++layer) {
    for (const BlockKind* block : blocks_of_layer(model, layer))
      size += block->state(model.of_layer(layer));
  }
  return size;
}

nlohmann::json cost_to_json(const ModelConfig& model, const TrainingShape& shape) {
  // Whole numbers as long as they are exact in a double, which those of any real model are.
  const auto whole = [](double count) { return static_cast<int64_t>(count); };
  const ParameterCounts counts = count_parameters(model);
  nlohmann::json parameters;
  for (const auto& [part, count] : counts.parts()) parameters[part] = count;
  parameters["total"] = counts.total();
  const TokenFlops flops = flops_per_token(model, shape.seq_len);
  nlohmann::json forward = {{"projections", whole(flops.projections)},
                            {"canon", whole(flops.canon)},
                            {"lm_head", whole(flops.lm_head)},
                            {"total", whole(flops.forward())}};
  for (const auto& [kind, operations] : flops.mixing) forward[kind] = whole(operations);
  nlohmann::json recompute;
  for (const Recompute kind : recompute_kinds) {
    TrainingShape other = shape;
    other.recompute = kind;
    recompute[schema::name_of(kind)] = {
        {"activations", activation_bytes(model, other)},
        {"recomputed", recomputed_bytes(model, other)},
        {"flops_per_token",
         whole(flops.total() + recomputed_flops_per_token(model, shape.seq_len, kind))}};
  }
  const TrainingBytes bytes = training_bytes(model, shape);
  const StateSize state = generation_state(model);
  return {
      {"parameters", parameters},
      {"flops_per_token",
       {{"forward", forward},
        {"backward", whole(flops.backward())},
        {"total", whole(flops.total())},
        {"recomputed", whole(recomputed_flops_per_token(model, shape.seq_len, shape.recompute))}}},
      {"bytes",
       {{"weights", bytes.weights},
        {"gradients", bytes.gradients},
        {"optimizer", bytes.optimizer},
        {"activations", bytes.activations},
        {"recomputed", bytes.recomputed},
        {"exchange", bytes.exchange},
        {"logits_gradient", bytes.logits_gradient},
        {"total", bytes.total()}}},
      {"recompute", recompute},
      {"generation_state", {{"per_token", state.per_token}, {"fixed", state.fixed}}}};
}

}  // namespace forge::model
