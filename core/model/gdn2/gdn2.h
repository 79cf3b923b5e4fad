#pragma once

#include <optional>

#include "core/base/schema.h"
#include "core/model/block.h"
#include "core/model/linear/heads.h"

/// Gated delta networks (Yang et al. 2024) as released with Physics of Language Models: Part 4.2: a
/// head's state fades as a whole, and a token writes only what its key does not read yet. It is not
/// NVIDIA's Gated DeltaNet-2, which flash-linear-attention calls gdn2.
namespace forge::model {

struct Gdn2Config {
  int num_heads = 0;
  double expand_k = 1;
  double expand_v = 2;
  QkvActivation qkv_activation = QkvActivation::silu;
  std::optional<int> output_gate_rank = 16;  ///< none: of full rank, without bias
};

template <class Visitor>
void fields(Visitor& visit, Gdn2Config& c) {
  using namespace schema;
  visit.field("num_heads", c.num_heads, "heads", required(up_to(1 << 12)));
  visit.field("expand_k", c.expand_k, "channels of all keys / hidden_size", above(0));
  visit.field("expand_v", c.expand_v, "channels of all values / hidden_size", above(0));
  visit.field("qkv_activation",
              c.qkv_activation,
              "silu on q, k, v always, or after_conv: where model.canon.set has b; none: never");
  visit.field("output_gate_rank",
              c.output_gate_rank,
              "rank of the output gate's projection; null: full",
              up_to(1 << 18));
}

LinearHeads gdn2_heads(const ModelConfig& model);

/// Added to the sum of squares where queries and keys are brought to length 1.
constexpr double gdn2_length_eps = 1e-6;

extern const BlockKind gdn2_block;

}  // namespace forge::model
