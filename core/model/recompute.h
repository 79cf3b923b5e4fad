#pragma once

#include <cstdint>
#include <vector>

#include "core/base/schema.h"
#include "core/model/block.h"

/// Training that computes a part of a layer again in the backward pass in place of keeping what it
/// needs of it: less memory, more operations, the same bits.
namespace forge::model {

struct ModelConfig;

/// What is computed again: nothing; of each layer the MLP with its norm and Canon layers; each
/// layer as a whole. Of such a part its input alone is kept.
enum class Recompute { none, mlp, blocks };

constexpr Recompute recompute_kinds[] = {Recompute::none, Recompute::mlp, Recompute::blocks};

inline schema::Names names_of(Recompute) { return {"none", "mlp", "blocks"}; }

/// What a token leaves behind in the layers.
struct LayerActivations {
  /// From the forward to the backward pass.
  SavedActivations kept;
  /// What each part that is computed again leaves while its own gradients are computed, its result
  /// included. There is one of them at a time.
  std::vector<SavedActivations> recomputed;
};

LayerActivations layer_activations(const ModelConfig& model, Recompute recompute);

/// Operations for one token that a step does twice, counted as TokenFlops does: the forward pass of
/// what is computed again. The last product of an MLP is not, because nothing reads its result.
double recomputed_flops_per_token(const ModelConfig& model, int64_t seq_len, Recompute recompute);

}  // namespace forge::model
