#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/model/config.h"
#include "core/model/recompute.h"
#include "core/model/weight_groups.h"

/// What a model weighs and costs, without building it.
namespace forge::model {

/// Number of weights by part, in the order in which a token meets them. Tied embeddings count once,
/// as embedding.
class ParameterCounts {
 public:
  using Part = std::pair<std::string, int64_t>;
  /// 0 for a part that the model does not have.
  int64_t of(const std::string& part) const;
  void add(const std::string& part, int64_t count);
  /// The Canon layers at all positions together.
  int64_t canon() const;
  int64_t total() const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  std::vector<Part> parts_;
};

ParameterCounts count_parameters(const ModelConfig& model);

/// Floating-point operations for one token of training, 2 per multiply-add, averaged over a row of
/// `seq_len` tokens. Counted are matrix products (lm_head included, tied or not), Canon's taps and
/// what mixers compute between tokens (causal attention: half of the full square); not counted are
/// norms, softmax, rotations, activations and the optimizer, which are no multiply-adds of weights
/// and below a few per cent; and nothing twice that a step computes again (recompute.h).
struct TokenFlops {
  double projections = 0;                              ///< the matrices of all blocks
  std::vector<std::pair<std::string, double>> mixing;  ///< between tokens, by kind of mixer
  double canon = 0;
  double lm_head = 0;

  double forward() const;
  /// Twice the forward: gradients of the inputs and of the weights.
  double backward() const { return 2 * forward(); }
  double total() const { return forward() + backward(); }
};

TokenFlops flops_per_token(const ModelConfig& model, int64_t seq_len);

enum class Precision { float32, float64, bfloat16 };
/// How weights are kept under precision bfloat16: in float32, of which each step computes with
/// rounded copies; in bfloat16 beside a float32 copy that the optimizer updates; or in bfloat16
/// alone, each update rounded up or down at random, by the distance.
enum class Bfloat16Weights { none, master_copies, stochastic_rounding };

inline schema::Names names_of(Precision) { return {"float32", "float64", "bfloat16"}; }
inline schema::Names names_of(Bfloat16Weights) {
  return {"none", "master_copies", "stochastic_rounding"};
}

/// What of a training decides its memory.
struct TrainingShape {
  int64_t rows = 0;  ///< computed at once by a process
  int64_t seq_len = 0;
  Precision precision = Precision::float32;
  Bfloat16Weights bfloat16_weights = Bfloat16Weights::none;
  bool document_mask = false;
  Moments moments = {};  ///< of the optimizer
  Recompute recompute = Recompute::none;
  int processes = 1;       ///< that train together
  int gradient_slots = 1;  ///< of a step, of all processes together
};

/// Bytes that training holds, in each of its processes. Weights and moments are there from the
/// first step to the last, activations between the forward and the backward pass, gradients from
/// there to the update. They grow while activations are given back, so the total is a little above
/// the peak: 4 % for Llama 4M.
///
/// Of several processes each keeps an equal part of the optimizer's state (ZeRO stage 1,
/// Rajbhandari et al. 2020), and all weights. Gradients that are added up slot by slot are in
/// `exchange`.
struct TrainingBytes {
  int64_t weights = 0;          ///< with the bfloat16 copies of float32 weights
  int64_t gradients = 0;        ///< as exact as the weights; none of slots
  int64_t optimizer = 0;        ///< moments; float32 copies of bfloat16 weights
  int64_t activations = 0;      ///< see activation_bytes
  int64_t recomputed = 0;       ///< activations of the largest part that is computed again
  int64_t exchange = 0;         ///< see exchange_bytes
  int64_t logits_gradient = 0;  ///< logits of loss_chunk_rows, made their gradient in place

  int64_t total() const {
    return weights + gradients + optimizer + activations + recomputed + exchange + logits_gradient;
  }
};

/// Rows of hidden states whose logits the loss holds at a time: about a million numbers, so that
/// they stay in a CPU's cache.
int64_t loss_chunk_rows(int64_t vocab_size);

TrainingBytes training_bytes(const ModelConfig& model, const TrainingShape& shape);

/// Of a checkpoint, of all processes together: weights and the optimizer's state.
int64_t checkpoint_bytes(const ModelConfig& model, const TrainingShape& shape);

/// What one forward pass keeps for the backward pass: every input that an operation needs again,
/// with the fused operations of backends/libtorch. docs/MATHEMATICS.md lists the tensors.
int64_t activation_bytes(const ModelConfig& model, const TrainingShape& shape);

/// What the backward pass holds besides of the largest part that it computes again.
int64_t recomputed_bytes(const ModelConfig& model, const TrainingShape& shape);

/// What a process needs to add the gradients of slots: float32 sums of its own part of the weights,
/// one for each level of the tree, and where there are several processes the buckets in which
/// gradients come and go. A bucket is emptied as soon as it is full, so a slot's gradients are
/// nowhere whole.
int64_t exchange_bytes(const ModelConfig& model, const TrainingShape& shape);

/// Bytes of gradients that processes exchange at a time.
constexpr int64_t exchange_bucket_bytes = 50'000'000;
/// On a GPU: one that is filled, nine that are sent, and ten in which those of others come. On a
/// CPU there are six.
constexpr int64_t exchange_buckets = 20;

/// What a row keeps while text is generated, in all layers.
StateSize generation_state(const ModelConfig& model);

/// {"parameters": {part: weights, …, "total"}, "flops_per_token": {"forward": {…, "total"},
/// "backward", "total", "recomputed"}, "bytes": {"weights", …, "total"}, "recompute": {value of
/// train.recompute: {"activations", "recomputed", "flops_per_token"}}, "generation_state":
/// {"per_token", "fixed"}}; the last in numbers. Operations of "recompute" count what is computed
/// twice, those before it do not.
nlohmann::json cost_to_json(const ModelConfig& model, const TrainingShape& shape);

}  // namespace forge::model
