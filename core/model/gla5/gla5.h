#pragma once

#include <optional>

#include "core/base/schema.h"
#include "core/model/block.h"
#include "core/model/linear/heads.h"

/// Gated linear attention (Yang et al. 2023) as released with Physics of Language Models: Part 4.2:
/// each row of a head's state fades by a factor of its own.
namespace forge::model {

struct Gla5Config {
  int num_heads = 0;
  double expand_k = 1;
  double expand_v = 2;
  QkvActivation qkv_activation = QkvActivation::silu;
  int gate_rank = 16;
  double gate_normalizer = 16;
  std::optional<int> output_gate_rank = 16;  ///< none: of full rank, without bias
};

template <class Visitor>
void fields(Visitor& visit, Gla5Config& c) {
  using namespace schema;
  visit.field("num_heads", c.num_heads, "heads", required(up_to(1 << 12)));
  visit.field("expand_k", c.expand_k, "channels of all keys / hidden_size", above(0));
  visit.field("expand_v", c.expand_v, "channels of all values / hidden_size", above(0));
  visit.field("qkv_activation",
              c.qkv_activation,
              "silu on q, k, v always, or after_conv: where model.canon.set has b; none: never");
  visit.field("gate_rank", c.gate_rank, "rank of the decay's projection", up_to(1 << 18));
  visit.field(
      "gate_normalizer", c.gate_normalizer, "the decay's logarithm is divided by it", above(0));
  visit.field("output_gate_rank",
              c.output_gate_rank,
              "rank of the output gate's projection; null: full",
              up_to(1 << 18));
}

LinearHeads gla5_heads(const ModelConfig& model);

extern const BlockKind gla5_block;

}  // namespace forge::model
